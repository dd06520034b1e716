import { type Utility, utilityAt } from './utility.ts';

/** A job in a plan of who has which slots until all have ended. */
export interface PlannedJob {
  /** Points [slots, ms until it ends on so many], ascending by slots, from one slot on. */
  readonly left: readonly (readonly [number, number])[];
  /** Slots that it asks for now; once another has ended it may have more. */
  readonly asks: number;
  /** Of ending so long after now. */
  readonly utility: Utility;
  /** Times which its utility counts. */
  readonly weight: number;
}

/** Who comes before whom: places of jobs. */
export interface Precedence {
  readonly order: readonly number[];
  /** Slots that a job has before others have more; by its place. What nobody else can use it may have beside them. */
  readonly shares: readonly number[];
}

/** What a plan comes to. */
export interface PlannedEnds {
  /** Utility of all ends together. */
  readonly worth: number;
  /** Slots that each has of its own now. */
  readonly now: readonly number[];
}

/** Part of its way that a job goes in a ms on so many slots: straight between points, as work that any slot can do. */
export function paceOn({ left }: Pick<PlannedJob, 'left'>, slots: number): number {
  let [from, paceFrom] = [0, 0];
  for (const [to, ms] of left) {
    const paceTo = Math.max(paceFrom, 1 / Math.max(1, ms));
    if (slots <= to)
      return to === from ? paceTo : paceFrom + ((paceTo - paceFrom) * (slots - from)) / (to - from);
    [from, paceFrom] = [to, paceTo];
  }
  return paceFrom;
}

/** The fewest slots on which a job ends as soon as on any: more bring it nothing. */
const mostFor = ({ left }: PlannedJob): number => {
  const soonest = left.at(-1)?.[1] ?? 0;
  return left.find(([, ms]) => ms <= soonest)?.[0] ?? 0;
};

/** Slots that a job keeps busy in the mean where it goes on at a pace: on one slot it would take all its slot time. */
const busyAt = ({ left }: PlannedJob, pace: number): number =>
  (left[0]?.[0] ?? 0) * (left[0]?.[1] ?? 0) * pace;

/**
 * Paces of jobs that have slots of their own. What they leave idle at their barriers is shared by weight, as production
 * shares it: it raises those with the fewest slots to a level, of which all together keep no more busy than there are.
 */
function pacesOn(
  totalSlots: number,
  jobs: readonly PlannedJob[],
  given: readonly number[],
): readonly number[] {
  const paceAt = (job: PlannedJob, place: number, level: number): number =>
    paceOn(job, Math.max(given[place] ?? 0, level * job.weight));
  const isRoomAt = (level: number): boolean => {
    let busy = 0;
    for (const [place, job] of jobs.entries()) {
      busy += busyAt(job, paceAt(job, place, level));
      if (busy > totalSlots) return false;
    }
    return true;
  };
  let [low, high] = [0, Math.floor(totalSlots)];
  while (low < high) {
    const level = Math.ceil((low + high) / 2);
    if (isRoomAt(level)) low = level;
    else high = level - 1;
  }
  return jobs.map((job, place) => paceAt(job, place, low));
}

const mostNow = (job: PlannedJob): number => Math.min(job.asks, mostFor(job));

/**
 * Gives slots to jobs in their order: one to each, that none starves, then to each its share, then to each what is left,
 * never more than the limit of it.
 */
function fill(
  totalSlots: number,
  { order, shares }: Precedence,
  limitOf: (place: number) => number,
): number[] {
  const given = shares.map(() => 0);
  let left = totalSlots;
  const raise = (place: number, to: number): void => {
    const more = Math.min(left, Math.max(0, Math.min(to, limitOf(place)) - (given[place] ?? 0)));
    given[place] = (given[place] ?? 0) + more;
    left -= more;
  };
  for (const place of order) raise(place, 1);
  for (const place of order) raise(place, shares[place] ?? 0);
  for (const place of order) raise(place, Infinity);
  return given;
}

/**
 * What it comes to where jobs have slots in an order, and those of each that ends go to the others in the same order,
 * until all have ended. A job goes on from where it stands at the pace of the slots that it has, its own and those that
 * others leave idle.
 */
export function followPlan(
  totalSlots: number,
  jobs: readonly PlannedJob[],
  precedence: Precedence,
): PlannedEnds {
  const now = fill(totalSlots, precedence, (place) => mostNow(jobs[place] ?? idle));
  const rest = jobs.map(() => 1);
  let order = precedence.order.filter((place) => mostFor(jobs[place] ?? idle) > 0);
  let [given, atMs, worth] = [now, 0, 0];
  while (order.length > 0) {
    const paces = pacesOn(
      totalSlots,
      order.map((place) => jobs[place] ?? idle),
      order.map((place) => given[place] ?? 0),
    );
    const lastsMs = order.reduce(
      (least, place, index) => Math.min(least, (rest[place] ?? 0) / (paces[index] ?? 0)),
      Infinity,
    );
    if (!Number.isFinite(lastsMs)) return { worth: -Infinity, now };
    atMs += lastsMs;
    const going: number[] = [];
    for (const [index, place] of order.entries()) {
      const after = (rest[place] ?? 0) - lastsMs * (paces[index] ?? 0);
      rest[place] = after;
      if (after > roundingOf) going.push(place);
      else worth += endsAt(jobs[place] ?? idle, atMs);
    }
    order = going;
    given = fill(totalSlots, { order, shares: precedence.shares }, (place) => mostFor(jobs[place] ?? idle));
  }
  return { worth, now };
}

const roundingOf = 1e-9;
const idle: PlannedJob = { left: [], asks: 0, utility: { points: [] }, weight: 0 };
const endsAt = ({ utility, weight }: PlannedJob, atMs: number): number => weight * utilityAt(utility, atMs);
