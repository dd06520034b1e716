import { atRankOfBoth, interpolated, type SortedNumbers } from '../../../lib/sorted-numbers.ts';
import type { LateTask } from './rank-by-time-left.ts';

/** Progress per millisecond at a time per task; 0 for one that never ends. */
export const rateOf = (msPerTask: number): number =>
  msPerTask === Infinity ? 0 : 1 / Math.max(1, msPerTask);

/**
 * The progress rate below which a task is slow: a percentile of the rates of running tasks and finished ones (1 over
 * their run time) together. Undefined without tasks.
 *
 * Source: LATE §4, SlowTaskThreshold. The population and the interpolation are our choice. A rate is computed from
 * a time in one place only, so that equal tasks have exactly equal rates and none of them is below the others.
 */
export function slowTaskRate(
  tasks: readonly LateTask[],
  runMs: SortedNumbers,
  threshold: number,
): number | undefined {
  const times = Float64Array.from(tasks, ({ msPerTask }) => msPerTask).sort();
  const size = times.length + runMs.size;
  return interpolated(threshold, size, (rank) => {
    const msPerTask = atRankOfBoth(runMs, times, size - 1 - rank);
    return msPerTask === undefined ? undefined : rateOf(msPerTask);
  });
}
