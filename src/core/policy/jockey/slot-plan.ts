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

/** A bid's points as paces, parts of the job's way in a ms, ascending: nobody is slower on more slots. */
interface Pacing {
  readonly slots: readonly number[];
  readonly paces: readonly number[];
}

function pacingOf({ left }: Pick<PlannedJob, 'left'>): Pacing {
  let fastest = 0;
  return {
    slots: left.map(([slots]) => slots),
    paces: left.map(([, ms]) => (fastest = Math.max(fastest, 1 / Math.max(1, ms)))),
  };
}

/** Between points straight, as work that any slot can do; beyond the last no faster. */
function paceAt({ slots, paces }: Pacing, at: number): number {
  let place = 0;
  while (place < slots.length && at > (slots[place] ?? 0)) place++;
  const [from, paceFrom] = [slots[place - 1] ?? 0, paces[place - 1] ?? 0];
  const [to, paceTo] = [slots[place] ?? from, paces[place] ?? paceFrom];
  return to === from ? paceTo : paceFrom + ((paceTo - paceFrom) * (at - from)) / (to - from);
}

/** Part of its way that a job goes in a ms on so many slots: straight between points, as work that any slot can do. */
export const paceOn = (job: Pick<PlannedJob, 'left'>, slots: number): number => paceAt(pacingOf(job), slots);

/** The fewest slots on which a job ends as soon as on any: more bring it nothing. */
const mostFor = ({ left }: PlannedJob): number => {
  const soonest = left.at(-1)?.[1] ?? 0;
  return left.find(([, ms]) => ms <= soonest)?.[0] ?? 0;
};

/** A job on its way. */
interface Going {
  readonly place: number;
  readonly job: PlannedJob;
  readonly pacing: Pacing;
  /** All its slot time, as on one slot: times a pace the slots that it keeps busy in the mean. */
  readonly slotMs: number;
  /** Part of its way that is left. */
  rest: number;
}

/** What following plans has cost, in paces that were looked up, and how many of them may be. */
export interface Effort {
  steps: number;
  readonly most: number;
}

/**
 * Paces of jobs that have slots of their own. What they leave idle at their barriers is shared by weight, as production
 * shares it: it raises those with the fewest slots to a level, of which all together keep no more busy than there are.
 */
function pacesOn(
  totalSlots: number,
  jobs: readonly Going[],
  { given, effort }: { readonly given: readonly number[]; readonly effort: Effort },
): readonly number[] {
  const paceFor = ({ place, job, pacing }: Going, level: number): number => {
    effort.steps += 1;
    return paceAt(pacing, Math.max(given[place] ?? 0, level * job.weight));
  };
  const isRoomAt = (level: number): boolean => {
    let busy = 0;
    for (const going of jobs) {
      busy += going.slotMs * paceFor(going, level);
      if (busy > totalSlots) return false;
    }
    return true;
  };
  // None goes on faster above the last point of its bid.
  const fastest = jobs.reduce(
    (most, { job, pacing }) => Math.max(most, Math.ceil((pacing.slots.at(-1) ?? 0) / job.weight)),
    0,
  );
  let [low, high] = [0, Math.min(Math.floor(totalSlots), fastest)];
  while (low < high) {
    const level = Math.ceil((low + high) / 2);
    if (isRoomAt(level)) low = level;
    else high = level - 1;
  }
  return jobs.map((going) => paceFor(going, low));
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
 * others leave idle. Where that would cost more than it may, what it is worth is not known: -Infinity.
 */
export function followPlan(
  totalSlots: number,
  jobs: readonly PlannedJob[],
  precedence: Precedence,
  effort: Effort = { steps: 0, most: Infinity },
): PlannedEnds {
  const now = fill(totalSlots, precedence, (place) => mostNow(jobs[place] ?? idle));
  const most = jobs.map(mostFor);
  let going = precedence.order.flatMap((place): readonly Going[] => {
    const job = jobs[place] ?? idle;
    const slotMs = (job.left[0]?.[0] ?? 0) * (job.left[0]?.[1] ?? 0);
    return (most[place] ?? 0) > 0 ? [{ place, job, pacing: pacingOf(job), slotMs, rest: 1 }] : [];
  });
  let [given, atMs, worth] = [now, 0, 0];
  while (going.length > 0) {
    const paces = pacesOn(totalSlots, going, { given, effort });
    const lastsMs = going.reduce(
      (least, { rest }, index) => Math.min(least, rest / (paces[index] ?? 0)),
      Infinity,
    );
    if (!Number.isFinite(lastsMs) || effort.steps > effort.most) return { worth: -Infinity, now };
    atMs += lastsMs;
    const still: Going[] = [];
    for (const [index, each] of going.entries()) {
      each.rest -= lastsMs * (paces[index] ?? 0);
      if (each.rest > roundingOf) still.push(each);
      else worth += endsAt(each.job, atMs);
    }
    going = still;
    const order = going.map(({ place }) => place);
    given = fill(totalSlots, { order, shares: precedence.shares }, (place) => most[place] ?? 0);
  }
  return { worth, now };
}

const roundingOf = 1e-9;
const idle: PlannedJob = { left: [], asks: 0, utility: { points: [] }, weight: 0 };
const endsAt = ({ utility, weight }: PlannedJob, atMs: number): number => weight * utilityAt(utility, atMs);
