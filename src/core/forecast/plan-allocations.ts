import type { Worker } from '../../contracts/job-spec.ts';
import type { PlanAllocation } from '../../contracts/plans.ts';
import { listPrices, type Prices } from '../../contracts/prices.ts';
import { quantile } from '../../lib/quantiles.ts';
import type { Rng } from '../../lib/rng.ts';
import { computeDollars, tallyDollars } from '../model/cost.ts';
import { allocationGrid } from './forecast-table.ts';
import type { JobProfile, StageProfile } from './job-profile.ts';
import { RunSimulator } from './run-simulator.ts';
import { timesAt } from './run-times.ts';

/** An allocation meets a deadline if so many of its simulated runs do. */
const sureShare = 0.95;
/** Simulated runs of each allocation, and task ends of all: a few seconds of a third of a core. */
const mostRuns = 200;
const mostEvents = 2_000_000;
/** A job that is too large for so many runs of all allocations is looked at on fewer, down to so few. */
const wantedRuns = 20;
const mostAllocations = 20;
const leastAllocations = 5;
/** Draws of how far runs are from the profile, also of fewer simulated ones: those of a large job are much alike. */
const leastDraws = 20;

/** What an attempt asks for beside its worker's time. */
const requestsOfAnAttempt = { writeUnits: 5, readUnits: 1.5, put: 1, get: 2, lambda: 1 } as const;
/** What a job asks for once: submission, plan, finish. As counted for a job of two stages on the embedded stack. */
const requestsOfAJob = {
  ...{ api: 1, states: 5, lambda: 4, writeUnits: 31, readUnits: 80, put: 6, get: 10, list: 2 },
  ...{ logBytes: 9_000, coordinatorMbMs: 4_400_000 },
} as const;
/** Time in which an environment of Lambda starts, which is billed and in no attempt's time: each slot has one to start. */
const coldStartMs = 600;
/** Memory of the function that schedules it, in MB, while the job lasts. */
const schedulerMb = 512;

const usual: Worker = { kind: 'lambda', size: 'medium' };

/** What allocations are judged by. */
export interface AllocationTerms {
  /** Numbers of slots, each at least 1. */
  readonly slots: readonly number[];
  /** What attempts of each stage run on, in the profile's order. */
  readonly workers: readonly Worker[];
  readonly deadlineMs?: number | undefined;
  readonly budgetDollars?: number | undefined;
  readonly prices?: Prices;
  /**
   * σ: how far a run's work is from what the profile says, as the spread of a log-normal factor about 1. The less the
   * profile rests on, the more. 0: as the profile has it.
   */
  readonly spread: number;
  readonly rng: Rng;
}

/** Allocations by slots, and how many runs of each were simulated. */
export interface PlannedAllocations {
  readonly allocations: readonly PlanAllocation[];
  readonly runs: number;
  readonly cheapest: number | undefined;
}

/** Mean dollars of an attempt of a stage on `slots` slots; what fails is paid for as what does not. */
function attemptDollars(stage: StageProfile, slots: number, worker: Worker, prices: Prices): number {
  const times = timesAt(stage.runs, slots);
  const all = [...times.cold, ...times.first, ...times.later];
  const sum = all.reduce((total, runMs) => total + computeDollars(worker, runMs, prices), 0);
  const mean = all.length === 0 ? 0 : sum / all.length;
  return (mean + tallyDollars(requestsOfAnAttempt, prices)) / (1 - stage.failureShare);
}

/** Mean dollars of all attempts of a job. */
const workDollars = (
  profile: JobProfile,
  slots: number,
  workers: readonly Worker[],
  prices: Prices,
): number =>
  profile.stages.reduce(
    (sum, stage, index) => sum + stage.tasks * attemptDollars(stage, slots, workers[index] ?? usual, prices),
    0,
  );

/** What it costs to start an environment of Lambda for each slot that a stage can use, of the stage that uses the most. */
const startDollars = (
  profile: JobProfile,
  slots: number,
  workers: readonly Worker[],
  prices: Prices,
): number =>
  profile.stages.reduce((most, { tasks }, index) => {
    const worker = workers[index] ?? usual;
    if (worker.kind !== 'lambda') return most;
    return Math.max(most, Math.min(slots, tasks) * computeDollars(worker, coldStartMs, prices));
  }, 0);

/** A draw of a log-normal factor with median 1: the sum of twelve uniform draws is normal enough. */
function factor(spread: number, rng: Rng): number {
  if (spread === 0) return 1;
  let sum = -6;
  for (let draw = 0; draw < 12; draw++) sum += rng.next();
  return Math.exp(spread * sum);
}

