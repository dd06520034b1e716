import { deadlineRequestSchema } from '../contracts/api.ts';
import { ConflictError, UnreadableRecordError } from '../contracts/errors.ts';
import { parseJobId } from '../contracts/ids.ts';
import { parseInput } from '../contracts/invalid.ts';
import { parseDurationText } from '../contracts/job-spec.ts';
import type { JobRecord, JobState } from '../contracts/records.ts';
import { durationMs, later } from '../contracts/units.ts';
import type { Clock } from '../ports/clock.ts';
import type { JobPatch, JobStore } from '../ports/job-store.ts';
import { endOrphan, executionOf, orphanError, reconcileJob, type ReconcileDeps } from './end-orphans.ts';
import { findJob } from './query-jobs.ts';

interface ChangeDeps {
  readonly jobs: JobStore;
  readonly clock: Clock;
}

const unfinished: readonly JobState[] = ['submitted', 'running'];

async function change(deps: ChangeDeps, job: JobRecord, patch: JobPatch): Promise<JobRecord> {
  if ((await deps.jobs.update(job.jobId, unfinished, patch)) === 'stale') {
    throw new ConflictError(`job ${job.jobId} has ended`, { jobId: job.jobId });
  }
  return { ...job, ...patch };
}

/** Asks a job to stop whose record cannot be read, so that it ends as cancelled; then throws what it was read with. */
async function cancelUnread(deps: ReconcileDeps, id: string, cause: unknown): Promise<never> {
  const jobId = parseJobId(id);
  if (!(cause instanceof UnreadableRecordError) || jobId === undefined) throw cause;
  await deps.jobs.update(jobId, unfinished, { cancelRequestedAt: deps.clock.now() });
  const execution = await executionOf(deps, { jobId });
  if (execution !== 'running') await endOrphan(deps, jobId, orphanError(execution));
  const message = `${cause.message}; it was asked to stop all the same`;
  throw new UnreadableRecordError(message, cause.details, { cause });
}

/**
 * Asks a job to stop; its scheduler cancels the workers and ends it as `cancelled`. A second request has no
 * further effect. A job that has no scheduler any more, and never will, is ended at once. Throws `NotFoundError`, and
 * `ConflictError` once the job has ended.
 */
export async function cancelJob(deps: ReconcileDeps, id: string): Promise<JobRecord> {
  const job = await findJob(deps.jobs, id).catch((cause: unknown) => cancelUnread(deps, id, cause));
  const isAsked = job.cancelRequestedAt !== undefined && unfinished.includes(job.state);
  const asked = isAsked ? job : await change(deps, job, { cancelRequestedAt: deps.clock.now() });
  return reconcileJob(deps, asked, { isUrgent: true });
}

/** Sets a job's deadline, counted from now. Throws as `cancelJob`, and `InvalidInputError` for a bad body. */
export async function setDeadline(deps: ChangeDeps, id: string, body: unknown): Promise<JobRecord> {
  const { deadline } = parseInput(deadlineRequestSchema, body);
  const job = await findJob(deps.jobs, id);
  const length = durationMs(parseDurationText(deadline) ?? 0);
  return change(deps, job, { deadlineAt: later(deps.clock.now(), length) });
}
