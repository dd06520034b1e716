import {
  countBelow,
  countBelowIn,
  quantileOf,
  quantileIn,
  type SortedNumbers,
} from '../../lib/sorted-numbers.ts';
import { meanMs } from '../model/stage-statistics.ts';
import { reportedMs } from './progress-rate.ts';
import type { AttemptView, StageView } from '../model/job-view.ts';

/** How long a byte takes in a stage: samples of finished and of running attempts, both ascending. */
export interface RateSamples {
  readonly finished: SortedNumbers;
  readonly running: Float64Array;
  /** Sum of the running samples. */
  readonly runningSum: number;
  /** From the decision to launch until an attempt runs. */
  readonly lagMs: number;
}

/** Milliseconds per byte of a running attempt so far; undefined before its first byte. */
export function msPerByteOf(attempt: AttemptView): number | undefined {
  const bytesRead = attempt.progress?.bytesRead ?? 0;
  const ms = reportedMs(attempt);
  return bytesRead <= 0 || ms <= 0 ? undefined : ms / bytesRead;
}

/**
 * The samples of a stage. `running` in any order.
 *
 * Source: Mantri §5.5, processRate (from reports and from finished tasks) and schedLag.
 */
export function rateSamples({ statistics }: StageView, running: readonly AttemptView[]): RateSamples {
  const rates = Float64Array.from(running.flatMap((attempt) => msPerByteOf(attempt) ?? [])).sort();
  return {
    finished: statistics.msPerByte,
    running: rates,
    runningSum: rates.reduce((sum, rate) => sum + rate, 0),
    lagMs: meanMs(statistics.lag),
  };
}

/** Number of samples. */
export const sampleCount = ({ finished, running }: RateSamples): number => finished.size + running.length;

/**
 * E(t_new): mean time of a new copy of a task that reads `bytes`, on a machine `locationFactor` times as slow as
 * others. Undefined without samples.
 */
export function newCopyMs(samples: RateSamples, bytes: number, locationFactor = 1): number | undefined {
  const count = sampleCount(samples);
  if (count === 0) return undefined;
  return ((samples.finished.sum + samples.runningSum) / count) * locationFactor * bytes + samples.lagMs;
}

/** P(t_new < `limitMs`): the share of samples at which a new copy would take less. 0 without samples. */
export function probabilityBelow(
  samples: RateSamples,
  bytes: number,
  limitMs: number,
  locationFactor = 1,
): number {
  const count = sampleCount(samples);
  if (count === 0) return 0;
  const rate = (limitMs - samples.lagMs) / (bytes * locationFactor);
  return (countBelow(samples.finished, rate) + countBelowIn(samples.running, rate)) / count;
}

/** The stage's ordinary milliseconds per byte: the median of finished attempts, before those of running ones. */
export function medianMsPerByte({ finished, running }: RateSamples): number | undefined {
  return quantileOf(finished, 0.5) ?? quantileIn(running, 0.5);
}
