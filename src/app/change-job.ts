import { deadlineRequestSchema, noDeadline, parseInstant } from '../contracts/api.ts';
import { ConflictError, InvalidInputError, UnreadableRecordError } from '../contracts/errors.ts';
import { parseJobId } from '../contracts/ids.ts';
import { parseInput } from '../contracts/invalid.ts';
import { parseDurationText } from '../contracts/job-spec.ts';
import { limits } from '../contracts/limits.ts';
import type { JobRecord, JobRecordState } from '../contracts/records.ts';
import { durationMs, type EpochMs, later } from '../contracts/units.ts';
import type { Clock } from '../ports/clock.ts';
import type { JobPatch, JobStore } from '../ports/job-store.ts';
import { endOrphan, executionOf, orphanError, reconcileJob, type ReconcileDeps } from './end-orphans.ts';
import { findJob } from './query-jobs.ts';

interface ChangeDeps {
  readonly jobs: JobStore;
  readonly clock: Clock;
}

const unfinished: readonly JobRecordState[] = ['submitted', 'running'];

async function change(deps: ChangeDeps, { jobId }: JobRecord, patch: JobPatch): Promise<void> {
  if ((await deps.jobs.update(jobId, unfinished, patch)) === 'stale')
    throw new ConflictError(`job ${jobId} has ended`, { jobId });
}

/** Asks a job to stop whose record cannot be read, so that it ends as cancelled; then throws what it was read with. */
async function cancelUnread(deps: ReconcileDeps, id: string, cause: unknown): Promise<never> {
  const jobId = parseJobId(id);
  if (!(cause instanceof UnreadableRecordError) || jobId === undefined) throw cause;
  const cancelRequestedAt = deps.clock.now();
  await deps.jobs.update(jobId, unfinished, { cancelRequestedAt });
  const execution = await executionOf(deps, { jobId, cancelRequestedAt });
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
  const cancelRequestedAt = isAsked ? job.cancelRequestedAt : deps.clock.now();
  if (!isAsked) await change(deps, job, { cancelRequestedAt });
  return reconcileJob(deps, { ...job, cancelRequestedAt }, { isUrgent: true });
}

/**
 * Sets a job's deadline, or takes it away: its scheduler goes by it from its next look on. An instant that the job has
 * already, and `none` where it has none, change nothing. Throws as `cancelJob`, and `InvalidInputError` for a bad body.
 */
export async function setDeadline(deps: ChangeDeps, id: string, body: unknown): Promise<JobRecord> {
  const { deadline } = parseInput(deadlineRequestSchema, body);
  const job = await findJob(deps.jobs, id);
  const { deadlineAt: before, ...others } = job;
  if (deadline === noDeadline) {
    await change(deps, job, { deadlineAt: undefined });
    return others;
  }
  const now = deps.clock.now();
  const instant = parseInstant(deadline);
  const deadlineAt = instant ?? later(now, durationMs(parseDurationText(deadline) ?? 0));
  if (instant !== undefined && instant !== before) checkInstant(instant, now);
  await change(deps, job, { deadlineAt });
  return { ...job, deadlineAt };
}

/** As far from now as a length of time may be. Throws `InvalidInputError` otherwise. */
function checkInstant(instant: EpochMs, now: EpochMs): void {
  const { minDeadlineMs, maxDeadlineMs } = limits;
  if (instant >= now + minDeadlineMs && instant <= now + maxDeadlineMs) return;
  const [at, is] = [instant, now].map((each) => new Date(each).toISOString());
  const message = `deadline: ${at} must be from 1s to 7d from now, and it is ${is} here`;
  throw new InvalidInputError(message, { field: 'deadline' });
}
