import { JobFailedError } from '../contracts/errors.ts';
import type { JobId } from '../contracts/ids.ts';
import type { AttemptRecord } from '../contracts/records.ts';
import { type DurationMs, durationMs } from '../contracts/units.ts';
import type { TaskSpace } from '../ports/attempt-store.ts';
import { stragglersOfAttempts } from '../core/policy/dolly/straggler-rate.ts';
import type { StragglerStatistics } from '../ports/straggler-statistics.ts';
import { cleanUp, type CleanUpDeps } from './end-job.ts';
import { type LearnDeps, learnForecast, planToLearn } from './learn-forecast.ts';
import { type PublishDeps, publishOutput } from './publish-output.ts';
import { findJob } from './query-jobs.ts';
import { endLeftWorkers, endWorkers, type EndWorkersDeps } from './end-workers.ts';
import { stopAttempts } from './stop-attempts.ts';
import { tellLastCounts } from './tell-costs.ts';

export interface FinishDeps extends PublishDeps, CleanUpDeps, LearnDeps, EndWorkersDeps {
  /** How often copies have straggled in all jobs. */
  readonly stragglers?: StragglerStatistics;
}

/**
 * Publishes a job's output, each part by its committed attempt's upload, then `_SUCCESS`, and records the end. Then
 * waits up to `patienceMs` for copies that lost to stop, which may take them until their next report, cleans up, and
 * learns from the run: nobody waits for his output because of a straggler that nobody needs, or for what others may want
 * to know later. May be repeated from any point. Throws
 * `ConflictError` where another writer took the output, `JobFailedError` where the job was failed or cancelled.
 */
export async function finishJob(
  deps: FinishDeps,
  jobId: JobId,
  patienceMs: DurationMs = durationMs(0),
): Promise<void> {
  const job = await findJob(deps.jobs, jobId);
  if (job.state === 'failed' || job.state === 'cancelled')
    throw new JobFailedError(`job ${jobId} has ended`, { state: job.state });
  const ended = job.state === 'succeeded' ? job : await publishOutput(deps, job);
  const { shards } = ended;
  const [attempts, plan] = await Promise.all([
    shards === undefined ? [] : settleAttempts(deps, { jobId, shards }, patienceMs),
    planToLearn(deps, ended),
  ]);
  await cleanUp(deps, ended);
  if (patienceMs > 0) await endLeftWorkers(deps, jobId, attempts);
  // Last: nobody's slots wait for it.
  await learnForecast(deps, plan, attempts);
  await tellLastCounts(deps, jobId, attempts);
}

/**
 * Waits for the copies that lost, ends the workers of those that do not obey, and counts how often copies of the job
 * have straggled: only now is known how far those were that nobody waited for, and most stragglers are among them. Counts
 * them again where it is repeated. Answers all attempts as they were then.
 */
export async function settleAttempts(
  deps: Pick<FinishDeps, 'attempts' | 'clock' | 'stragglers' | 'log' | 'workers'>,
  space: TaskSpace,
  patienceMs: DurationMs,
): Promise<readonly AttemptRecord[]> {
  const attempts = await stopAttempts(deps, space, patienceMs);
  if (patienceMs > 0) await endWorkers(deps, space.jobId, attempts);
  // Good to know, and nothing more: no job fails for want of it.
  await deps.stragglers?.add(stragglersOfAttempts(attempts), deps.clock.now()).catch((cause: unknown) => {
    deps.log.warn('statistics-not-kept', { jobId: space.jobId, cause: String(cause) });
  });
  return attempts;
}
