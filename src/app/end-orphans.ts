import { ErrorName, NotFoundError, StoreUnavailableError } from '../contracts/errors.ts';
import type { JobId } from '../contracts/ids.ts';
import { limits } from '../contracts/limits.ts';
import { type ExecutionEnd, jobOfExecution } from '../contracts/payloads.ts';
import { finalJobStates, type JobError, type JobRecord, type JobRecordState } from '../contracts/records.ts';
import { type DurationMs, durationMs, type EpochMs, elapsedMs } from '../contracts/units.ts';
import type { Clock } from '../ports/clock.ts';
import type { Coordinator, ExecutionState } from '../ports/coordinator.ts';
import type { JobStore } from '../ports/job-store.ts';
import type { Log } from '../ports/log.ts';
import { failJob } from './fail-job.ts';
import type { FinishDeps } from './finish-job.ts';

const unfinished: readonly JobRecordState[] = ['submitted', 'running'];

/** A job that showed a sign of life within this time is believed to live. */
const quietMs = durationMs(60_000);
/**
 * A submission may take so long from the record to the start of its execution, and an execution so long to be told of everywhere:
 * what Step Functions knows spreads in its own time.
 */
const startMs = durationMs(5 * 60_000);
/** That it was not found so long ago tells nothing of now: it may have been found since. Two sweeps are an hour apart. */
const oldMs = durationMs(3 * 3_600_000);

const longestDays = limits.longestExecutionMs / 86_400_000;

/** Why a job ends whose execution is no more. */
export function orphanError(state: Exclude<ExecutionState, 'running'>): JobError {
  const name = ErrorName.ExecutionEnded;
  switch (state) {
    case 'missing':
      return { name, message: 'its execution was never started, or is forgotten' };
    case 'aborted':
      return { name, message: 'its execution was aborted' };
    case 'failed':
      return {
        name,
        message: `its execution failed, or ran for longer than ${longestDays} days, and could not say so`,
      };
    case 'succeeded':
      return { name, message: 'its execution ended without its output' };
  }
}

/** Why a job ends, in the words of whoever ended its execution. */
function errorOfEnd({ status, error, cause }: ExecutionEnd): JobError {
  const name = ErrorName.ExecutionEnded;
  const told = [error, cause].filter((text) => typeof text === 'string' && text !== '').join(': ');
  const why = told === '' ? '' : `: ${told}`;
  switch (status) {
    case 'ABORTED':
      return { name, message: `its execution was aborted${why}` };
    case 'TIMED_OUT':
      return { name, message: `its execution ran for longer than ${longestDays} days${why}` };
    case 'FAILED':
      return { name, message: `its execution failed and could not say so${why}` };
  }
}

/**
 * Ends the job of an execution that was aborted, timed out or failed, for where its Fail step has not. The event may
 * come twice, late or for a job that has ended: its end stays, and what it left is looked for once more. One of an
 * execution that belongs to no job has no effect.
 */
export async function settleExecution(
  deps: FinishDeps,
  end: ExecutionEnd,
  patienceMs: DurationMs,
): Promise<void> {
  const jobId = jobOfExecution(end);
  if (jobId === undefined) {
    deps.log.warn('an execution of no job has ended', { execution: end.name });
    return;
  }
  try {
    await failJob(deps, jobId, errorOfEnd(end), patienceMs);
  } catch (cause) {
    if (!(cause instanceof NotFoundError)) throw cause;
    deps.log.warn('the execution of a job without a record has ended', { jobId });
  }
}

export interface ReconcileDeps {
  readonly jobs: JobStore;
  readonly coordinator: Coordinator;
  readonly clock: Clock;
  readonly log: Log;
}

/** When a job was last known to live. What a clock ahead of ours has noted would keep it alive until its time has come. */
const lastSign = ({ createdAt, startedAt, seenAt }: JobRecord, now: EpochMs): EpochMs =>
  [startedAt, seenAt].reduce<EpochMs>(
    (latest, at) => (at !== undefined && at > latest && at <= now ? at : latest),
    createdAt,
  );

