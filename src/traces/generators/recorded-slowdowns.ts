import { ascending, median, quantile } from '../../lib/quantiles.ts';
import type { TraceJob, TraceStage } from '../trace-job.ts';
import type { Slowdown } from './slowdown.ts';

/** Stages with fewer timed attempts say too little about their median. */
const MIN_ATTEMPTS = 5;

/** Denser towards the slow end, which is the one that matters. */
const PROBABILITIES = [
  0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9995, 0.9999, 1,
] as const;

/**
 * For each task of a job that succeeded, the duration of its successful attempt over the median of those in its
 * stage; empty for stages with fewer than five, or with a median of 0. Tasks without attempts count by their
 * work. Differences of input are not taken out. Losing copies are not in it, so a straggler that a backup
 * beat shows the backup's time: the true tail is heavier.
 */
export const recordedSlowdowns = (job: TraceJob): number[] => job.stages.flatMap(stageSlowdowns);

function stageSlowdowns(stage: TraceStage): number[] {
  const durationsMs = stage.tasks.flatMap((task) => {
    if (task.attempts === undefined) return task.workMs ?? [];
    return task.attempts.find((attempt) => attempt.outcome === 'succeeded')?.durationMs ?? [];
  });
  const middleMs = median(durationsMs);
  if (durationsMs.length < MIN_ATTEMPTS || middleMs === undefined || middleMs === 0) return [];
  return durationsMs.map((durationMs) => durationMs / middleMs);
}

/**
 * The quantile table of slowdowns in any order, to three decimals. Undefined for none. Zeros (an attempt that took no time)
 * become 0.001, since a slowdown is positive.
 */
export function slowdownTable(slowdowns: readonly number[]): Slowdown | undefined {
  const sorted = ascending(slowdowns);
  const points = PROBABILITIES.flatMap((p): [number, number][] => {
    const value = quantile(sorted, p);
    return value === undefined ? [] : [[p, Math.max(1, Math.round(value * 1000)) / 1000]];
  });
  return points.length === 0 ? undefined : { kind: 'empirical', points };
}
