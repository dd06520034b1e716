import type { JobId } from '../contracts/ids.ts';
import { finalJobStates, type JobError } from '../contracts/records.ts';
import type { DurationMs } from '../contracts/units.ts';
import { cleanUp, unpublish } from './end-job.ts';
import type { FinishDeps } from './finish-job.ts';
import { findJob } from './query-jobs.ts';
import { stopAttempts } from './stop-attempts.ts';

/**
 * Ends a job that cannot end well: stops its attempts, records the error, removes what it left, also parts of its
 * output that were published before. A job whose cancellation was asked for ends as `cancelled`. May be repeated; a
 * job that has ended keeps its end.
 */
export async function failJob(
  deps: FinishDeps,
  jobId: JobId,
  error: JobError,
  patienceMs: DurationMs,
): Promise<void> {
  const job = await findJob(deps.jobs, jobId);
  if (job.shards !== undefined) await stopAttempts(deps, { jobId, shards: job.shards }, patienceMs);
  if (!finalJobStates.includes(job.state)) {
    const state = job.cancelRequestedAt === undefined ? 'failed' : 'cancelled';
    await deps.jobs.update(jobId, ['submitted', 'running'], { state, endedAt: deps.clock.now(), error });
    deps.log.info(state, { jobId, error });
  }
  // Asked anew: Finish may have succeeded meanwhile, and then its output stays.
  const ended = await findJob(deps.jobs, jobId);
  if (ended.state !== 'succeeded' && ended.startedAt !== undefined) await unpublish(deps.objects, ended);
  await cleanUp(deps, job);
}
