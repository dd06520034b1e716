import type { JobId } from '../../contracts/ids.ts';
import { guaranteedShares } from './fair-shares.ts';

/** What one of several jobs does with the room that they share, and what more it could use of it. */
export interface RoomUse {
  /** Attempts that have begun and not ended. */
  readonly running: number;
  /** Launched or about to be, not claimed, and not late yet. */
  readonly starting: number;
  /** Unclaimed and late: see `LaunchesSeen`. */
  readonly late: number;
  /** Of those, the ones for which room is held, since Lambda tries them again before long. */
  readonly held: number;
  /** Launches that it could make at once: of tasks that are owed one, and copies. */
  readonly owed: number;
}

/** A job among those that share the room. */
export interface RoomClaim extends RoomUse {
  /** Its share beside those of others; above 0. Absent: 1. */
  readonly weight?: number | undefined;
  /** Places that are its own before any are shared, as far as it can use them. Absent: none. */
  readonly guaranteed?: number | undefined;
}

/** What all of them do together. */
export function sumOfUses(uses: Iterable<RoomUse>): RoomUse {
  const sum = { running: 0, starting: 0, late: 0, held: 0, owed: 0 };
  for (const { running, starting, late, held, owed } of uses) {
    sum.running += running;
    sum.starting += starting;
    sum.late += late;
    sum.held += held;
    sum.owed += owed;
  }
  return sum;
}

/** Places that are used, or will be without any further launch. */
export const used = ({ running, starting, held }: RoomUse): number => running + starting + held;
const wanted = (use: RoomUse): number => used(use) + use.owed;

/**
 * What each job may use of `total`, in whole places: what is guaranteed to it first, and the rest max-min fairly by
 * weight and by what it could use, as the ledger shares slots. What rounding leaves over goes to whoever has least, ties
 * to the first of the map. There may be fewer places than slots are guaranteed: then one is kept for each job that has none of its own,
 * of half of all at the most, so that none starves.
 */
export function fairRoom(total: number, claims: ReadonlyMap<JobId, RoomClaim>): ReadonlyMap<JobId, number> {
  const asked = [...claims].map(([jobId, claim], since) => ({
    ...{ jobId, since, wanted: wanted(claim) },
    ...{ weight: claim.weight ?? 1, guaranteed: claim.guaranteed ?? 0 },
  }));
  const own = asked.reduce((sum, claim) => sum + Math.min(claim.wanted, claim.guaranteed), 0);
  const others = asked.filter((claim) => claim.wanted > 0 && claim.guaranteed === 0).length;
  return guaranteedShares(total, asked, own < total ? 0 : Math.min(others, Math.floor(total / 2)));
}
