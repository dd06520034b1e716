import type { DurationMs, EpochMs } from '../contracts/units.ts';
import type { BackupsSaid } from '../core/capacity/admit-backups.ts';
import { cloneHolding, type CloneHolding, hasClones } from '../core/capacity/clone-holding.ts';
import { guaranteeOf } from '../core/capacity/guarantees.ts';
import {
  cloned,
  type Holding,
  type Ledger,
  occupied,
  occupiedBy,
  type Statement,
} from '../core/capacity/ledger.ts';

/** What a job holds: slots, and of them those that clones take. */
export interface CapacityGrant extends CloneHolding {
  readonly slots: number;
  /** Slots that it may be using yet, where these are more than it holds. */
  readonly held?: number;
  /** Slots that are its own before any are shared; absent: none. */
  readonly guaranteed?: number;
  /** Bytes of replicas that it may have made; absent: none. */
  readonly tokens?: number;
}

/** Slots of all jobs together, and who holds them. */
export interface CapacityView {
  readonly totalSlots: number;
  readonly usedSlots: number;
  /** Slots charged to the cloning budget: the sum over all grants. */
  readonly cloneSlots: number;
  readonly grants: Readonly<Record<string, CapacityGrant>>;
}

/** Who asks, by whose clock, and out of how many slots. */
export interface GrantContext {
  readonly totalSlots: number;
  /** By the asker's own clock, which is compared with no other. */
  readonly now: EpochMs;
  /** A job that has said nothing for so long counts as dead; it says something twice in this time. */
  readonly length: DurationMs;
  /** Attempts of the job that run: with it slots are shared max-min fairly, without it first come, first served. */
  readonly live?: number | undefined;
  readonly weight?: number;
  /** Slots that it asks to have before any are shared. Absent: as many as it was guaranteed. */
  readonly guaranteed?: number;
  /** Bytes of the replicas that its decision log tells of. Absent: as many as it was admitted. */
  readonly tokens?: number;
  /** Its backups, where all jobs' are bounded together. */
  readonly backups?: BackupsSaid;
  /** When the job was submitted. */
  readonly since?: EpochMs;
  /** Which of the job's schedulers asks. */
  readonly epoch?: number;
}

/** What a job has to say: that it gives slots back, or backups, that it wants more, or no more than that it lives. */
export type News = 'gives' | 'spares' | 'wants' | 'beat';

export function wordsOf(before: Holding | undefined, wanted: number, context: GrantContext): Statement {
  const { now, weight = 1, since = before?.since ?? now, epoch = 0 } = context;
  return { wanted, weight, since, epoch, beat: Math.max(now, (before?.beat ?? 0) + 1) };
}

function grantOf(holding: Holding): CapacityGrant {
  const { slots, held, guaranteed, tokens } = holding;
  return {
    slots,
    ...(held > slots ? { held } : {}),
    ...(guaranteed === undefined ? {} : { guaranteed }),
    ...(tokens === undefined ? {} : { tokens }),
    ...cloneHolding(holding),
  };
}

/** The ledger as people see it: without jobs that hold nothing. */
export function viewOf({ totalSlots, holdings }: Ledger): CapacityView {
  const grants = [...holdings]
    .filter(([, holding]) => occupiedBy(holding) > 0 || guaranteeOf(holding) > 0 || hasClones(holding))
    .map(([jobId, holding]) => [jobId, grantOf(holding)] as const);
  return {
    totalSlots,
    usedSlots: occupied(holdings.values()),
    cloneSlots: cloned(holdings.values()),
    grants: Object.fromEntries(grants),
  };
}
