import { ConflictError, NotFoundError, UnreadableRecordError } from '../contracts/errors.ts';
import type { JobId } from '../contracts/ids.ts';
import {
  type EndingJob,
  finalJobStates,
  type JobError,
  type JobRecord,
  type OutputPart,
} from '../contracts/records.ts';
import type { DurationMs } from '../contracts/units.ts';
import { cleanUp } from './end-job.ts';
import { endLeftWorkers, endWorkers } from './end-workers.ts';
import type { FinishDeps } from './finish-job.ts';
import { completeJob, publishedParts } from './publish-output.ts';
import { stopAttempts } from './stop-attempts.ts';
import { tellLastCounts } from './tell-costs.ts';

/** Records that a job ended with an error, unless it has ended, or with `unlessPublishing` its output is all there. */
async function recordFailure(
  deps: FinishDeps,
  { jobId, cancelRequestedAt }: EndingJob,
  error: JobError,
  options: { readonly unlessPublishing?: boolean } = {},
): Promise<void> {
  const state = cancelRequestedAt === undefined ? 'failed' : 'cancelled';
  const end = { state, endedAt: deps.clock.now(), error } as const;
  if ((await deps.jobs.end(jobId, end, options)) === 'updated') deps.log.info(state, { jobId, error });
}

async function salvaged(deps: FinishDeps, jobId: JobId): Promise<EndingJob> {
  const job = await deps.jobs.salvage(jobId);
  if (job === undefined) throw new NotFoundError(`no such job: ${jobId}`, { jobId });
  return job;
}

/** A job and its parts, to bring it to a good end; undefined where they cannot be read. */
async function publishedJob(
  deps: FinishDeps,
  jobId: JobId,
): Promise<{ readonly job: JobRecord; readonly parts: readonly OutputPart[] } | undefined> {
  try {
    const job = await deps.jobs.load(jobId);
    const parts = job === undefined ? undefined : await publishedParts(deps, job);
    return job === undefined || parts === undefined ? undefined : { job, parts };
  } catch (cause) {
    if (cause instanceof UnreadableRecordError) return undefined;
    throw cause;
  }
}

/**
 * Ends a job one way or the other: with an error, or where Finish had made all parts of its output visible before it
 * stopped, as Finish would have done. Where another wrote `_SUCCESS` there the job fails after all. Answers the job as
 * it has ended.
 */
async function endJob(deps: FinishDeps, job: EndingJob, error: JobError): Promise<EndingJob> {
  await recordFailure(deps, job, error, { unlessPublishing: true });
  const ended = await salvaged(deps, job.jobId);
  if (finalJobStates.includes(ended.state)) return ended;
  const published = await publishedJob(deps, job.jobId);
  try {
    if (published === undefined) await recordFailure(deps, ended, error);
    else await completeJob(deps, published.job, published.parts);
  } catch (cause) {
    if (!(cause instanceof ConflictError)) throw cause;
    await recordFailure(deps, ended, error);
  }
  return salvaged(deps, job.jobId);
}

/**
 * Ends a job that cannot end well: stops its attempts, and the workers of those that do not obey, records the error,
 * removes what it left, also parts of its output that were published before. It reads no more of the job's records than
 * their keys and its state, so that a record that nobody can read stops no job for ever. A job whose cancellation was
 * asked for ends as `cancelled`. May be repeated; a job that has ended keeps its end, and one whose output is all there
 * already ends as `succeeded`.
 */
export async function failJob(
  deps: FinishDeps,
  jobId: JobId,
  error: JobError,
  patienceMs: DurationMs,
): Promise<void> {
  const job = await salvaged(deps, jobId);
  const { shards } = job;
  const attempts = shards === undefined ? [] : await stopAttempts(deps, { jobId, shards }, patienceMs);
  await endWorkers(deps, jobId, attempts);
  await cleanUp(deps, await endJob(deps, job, error));
  await endLeftWorkers(deps, jobId, attempts);
  await tellLastCounts(deps, jobId, attempts);
}
