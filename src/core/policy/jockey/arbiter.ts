import type { SlotBid } from '../../capacity/ledger.ts';
import { divideByMarginalUtility, type WorthPoints } from './marginal-utility.ts';
import { type Effort, followPlan, type PlannedEnds, type PlannedJob, type Precedence } from './slot-plan.ts';
import { utilityAt } from './utility.ts';

interface Bidder {
  readonly bid: SlotBid;
  /** Its weight, by which what slots bring it counts. */
  readonly weight: number;
  /** Slots of its own that it has now. */
  readonly has: number;
}

/**
 * What a division may cost, in paces that are looked up: a hundredth of a second of one core. A resident divides as often as
 * its jobs bid, every second or so where deadlines are short, and all of them wait for it.
 */
const mostSteps = 150_000;
/** A plan is better where it is worth so much more: what is less is not worth moving slots for. */
const leastGain = 1e-3;

/** When what the end of a job is worth begins to fall; ms from now. */
const dueMs = ({ utility: { points } }: PlannedJob): number =>
  points.findLast(([, worth]) => worth >= (points[0]?.[1] ?? 0))?.[0] ?? Infinity;

/** Slot time of a job on as few slots as it may have, for what a slot's time brings: short ones bring it first. */
const workOf = ({ left, weight }: PlannedJob): number => ((left[0]?.[0] ?? 0) * (left[0]?.[1] ?? 0)) / weight;

/** Places by their keys, among equals by themselves. */
const ascending = (keys: readonly number[]): readonly number[] =>
  [...keys.keys()].sort((a, b) => (keys[a] ?? 0) - (keys[b] ?? 0) || a - b);

/** What slots are worth to a job that keeps as many to its end, up to those that it asks for. */
const worthPoints = ({ left, asks, utility }: PlannedJob): WorthPoints =>
  left.flatMap(([slots, ms]): WorthPoints => (slots <= asks ? [[slots, utilityAt(utility, ms)]] : []));

/** Plans to choose from, first the one that moves no slots. */
function plansFor(
  totalSlots: number,
  jobs: readonly PlannedJob[],
  bidders: readonly Bidder[],
): readonly Precedence[] {
  const has = bidders.map((bidder) => bidder.has);
  const due = ascending(jobs.map(dueMs));
  const short = ascending(jobs.map(workOf));
  const all = jobs.map(() => Infinity);
  const weights = jobs.reduce((sum, { weight }) => sum + weight, 0);
  const marginal = jobs.map((job) => ({ bid: worthPoints(job), weight: job.weight }));
  return [
    { order: ascending(has.map((slots) => -slots)), shares: has },
    { order: due, shares: all },
    { order: short, shares: all },
    { order: due, shares: divideByMarginalUtility(totalSlots, marginal) },
    { order: due, shares: jobs.map(({ weight }) => Math.floor((totalSlots * weight) / weights)) },
  ];
}

/** A change of a plan: one job elsewhere in the order, or with another share. */
type PlanChange = (plan: Precedence) => Precedence;

function changesOf(jobs: readonly PlannedJob[]): readonly PlanChange[] {
  const moves = jobs.flatMap((_, place) =>
    jobs.map((__, at): PlanChange => ({ order, shares }) => ({
      order: order.filter((other) => other !== place).toSpliced(at, 0, place),
      shares,
    })),
  );
  const others = jobs.flatMap(({ left }, place) =>
    [...left.map(([slots]) => slots), Infinity].map((slots): PlanChange => ({ order, shares }) => ({
      order,
      shares: shares.with(place, slots),
    })),
  );
  return [...moves, ...others];
}

/**
 * Divides slots among jobs so that all their ends together are worth the most. Not by what more slots would bring each
 * if it kept them to its end: that favours large jobs, which gain the most from them, and keeps all small ones waiting,
 * though their slots would soon be free for others. So whole plans are compared: who comes before whom, and with how
 * many slots, until all have ended. The best of a few (as now; by due times; the shortest first; by marginal utility; fair
 * shares) is bettered job by job while that brings more, and what it gives each now is the answer, in their order. Each
 * has one slot, as far as there are so many, that none starves; none gets more than it asks for. Of so many jobs that no
 * two plans can be compared, those that are due first come first.
 *
 * Source: the arbiter that Jockey (EuroSys 2012), §4.4 and §7, leaves to future work. The search is by insertion, as for
 * other problems of sequencing (Nawaz, Enscore and Ham, Omega 11, 1983).
 */
export function divideSlots(
  totalSlots: number,
  bidders: readonly Bidder[],
  effort: Effort = { steps: 0, most: mostSteps },
): readonly number[] {
  const slots = Math.max(0, Math.floor(totalSlots));
  const jobs = bidders.map(({ bid: { left, asks, utility }, weight }): PlannedJob => ({
    left,
    asks,
    utility: { points: utility },
    weight,
  }));
  const follow = (plan: Precedence): Followed => ({ plan, ends: followPlan(slots, jobs, plan, effort) });
  const plans = plansFor(slots, jobs, bidders);
  const starts: Followed[] = [];
  for (const plan of plans) if (isLeft(effort)) starts.push(follow(plan));
  // Of very many jobs there are more changes than can be tried, or held.
  const changes = isLeft(effort) ? changesOf(jobs) : [];
  // From the best on: where a search ends depends on where it begins.
  let best = starts.reduce(better);
  for (const start of starts.toSorted((a, b) => b.ends.worth - a.ends.worth))
    best = better(best, bettered(start, changes, { follow, effort }));
  const byDue = plans[1];
  const isCompared = starts.filter(({ ends }) => ends.worth > -Infinity).length > 1;
  return (isCompared || byDue === undefined ? best : follow(byDue)).ends.now;
}

interface Followed {
  readonly plan: Precedence;
  readonly ends: PlannedEnds;
}

const isLeft = ({ steps, most }: Effort): boolean => steps < most;

/** The better of two; the first where there is hardly a difference. */
const better = (a: Followed, b: Followed): Followed => (b.ends.worth > a.ends.worth + leastGain ? b : a);

/** A plan with one change after another as long as they make it better. */
function bettered(
  start: Followed,
  changes: readonly PlanChange[],
  search: { readonly follow: (plan: Precedence) => Followed; readonly effort: Effort },
): Followed {
  let best = start;
  for (let [turn, vain] = [0, 0]; vain < changes.length && isLeft(search.effort); turn++) {
    const change = changes[turn % changes.length] ?? ((plan: Precedence) => plan);
    const found = better(best, search.follow(change(best.plan)));
    vain = found === best ? vain + 1 : 0;
    best = found;
  }
  return best;
}
