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
 * What each job may use of `total`: max-min fair by what it could use, in whole places; those that rounding leaves over
 * go to whoever could use least, ties to the first of the list. Costs a sort.
 */
export function fairRoom(total: number, uses: readonly RoomUse[]): readonly number[] {
  const shares = uses.map(() => 0);
  const byWant = uses
    .map((use, place) => ({ place, want: wanted(use) }))
    .sort((a, b) => a.want - b.want || a.place - b.place);
  let left = total;
  for (const [rank, { place, want }] of byWant.entries()) {
    const share = Math.min(want, Math.ceil(left / (byWant.length - rank)));
    shares[place] = share;
    left -= share;
  }
  return shares;
}
