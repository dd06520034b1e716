import { ascending, mean, quantile } from '../lib/quantiles.ts';
import type { AttemptOutcome, JobOutcome, SimulationResult } from './outcome.ts';

/** Jobs of about one size; `tasks` names the sizes. Times from arrival to the last commit. */
export interface SizeBin {
  readonly tasks: string;
  readonly jobs: number;
  readonly meanS: number;
  readonly p50S: number;
  readonly p95S: number;
}

/** What `simulate --json` tells. Times in seconds; failed jobs count in none of the completion times. */
export interface SimulationMetrics {
  readonly policy: string;
  readonly seed: string;
  readonly jobs: number;
  readonly failed: number;
  /** Why the first of those failed that did; absent where none did. */
  readonly error?: string;
  readonly completionS: {
    readonly mean: number;
    readonly p50: number;
    readonly p90: number;
    readonly p95: number;
    readonly p99: number;
  };
  /** Bins without jobs are left out. */
  readonly bins: readonly SizeBin[];
  /** Slots times the time that they were taken, whatever for. */
  readonly slotSeconds: number;
  /** The part of it that went to attempts whose result did not count. */
  readonly wastedSlotSeconds: number;
  readonly copies: { readonly started: number; readonly won: number };
  /** Over stages of at least two tasks: the longest task's time over the median task's. */
  readonly slowestToMedian: { readonly p50: number; readonly p95: number };
  readonly deadlines: { readonly met: number; readonly missed: number };
  readonly dollars: number;
}

/** What a job's copies came to. `early`: started before half of their stage's tasks were done. */
export interface CopyCounts {
  readonly started: number;
  readonly won: number;
  readonly early: number;
}

/** Dolly's bins by number of tasks: upper ends, the last without. Source: ground truth §4.6. */
const binEnds = [10, 50, 150, 500, Infinity] as const;

const round = (value: number): number => Math.round(value * 1_000) / 1_000;
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const isCopy = ({ reason }: AttemptOutcome): boolean =>
  reason === 'backup' || reason === 'clone' || reason === 'restart';

/** Time that an attempt has kept its slot from others. */
export const slotMsOf = ({ takenAtMs, leftAtMs }: AttemptOutcome): number => leftAtMs - takenAtMs;

/** From a job's arrival to its last commit, in milliseconds. */
export const completionMsOf = ({ arrivedAtMs, completedAtMs }: JobOutcome): number =>
  completedAtMs - arrivedAtMs;

/** Slot time of a job, and the part of it whose result did not count, in milliseconds. */
export function slotTimeOf({ attempts }: JobOutcome): { usedMs: number; wastedMs: number } {
  return {
    usedMs: sum(attempts.map(slotMsOf)),
    wastedMs: sum(attempts.filter(({ ending }) => ending !== 'won').map(slotMsOf)),
  };
}

/** Copies that a job started (backups, clones, restarts), how many won and how many came early. */
export function copyCountsOf({ attempts, stages }: JobOutcome): CopyCounts {
  const copies = attempts.filter(
    (attempt) => isCopy(attempt) && attempt.ending !== 'refused' && attempt.ending !== 'declined',
  );
  const halves = stages.map((stage, index) => {
    const commits = attempts
      .filter((each) => each.stage === index && each.ending === 'won')
      .map(({ leftAtMs }) => leftAtMs);
    return ascending(commits)[Math.ceil(stage.tasks / 2) - 1] ?? Infinity;
  });
  return {
    started: copies.length,
    won: copies.filter(({ ending }) => ending === 'won').length,
    early: copies.filter(({ stage, takenAtMs }) => takenAtMs < (halves[stage] ?? Infinity)).length,
  };
}

function binsOf(jobs: readonly JobOutcome[]): SizeBin[] {
  return binEnds.flatMap((end, place) => {
    const begin = (binEnds[place - 1] ?? 0) + 1;
    const times = ascending(
      jobs.filter(({ tasks }) => tasks >= begin && tasks <= end).map((job) => completionMsOf(job) / 1_000),
    );
    if (times.length === 0) return [];
    const label = end === Infinity ? `${begin}+` : `${begin}-${end}`;
    return [
      {
        tasks: label,
        jobs: times.length,
        meanS: round(mean(times) ?? 0),
        p50S: round(quantile(times, 0.5) ?? 0),
        p95S: round(quantile(times, 0.95) ?? 0),
      },
    ];
  });
}

