import type { JobId } from '../../contracts/ids.ts';
import type { EpochMs } from '../../contracts/units.ts';
import { chargedSlots, cloneHolding, type CloneHolding } from './clone-holding.ts';

/** What a job says of itself, in the words of its own scheduler. Nobody else changes it. */
export interface Statement {
  /** Slots that it could use at once. */
  readonly wanted: number;
  /** Its share where slots are short, beside those of others. */
  readonly weight: number;
  /** Slots that are its own before any are shared, as far as it wants them. Absent: none. */
  readonly guaranteed?: number | undefined;
  /** When the job was submitted: among equals the oldest is served first. */
  readonly since: EpochMs;
  /** Differs with each statement. A job whose beat has not changed for long counts as dead, by the watcher's own clock. */
  readonly beat: number;
  /** Which of the job's schedulers says it: one that was replaced says nothing more. */
  readonly epoch: number;
}

/** A job in the ledger. */
export interface Holding extends Statement, CloneHolding {
  /** Slots that it may launch with. */
  readonly slots: number;
  /**
   * Slots that it may still be using: at least `slots`, and more after some were taken away, until its scheduler says
   * that what ran there has ended. What runs is never stopped for the sake of others.
   */
  readonly held: number;
  /** Backups that it may run of those that all jobs may: by admission, less what it needs no more. Absent: none. */
  readonly backups?: number | undefined;
}

/** Slots of all jobs together, and who holds them. */
export interface Ledger {
  readonly totalSlots: number;
  readonly holdings: ReadonlyMap<JobId, Holding>;
}

/** What a rule makes of a ledger. It strikes nobody out: that is a write of its own. */
export interface Move<T> {
  readonly answer: T;
  /** Jobs of the ledger whose grants change. */
  readonly changes: ReadonlyMap<JobId, Holding>;
  readonly totalSlots: number;
}

/** A pure function of the ledger: the same answer for the same ledger, since it may be asked several times. */
export type CapacityRule<T> = (ledger: Ledger) => Move<T>;

/** A job's holding with other clones; parts that are empty are gone. */
export function withClones(holding: Holding, clones: CloneHolding): Holding {
  const { wanted, weight, guaranteed, since, beat, epoch, slots, held, backups } = holding;
  return {
    ...{ wanted, weight, since, beat, epoch, slots, held },
    ...(guaranteed === undefined ? {} : { guaranteed }),
    ...(backups === undefined ? {} : { backups }),
    ...cloneHolding(clones),
  };
}

/** Slots that a job may be using. */
export const occupiedBy = ({ slots, held }: Pick<Holding, 'slots' | 'held'>): number => Math.max(slots, held);

/** Slots that all of these may be using together. */
export function occupied(holdings: Iterable<Holding>): number {
  let sum = 0;
  for (const holding of holdings) sum += occupiedBy(holding);
  return sum;
}

/** Slots charged to the cloning budget, over all of these. */
export function cloned(holdings: Iterable<Holding>): number {
  let sum = 0;
  for (const holding of holdings) sum += chargedSlots(holding);
  return sum;
}

/** The ledger as it is once a move has been made. */
export function moved(ledger: Ledger, { changes, totalSlots }: Move<unknown>): Ledger {
  if (changes.size === 0) return { ...ledger, totalSlots };
  return { totalSlots, holdings: new Map([...ledger.holdings, ...changes]) };
}

/** Whether a move has to be written down. */
export const isMove = (ledger: Ledger, { changes, totalSlots }: Move<unknown>): boolean =>
  changes.size > 0 || totalSlots !== ledger.totalSlots;
