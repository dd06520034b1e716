import { meanWaitMs } from './stage-totals.ts';
import { ascending } from '../../lib/quantiles.ts';
import { slotPasts, type StageProfile } from './job-profile.ts';

/** What earlier runs tell of the tasks of a stage, all of them together. Times in ms. */
export interface StageForecast {
  readonly tasks: number;
  /** What a task takes in the mean, queueing left aside, and its standard deviation over that. */
  readonly meanMs: number;
  readonly variation: number;
  /** From a slot's grant to the begin of an attempt that waits for it, in the mean; and of any, with those that do not. */
  readonly queueMs: number;
  readonly waitMs: number;
  /**
   * How long a task has run, in the mean, by `ms` after its begin, E[min(X, ms)]; and the share of tasks that run still.
   */
  within(ms: number): { readonly withinMs: number; readonly share: number };
}

export function stageForecast(stage: StageProfile): StageForecast {
  const { runs, tasks, queueMs } = stage;
  const run = runs[runs.length >> 1];
  const sample = ascending(slotPasts.flatMap((past) => run?.times[past] ?? []));
  const size = Math.max(1, sample.length);
  const sums = [0];
  for (const ms of sample) sums.push((sums.at(-1) ?? 0) + ms);
  const meanMs = (sums.at(-1) ?? 0) / size;
  const variance = sample.reduce((sum, ms) => sum + (ms - meanMs) ** 2, 0) / size;
  return {
    tasks,
    meanMs,
    variation: meanMs <= 0 ? 0 : Math.sqrt(variance) / meanMs,
    queueMs: queueMs.reduce((sum, ms) => sum + ms, 0) / Math.max(1, queueMs.length),
    waitMs: meanWaitMs(stage),
    within: (ms) => {
      const ended = endedBy(sample, ms);
      const share = 1 - ended / size;
      return { withinMs: (sums[ended] ?? 0) / size + share * Math.max(0, ms), share };
    },
  };
}

/** How many of an ascending sample are at most `ms`. */
function endedBy(sample: readonly number[], ms: number): number {
  let [low, high] = [0, sample.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sample[middle] ?? 0) <= ms) low = middle + 1;
    else high = middle;
  }
  return low;
}
