import { type RemainingStatistic, remainingStatistics as statistics } from '../../contracts/forecast.ts';
import { quantile } from '../../lib/quantiles.ts';
import type { Rng } from '../../lib/rng.ts';
import { amdahlRemainingMs } from './amdahl.ts';
import type { JobProfile } from './job-profile.ts';
import type { ProgressIndicator } from './progress-indicators.ts';
import { RunSimulator } from './run-simulator.ts';
import { meanWaitMs, stageTotals } from './stage-totals.ts';

export type { RemainingStatistic } from '../../contracts/forecast.ts';

/** Shares of runs that need no more than a statistic tells. */
const shares: readonly (readonly [RemainingStatistic, number])[] = [
  ['best', 0],
  ['quarter', 0.25],
  ['half', 0.5],
  ['three-quarters', 0.75],
  ['most', 0.95],
  ['worst', 1],
];

/**
 * C(p, a), Jockey's precomputed answer to how long a job still takes at progress p on a slots (§4.1): for each number of
 * slots and each of `buckets` + 1 points of progress from 0 to 1, the statistics of simulated runs, in ms.
 */
export interface CompletionTable {
  /** Ascending. */
  readonly slots: readonly number[];
  readonly buckets: number;
  /** By slots, then progress, then statistic. */
  readonly remainingMs: Float32Array;
}

export interface TableTerms {
  readonly indicator: ProgressIndicator;
  /** Numbers of slots, at least one, each at least 1. */
  readonly slots: readonly number[];
  /** Simulated runs of each; at least 1. */
  readonly runs: number;
  /** Parts into which progress is divided; 100 unless told. */
  readonly buckets?: number;
  readonly rng: Rng;
}

/** Looks at a run for each point of progress, were its progress even and its tasks without waits; and most of all. */
const looksPerBucket = 2;
const mostLooksPerBucket = 10;

/** A profile whose tasks take their waits, too. */
const withWaits = ({ stages }: JobProfile): JobProfile => ({
  stages: stages.map((stage) => {
    const waitMs = meanWaitMs(stage);
    const later = (times: readonly number[]): readonly number[] => times.map((ms) => ms + waitMs);
    const runs = stage.runs.map(({ slots, times }) => ({
      slots,
      times: { cold: later(times.cold), first: later(times.first), later: later(times.later) },
    }));
    return { ...stage, runs };
  }),
});

/** Simulates the job on each number of slots; a run that ends at T gives at each look at t the sample T − t. */
export function completionTable(profile: JobProfile, terms: TableTerms): CompletionTable {
  const { indicator, runs, buckets = 100, rng } = terms;
  const slots = terms.slots.toSorted((a, b) => a - b);
  const remainingMs = new Float32Array(slots.length * (buckets + 1) * statistics.length);
  const simulator = new RunSimulator(profile);
  const tasks = profile.stages.map((stage) => stage.tasks);
  const waiting = withWaits(profile);
  for (const [row, count] of slots.entries()) {
    const samples = Array.from({ length: buckets + 1 }, (): number[] => []);
    const whole = amdahlRemainingMs(stageTotals(profile, count), [], count);
    const longest = amdahlRemainingMs(stageTotals(waiting, count), [], count);
    // Where short tasks wait for long a run lasts many times as long as its work.
    const everyMs = Math.max(1, whole / (buckets * looksPerBucket), longest / (buckets * mostLooksPerBucket));
    for (let run = 0; run < runs; run++) {
      const looks: (readonly [number, number])[] = [];
      const endMs = simulator.run(count, rng, {
        everyMs,
        visit: (atMs, finished) => {
          const progress = indicator(tasks.map((each, stage) => (finished[stage] ?? 0) / each));
          looks.push([atMs, Math.min(buckets, Math.round(progress * buckets))]);
        },
      });
      for (const [atMs, bucket] of looks) samples[bucket]?.push(endMs - atMs);
    }
    // Progress that rounds to all is not the end: the last tasks may run for long still. Behind them nothing is left.
    if (samples[buckets]?.length === 0) samples[buckets] = [0];
    remainingMs.set(filled(samples.map(told)), row * (buckets + 1) * statistics.length);
  }
  return { slots, buckets, remainingMs };
}

function told(sample: readonly number[]): readonly number[] | undefined {
  if (sample.length === 0) return undefined;
  const sorted = sample.toSorted((a, b) => a - b);
  const sum = sorted.reduce((total, each) => total + each, 0);
  return [sum / sorted.length, ...shares.map(([, share]) => quantile(sorted, share) ?? 0)];
}

/** Points of progress that no run was seen at lie between those before and behind. */
function filled(points: readonly (readonly number[] | undefined)[]): number[] {
  const values: number[] = [];
  for (const [at, point] of points.entries()) {
    const before = points.findLastIndex((each, index) => index <= at && each !== undefined);
    const behind = points.findIndex((each, index) => index >= at && each !== undefined);
    const low = points[before] ?? points[behind] ?? [];
    const high = points[behind] ?? low;
    const share = point !== undefined || behind <= before ? 0 : (at - before) / (behind - before);
    for (const place of statistics.keys()) {
      const from = low[place] ?? 0;
      values.push(from + ((high[place] ?? from) - from) * share);
    }
  }
  return values;
}

/**
 * Remaining time of a job, in ms; between the table's points linearly by progress, and by the reciprocal of slots, as
 * shared work goes; beyond its slots that of the nearest.
 *
 * @param progress - by the indicator that the table was made with, in [0, 1].
 */
export function remainingMs(
  table: CompletionTable,
  { progress, slots, statistic }: { progress: number; slots: number; statistic: RemainingStatistic },
): number {
  const fewer = Math.max(
    0,
    table.slots.findLastIndex((count) => count <= slots),
  );
  const found = table.slots.findIndex((count) => count >= slots);
  const more = found < 0 ? table.slots.length - 1 : found;
  const low = atProgress(table, fewer, progress, statistic);
  if (fewer >= more) return low;
  const [few, many] = [1 / (table.slots[fewer] ?? 1), 1 / (table.slots[more] ?? 1)];
  return low + (atProgress(table, more, progress, statistic) - low) * ((few - 1 / slots) / (few - many));
}

function atProgress(
  { buckets, remainingMs }: CompletionTable,
  row: number,
  progress: number,
  statistic: RemainingStatistic,
): number {
  const place = Math.min(1, Math.max(0, progress)) * buckets;
  const at = (bucket: number): number =>
    remainingMs[(row * (buckets + 1) + bucket) * statistics.length + statistics.indexOf(statistic)] ?? 0;
  const below = Math.floor(place);
  const above = Math.ceil(place);
  return at(below) + (at(above) - at(below)) * (place - below);
}
