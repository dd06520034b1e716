import { NotFoundError } from '../contracts/errors.ts';
import type { JobId } from '../contracts/ids.ts';
import { finalJobStates, type JobError } from '../contracts/records.ts';
import type { DurationMs } from '../contracts/units.ts';
import { cleanUp, unpublish } from './end-job.ts';
import type { FinishDeps } from './finish-job.ts';
import { stopAttempts } from './stop-attempts.ts';

/**
 * Ends a job that cannot end well: stops its attempts, records the error, removes what it left, also parts of its
 * output that were published before. It reads no more of the job's records than their keys and its state, so that a
 * record that nobody can read stops no job for ever. A job whose cancellation was asked for ends as `cancelled`. May be repeated; a
 * job that has ended keeps its end.
 */
export async function failJob(
  deps: FinishDeps,
  jobId: JobId,
  error: JobError,
  patienceMs: DurationMs,
): Promise<void> {
  const job = await deps.jobs.salvage(jobId);
  if (job === undefined) throw new NotFoundError(`no such job: ${jobId}`, { jobId });
  if (job.shards !== undefined) await stopAttempts(deps, { jobId, shards: job.shards }, patienceMs);
  if (!finalJobStates.includes(job.state)) {
    const state = job.cancelRequestedAt === undefined ? 'failed' : 'cancelled';
    await deps.jobs.end(jobId, { state, endedAt: deps.clock.now(), error });
    deps.log.info(state, { jobId, error });
  }
  // Asked anew: Finish may have succeeded meanwhile, and then its output stays.
  const ended = (await deps.jobs.salvage(jobId)) ?? job;
  if (ended.state !== 'succeeded' && ended.startedAt !== undefined) await unpublish(deps.objects, ended);
  await cleanUp(deps, job);
}