/**
 * What has become of an unfinished job's execution; `running` also where it may yet begin. A job's record is written
 * before its execution ends, so that whoever finds another answer and reads the record after it knows that it has
 * none to wait for.
 *
 * `missing` only where it was already some minutes ago: an execution that has just begun may not be found, and the age of its job
 * is told by two clocks, of which the reader's may be ahead. Of a job that was asked to stop nothing is lost.
 */
export async function executionOf(
  { jobs, coordinator, clock }: Pick<ReconcileDeps, 'jobs' | 'coordinator' | 'clock'>,
  job: Pick<JobRecord, 'jobId'> &
    Partial<Pick<JobRecord, 'createdAt' | 'missingSince' | 'cancelRequestedAt'>>,
): Promise<ExecutionState> {
  const { jobId, createdAt, missingSince, cancelRequestedAt } = job;
  const state = await coordinator.status(jobId);
  if (state !== 'missing') return state;
  const now = clock.now();
  if (createdAt !== undefined && elapsedMs(createdAt, now) < startMs) return 'running';
  if (cancelRequestedAt !== undefined) return 'missing';
  // Where a clock ahead of ours has noted it we do not wait until its time has come.
  const forMs = missingSince === undefined || missingSince > now ? Infinity : elapsedMs(missingSince, now);
  if (forMs < oldMs) return forMs < startMs ? 'running' : 'missing';
  await jobs.update(jobId, unfinished, { missingSince: now });
  return 'running';
}

/**
 * The job as it is in truth: one whose record says that it goes on while its execution has ended, or never began, is
 * ended on record here and now, and what it left is removed by an execution of its own, which also brings one to its
 * good end whose output is all there. Asks Step Functions only about jobs that have shown no sign of life for a minute,
 * or where the caller must know (`isUrgent`); where it cannot be asked, the record is the answer.
 */
export async function reconcileJob(
  deps: ReconcileDeps,
  job: JobRecord,
  options: { readonly isUrgent?: boolean } = {},
): Promise<JobRecord> {
  if (finalJobStates.includes(job.state)) return job;
  const now = deps.clock.now();
  const isQuiet = elapsedMs(lastSign(job, now), now) >= quietMs;
  if (!isQuiet && options.isUrgent !== true) return job;
  try {
    const state = await executionOf(deps, job);
    if (state !== 'running') {
      await endOrphan(deps, job.jobId, orphanError(state));
      return (await deps.jobs.load(job.jobId)) ?? job;
    }
    if (!isQuiet) return job;
    const seenAt = deps.clock.now();
    return (await deps.jobs.update(job.jobId, unfinished, { seenAt })) === 'updated'
      ? { ...job, seenAt }
      : job;
  } catch (cause) {
    if (!(cause instanceof StoreUnavailableError)) throw cause;
    deps.log.warn('a job could not be compared with its execution', {
      jobId: job.jobId,
      cause: cause.message,
    });
    return job;
  }
}

/**
 * Ends a job on record whose execution is no more, unless it has ended meanwhile, and has what it left removed. One
 * whose output is all there keeps its record, and has its good end written by the same execution of its own: Finish
 * does that, or Fail where the job cannot be scheduled. Reads no more of its record than that takes.
 */
export async function endOrphan(deps: ReconcileDeps, jobId: JobId, error: JobError): Promise<void> {
  const job = await deps.jobs.salvage(jobId);
  if (job === undefined || finalJobStates.includes(job.state)) return;
  const state = job.cancelRequestedAt === undefined ? 'failed' : 'cancelled';
  const end = { state, endedAt: deps.clock.now(), error } as const;
  if ((await deps.jobs.end(jobId, end, { unlessPublishing: true })) === 'updated') {
    deps.log.warn('ended a job without an execution', { jobId, state, error });
  } else {
    // Its ending is at work: whoever looks next need not ask at once. Stale where the job has ended.
    const isPublished =
      (await deps.jobs.update(jobId, unfinished, { seenAt: deps.clock.now() })) === 'updated';
    if (!isPublished) return;
    deps.log.warn('a job without an execution has its output, and is brought to its end', { jobId });
  }
  await deps.coordinator.startEnding(jobId).catch((cause: unknown) => {
    // The next sweep does what the ending would have done.
    deps.log.warn('the ending of a job could not be started', { jobId, cause: String(cause) });
  });
}