const rounded = (value: number, digits: number): number => Math.round(value * 10 ** digits) / 10 ** digits;

const tasksOf = ({ stages }: JobProfile): number => stages.reduce((sum, { tasks }) => sum + tasks, 0);

/** Numbers of slots up to `most` on which a job is planned where nobody names them: the fewer the larger it is. */
export function plannedSlots(profile: JobProfile, most: number): readonly number[] {
  const widest = Math.max(...profile.stages.map(({ tasks }) => tasks));
  const affordable = Math.floor(mostEvents / (wantedRuns * Math.max(1, tasksOf(profile))));
  const count = Math.min(mostAllocations, Math.max(leastAllocations, affordable));
  return allocationGrid(Math.min(most, widest), count);
}

/**
 * What a job is foretold to take and to cost on each number of slots, by simulated runs: quantiles of its time, the
 * probability of its deadline, dollars. Of allocations that meet the deadline in 95 % of the runs the cheapest is marked,
 * of equally cheap ones that with the fewest slots. The larger the job, the fewer runs, at least one of each.
 */
export function planAllocations(profile: JobProfile, terms: AllocationTerms): PlannedAllocations {
  const { workers, spread, rng, prices = listPrices, deadlineMs, budgetDollars } = terms;
  const slots = [...new Set(terms.slots)].sort((a, b) => a - b);
  const affordable = Math.floor(mostEvents / Math.max(1, tasksOf(profile) * slots.length));
  const runs = Math.max(1, Math.min(mostRuns, affordable));
  const simulator = new RunSimulator(profile);
  const onceDollars = tallyDollars(requestsOfAJob, prices);
  // The same for each allocation: else the luckiest would be the cheapest.
  const lucks = Array.from({ length: Math.max(leastDraws, runs) }, () => factor(spread, rng));
  const rows = slots.map((count): PlanAllocation => {
    const ends: number[] = [];
    const dollars: number[] = [];
    const work = workDollars(profile, count, workers, prices);
    const once = onceDollars + startDollars(profile, count, workers, prices);
    const ran = Array.from({ length: runs }, () => simulator.run(count, rng));
    for (const [draw, luck] of lucks.entries()) {
      const endMs = (ran[draw % runs] ?? 0) * luck;
      ends.push(endMs);
      const scheduler = tallyDollars({ coordinatorMbMs: schedulerMb * endMs }, prices);
      dollars.push(work * luck + once + scheduler);
    }
    return rowOf({ slots: count, ends, dollars, deadlineMs, budgetDollars });
  });
  const cheapest = rows
    .filter(({ deadlineProbability }) => (deadlineProbability ?? 0) >= sureShare)
    .reduce<PlanAllocation | undefined>(
      (best, row) => (best === undefined || row.dollars < best.dollars ? row : best),
      undefined,
    );
  return {
    allocations: rows.map((row) => ({ ...row, isCheapest: row === cheapest })),
    runs,
    cheapest: cheapest?.slots,
  };
}

interface Simulated {
  readonly slots: number;
  readonly ends: readonly number[];
  readonly dollars: readonly number[];
  readonly deadlineMs: number | undefined;
  readonly budgetDollars: number | undefined;
}

function rowOf({ slots, ends, dollars, deadlineMs, budgetDollars }: Simulated): PlanAllocation {
  const times = ends.toSorted((a, b) => a - b);
  const costs = dollars.toSorted((a, b) => a - b);
  const at = (share: number): number => Math.round(quantile(times, share) ?? 0);
  const meanOf = (values: readonly number[]): number =>
    values.reduce((sum, each) => sum + each, 0) / Math.max(1, values.length);
  const met = deadlineMs === undefined ? 0 : ends.filter((each) => each <= deadlineMs).length;
  const mean = rounded(meanOf(costs), 6);
  return {
    slots,
    completionMs: {
      ...{ p10: at(0.1), p50: at(0.5), p90: at(0.9), p95: at(0.95), p99: at(0.99) },
      mean: Math.round(meanOf(times)),
    },
    deadlineProbability: deadlineMs === undefined ? null : rounded(met / ends.length, 3),
    dollars: mean,
    dollarsP95: rounded(quantile(costs, 0.95) ?? 0, 6),
    isCheapest: false,
    isWithinBudget: budgetDollars === undefined ? null : mean <= budgetDollars,
  };
}
