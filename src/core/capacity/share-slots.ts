import type { JobId } from '../../contracts/ids.ts';
import { type BackupsSaid, backupsStated } from './admit-backups.ts';
import { type GuaranteedClaim, guaranteedShares } from './fair-shares.ts';
import { guaranteeStated } from './guarantees.ts';
import {
  admittedOf,
  type Holding,
  isBidder,
  type Ledger,
  type Move,
  occupied,
  occupiedBy,
  type Statement,
} from './ledger.ts';
import { tokensStated } from './replication-tokens.ts';

/** What a job's scheduler knows of it when it speaks. */
export interface Spoken extends Statement {
  /** Attempts of the job that run. Absent: as many as it holds slots. */
  readonly live?: number | undefined;
  /** Its backups. Absent: as many as it was admitted. */
  readonly backups?: BackupsSaid | undefined;
  /** Slots that it asks to have before any are shared. Absent: as many as it was guaranteed. */
  readonly guaranteed?: number | undefined;
  /** Bytes of the replicas that its decision log tells of. Absent: as many as it was admitted. */
  readonly tokens?: number | undefined;
}

/**
 * A job's holding once it has said what it wants and what it still uses. Its grant falls to what it wants and never
 * grows by this; what runs counts in any case, also where the job was struck out while it ran.
 */
export function stated(before: Holding | undefined, spoken: Spoken): Holding {
  const { live, backups, guaranteed, tokens, ...words } = spoken;
  const slots = Math.min(before?.slots ?? 0, words.wanted);
  const admitted = admittedOf({
    backups: backupsStated(before?.backups, backups),
    guaranteed: guaranteeStated(before?.guaranteed, guaranteed),
    tokens: tokensStated(before?.tokens, tokens),
  });
  return { ...before, ...words, slots, held: Math.max(slots, live ?? slots), ...admitted };
}

/** Whether a job wants more than it has. */
export const isShort = ({ slots, wanted }: Holding): boolean => slots < wanted;

/** Whether a job with a deadline lacks slots for it: some of its own, or some that it has bid for in vain. */
export const isOwed = ({ slots, wanted, guaranteed = 0, bid }: Holding): boolean =>
  bid !== undefined && isBidder({ bid }) && slots < Math.min(wanted, Math.max(guaranteed, bid.asks));

interface Sharing {
  readonly totalSlots: number;
  /** Most jobs whose grants change at once, which bounds the write. The others' turn comes with the next. */
  readonly mostChanges: number;
}

/**
 * Shares all slots out, guarantees first and then max-min fairly by weight: grants above their share are lowered to it,
 * those below are raised from what is free, which goes to those that are owed most. A lowered grant frees its slots only
 * when its scheduler has said that what ran there has ended, so that what all may be using together never grows beyond
 * the total.
 */
export function shareSlots(ledger: Ledger, { totalSlots, mostChanges }: Sharing): Move<undefined> {
  const holdings = [...ledger.holdings];
  const shares = guaranteedShares(
    totalSlots,
    holdings.map(([jobId, { wanted, weight, since, guaranteed }]): GuaranteedClaim => ({
      jobId,
      wanted,
      weight,
      since,
      guaranteed,
    })),
  );
  const shareOf = (jobId: JobId): number => shares.get(jobId) ?? 0;
  // Until others' slots are really free, what there is is shared fairly too.
  const now = guaranteedShares(
    totalSlots,
    holdings.map(([jobId, holding]): GuaranteedClaim => {
      const { weight, since, guaranteed } = holding;
      return { jobId, wanted: shareOf(jobId), weight, since, guaranteed, floor: occupiedBy(holding) };
    }),
  );
  const raised: (readonly [JobId, Holding])[] = [];
  const lowered: (readonly [JobId, Holding])[] = [];
  for (const [jobId, holding] of holdings) {
    const slots = Math.min(shareOf(jobId), now.get(jobId) ?? 0);
    if (slots > holding.slots)
      raised.push([jobId, { ...holding, slots, held: Math.max(slots, holding.held) }]);
    if (slots < holding.slots) lowered.push([jobId, { ...holding, slots, held: occupiedBy(holding) }]);
  }
  const had = (jobId: JobId): number => ledger.holdings.get(jobId)?.slots ?? 0;
  const isOwed = (jobId: JobId, { guaranteed = 0, wanted }: Holding): boolean =>
    had(jobId) < Math.min(guaranteed, wanted);
  raised.sort(
    ([i, a], [j, b]) =>
      Number(isOwed(j, b)) - Number(isOwed(i, a)) ||
      had(i) / a.weight - had(j) / b.weight ||
      a.since - b.since,
  );
  lowered.sort(([, a], [, b]) => b.held - b.slots - (a.held - a.slots) || a.since - b.since);
  const changes = new Map([...raised, ...lowered].slice(0, mostChanges));
  return { answer: undefined, totalSlots, changes };
}

/** Grants a job what it wants as far as that is free: first come, first served. */
export function grantFree(ledger: Ledger, jobId: JobId, totalSlots: number): Move<undefined> {
  const own = ledger.holdings.get(jobId);
  const free = Math.max(0, totalSlots - occupied(ledger.holdings.values()));
  const slots = own === undefined ? 0 : Math.min(own.wanted, occupiedBy(own) + free);
  if (own === undefined || slots <= own.slots) return { answer: undefined, totalSlots, changes: new Map() };
  const changes = new Map([[jobId, { ...own, slots, held: Math.max(slots, own.held) }]]);
  return { answer: undefined, totalSlots, changes };
}