function slowestToMedian(jobs: readonly JobOutcome[]): { p50: number; p95: number } {
  const ratios = jobs.flatMap(({ stages }) =>
    stages.flatMap(({ taskMs }) => {
      const times = ascending(taskMs);
      const middle = quantile(times, 0.5) ?? 0;
      return times.length < 2 || middle === 0 ? [] : [(times.at(-1) ?? 0) / middle];
    }),
  );
  const sorted = ascending(ratios);
  return { p50: round(quantile(sorted, 0.5) ?? 0), p95: round(quantile(sorted, 0.95) ?? 0) };
}

function deadlinesOf(jobs: readonly JobOutcome[]): { met: number; missed: number } {
  const bound = jobs.filter(({ deadlineMs }) => deadlineMs !== undefined);
  const met = bound.filter(
    (job) => job.state === 'succeeded' && completionMsOf(job) <= (job.deadlineMs ?? 0),
  ).length;
  return { met, missed: bound.length - met };
}

/** Sums a run up. `policy` joins the names where jobs ran under several. Zeros where there is nothing to measure. */
export function metricsOf({ jobs, seed }: SimulationResult): SimulationMetrics {
  const done = jobs.filter(({ state }) => state === 'succeeded');
  const error = jobs.find(({ state }) => state !== 'succeeded')?.error;
  const times = ascending(done.map((job) => completionMsOf(job) / 1_000));
  const at = (share: number): number => round(quantile(times, share) ?? 0);
  const slots = jobs.map(slotTimeOf);
  const copies = jobs.map(copyCountsOf);
  return {
    policy: [...new Set(jobs.map(({ policy }) => policy))].join('+'),
    seed,
    jobs: jobs.length,
    failed: jobs.length - done.length,
    ...(error === undefined ? {} : { error }),
    completionS: { mean: round(mean(times) ?? 0), p50: at(0.5), p90: at(0.9), p95: at(0.95), p99: at(0.99) },
    bins: binsOf(done),
    slotSeconds: round(sum(slots.map(({ usedMs }) => usedMs)) / 1_000),
    wastedSlotSeconds: round(sum(slots.map(({ wastedMs }) => wastedMs)) / 1_000),
    copies: { started: sum(copies.map(({ started }) => started)), won: sum(copies.map(({ won }) => won)) },
    slowestToMedian: slowestToMedian(done),
    deadlines: deadlinesOf(jobs),
    dollars: Math.round(sum(jobs.map(({ dollars }) => dollars)) * 1e6) / 1e6,
  };
}

/** Quartiles and the ninth decile of a reduction over jobs: 0.5 means halved, negative means worse. */
export interface ReductionQuantiles {
  readonly mean: number;
  readonly p25: number;
  readonly p50: number;
  readonly p75: number;
  readonly p90: number;
}

function quantilesOf(values: readonly number[]): ReductionQuantiles {
  const sorted = ascending(values);
  const at = (share: number): number => round(quantile(sorted, share) ?? 0);
  return { mean: round(mean(sorted) ?? 0), p25: at(0.25), p50: at(0.5), p75: at(0.75), p90: at(0.9) };
}

/**
 * By how much each job became shorter, and used less slot time, than in a run of the same scenario and seed under
 * another policy: (current − modified) / current. Jobs that failed in either run are left out; zeros for none.
 *
 * Source: Mantri §6.1 (ground truth §1.3).
 */
export function reductionsOf(
  current: SimulationResult,
  modified: SimulationResult,
): { readonly completion: ReductionQuantiles; readonly slotTime: ReductionQuantiles } {
  const completion: number[] = [];
  const slotTime: number[] = [];
  for (const job of current.jobs) {
    const other = modified.jobs[job.index];
    if (other === undefined || job.state !== 'succeeded' || other.state !== 'succeeded') continue;
    const before = { ms: completionMsOf(job), slotMs: slotTimeOf(job).usedMs };
    if (before.ms > 0) completion.push((before.ms - completionMsOf(other)) / before.ms);
    if (before.slotMs > 0) slotTime.push((before.slotMs - slotTimeOf(other).usedMs) / before.slotMs);
  }
  return { completion: quantilesOf(completion), slotTime: quantilesOf(slotTime) };
}
