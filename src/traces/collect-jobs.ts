import { InvalidInputError } from '../contracts/errors.ts';
import type { TraceJob } from './trace-job.ts';

/** Which jobs of a trace to keep. */
export interface CollectLimits {
  /** Reading stops after this many jobs (of those that `keep` takes). */
  readonly maxJobs?: number;
  /** All unless told. */
  readonly keep?: (job: TraceJob) => boolean;
}

const MAX_JOBS = 1_000_000;

/**
 * The first jobs of a trace, in order of arrival (as read where arrivals tie), the first arriving at 0. Jobs of a
 * trace without arrivals keep their order and have none. Throws `InvalidInputError` where some have arrivals and
 * others not, or where over a million jobs are asked for.
 */
export async function collectJobs(
  jobs: AsyncIterable<TraceJob>,
  limits: CollectLimits = {},
): Promise<readonly TraceJob[]> {
  const { maxJobs = MAX_JOBS, keep = () => true } = limits;
  if (maxJobs > MAX_JOBS) throw new InvalidInputError(`maxJobs is over ${MAX_JOBS}`, { maxJobs });
  const kept: TraceJob[] = [];
  if (maxJobs < 1) return kept;
  for await (const job of jobs) {
    if (!keep(job)) continue;
    kept.push(job);
    if (kept.length >= maxJobs) break;
  }
  const arrivals = kept.flatMap((job) => job.submittedAtMs ?? []);
  if (arrivals.length === 0) return kept;
  if (arrivals.length < kept.length) throw new InvalidInputError('some jobs of the trace have no arrival');
  const firstMs = arrivals.reduce((a, b) => Math.min(a, b));
  return kept
    .map((job) => ({ ...job, submittedAtMs: (job.submittedAtMs ?? firstMs) - firstMs }))
    .sort((a, b) => a.submittedAtMs - b.submittedAtMs);
}
