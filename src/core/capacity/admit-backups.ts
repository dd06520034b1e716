import type { JobId } from '../../contracts/ids.ts';
import type { Holding, Ledger, Move } from './ledger.ts';

/** Backups that a job asks for, under a cap on those of all jobs together. */
export interface BackupAsking {
  readonly jobId: JobId;
  /** Which of the job's schedulers asks: one that was replaced gets nothing. */
  readonly epoch: number;
  /** Those that it runs and those that it would launch now. */
  readonly wanted: number;
  /** Most that all jobs may run at once, by the asker's policy. */
  readonly cap: number;
  readonly totalSlots: number;
}

/** What a job says of its backups. */
export interface BackupsSaid {
  readonly running: number;
  /** Those, and others that it was admitted and waits for a slot to launch. */
  readonly wanted: number;
}

/** Backups that a job may run. */
export const backupsOf = ({ backups = 0 }: Pick<Holding, 'backups'>): number => backups;

/** What a job keeps beyond those that it needs, so that it need not ask for each. */
const kept = (wanted: number): number => wanted + Math.floor(wanted / 4);

/**
 * The backups that a job may run once it has said how many it needs: fewer than it was admitted where it needs fewer,
 * never more, and those that run in any case. Undefined: it was never admitted any, and runs none.
 */
export function backupsStated(before: number | undefined, said: BackupsSaid | undefined): number | undefined {
  if (said === undefined) return before;
  if (before === undefined) return said.running > 0 ? said.running : undefined;
  return Math.max(said.running, Math.min(before, kept(said.wanted)));
}

/**
 * Admits backups of a job, as many as keep those of all jobs together within its cap; answers how many it may run. While
 * no more than half of the cap is taken it gets some ahead, so that it asks rarely. Refused, it changes nothing. A job
 * that is not in the ledger may run none.
 *
 * Source: LATE §4: SpeculativeCap bounds the speculative tasks of the whole cluster.
 */
export function admitBackups(ledger: Ledger, asking: BackupAsking): Move<number> {
  const { jobId, epoch, wanted, cap, totalSlots } = asking;
  const own = ledger.holdings.get(jobId);
  if (own === undefined || own.epoch > epoch) return { answer: 0, totalSlots, changes: new Map() };
  const had = backupsOf(own);
  let others = -had;
  for (const holding of ledger.holdings.values()) others += backupsOf(holding);
  const ahead = Math.min(kept(wanted), Math.floor(cap / 2) - others);
  const backups = Math.max(had, Math.min(Math.max(wanted, ahead), cap - others));
  if (backups === had) return { answer: had, totalSlots, changes: new Map() };
  return { answer: backups, totalSlots, changes: new Map([[jobId, { ...own, backups }]]) };
}
