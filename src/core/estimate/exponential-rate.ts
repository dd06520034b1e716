import type { SortedNumbers } from '../../lib/sorted-numbers.ts';
import type { AttemptView } from '../model/job-view.ts';

/** How the simple exponential estimator smooths. */
export interface Smoothing {
  /** Time over which older readings lose their weight. */
  readonly smoothingMs: number;
  /** First reports that are left out, since start-up is not typical. */
  readonly skippedReports: number;
}

/**
 * Progress per millisecond, exponentially smoothed over reports; a longer gap weighs more. Undefined before two
 * reports beyond those skipped.
 *
 * Source: Hadoop 2, `SimpleExponentialSmoothing`: α = 1 − exp(−Δt / λ).
 */
export function exponentialRate(
  { reports, progress }: AttemptView,
  { smoothingMs, skippedReports }: Smoothing,
): number | undefined {
  const total = progress?.bytesTotal ?? 0;
  if (total <= 0) return undefined;
  let rate: number | undefined;
  for (let place = Math.max(1, skippedReports + 1); place < reports.length; place++) {
    const [before, report] = [reports[place - 1], reports[place]];
    if (before === undefined || report === undefined) continue;
    const gapMs = report.workedMs - before.workedMs;
    const raw = (report.bytesRead - before.bytesRead) / total / gapMs;
    const weight = 1 - Math.exp(-gapMs / smoothingMs);
    rate = rate === undefined ? raw : weight * raw + (1 - weight) * rate;
  }
  return rate;
}

/**
 * What a new copy takes by the run times of finished tasks: the upper end of the mean's confidence interval, and a
 * margin of half a standard deviation, at most a quarter of it. Undefined without finished tasks.
 *
 * Source: Hadoop 2, `SimpleExponentialTaskRuntimeEstimator.estimatedNewAttemptRuntime`.
 */
export function exponentialNewCopyMs(runMs: SortedNumbers): number | undefined {
  if (runMs.size === 0) return undefined;
  const mean = runMs.sum / runMs.size;
  let squares = 0;
  for (const bucket of runMs.buckets) for (const ms of bucket) squares += (ms - mean) ** 2;
  const deviation = Math.sqrt(squares / runMs.size);
  const upper = mean + (1.96 * deviation) / Math.sqrt(runMs.size);
  return upper + Math.min(upper * 0.25, deviation / 2);
}
