import { submitRequestSchema } from '../contracts/api.ts';
import { ConflictError, StoreUnavailableError, underField } from '../contracts/errors.ts';
import type { JobId } from '../contracts/ids.ts';
import { parseInput, refuseProtoKeys } from '../contracts/invalid.ts';
import { type JobSpec, parseDurationText } from '../contracts/job-spec.ts';
import { limits } from '../contracts/limits.ts';
import { finalJobStates, type JobRecord, nothingYet } from '../contracts/records.ts';
import { durationMs, type EpochMs, later } from '../contracts/units.ts';
import { checkPlaces, checkRequestedSpec, outputOf, type SpecTerms } from './check-spec.ts';
import { claimOutput, releaseOutput } from './claim-output.ts';
import type { Clock } from '../ports/clock.ts';
import type { Coordinator } from '../ports/coordinator.ts';
import type { IdSource } from '../ports/id-source.ts';
import type { JobStore } from '../ports/job-store.ts';
import { type CountingDeps, submissionOwner } from './tell-costs.ts';

export interface SubmitDeps extends CountingDeps, SpecTerms {
  readonly jobs: JobStore;
  readonly coordinator: Coordinator;
  readonly clock: Clock;
  readonly ids: IdSource;
}

function newJob(
  spec: JobSpec,
  identity: { jobId: JobId; specDigest: string; dataBucket: string },
  now: EpochMs,
): JobRecord {
  const { jobId, specDigest, dataBucket } = identity;
  const deadlineMs = spec.deadline === undefined ? undefined : parseDurationText(spec.deadline);
  return {
    jobId,
    name: spec.name,
    spec,
    specDigest,
    state: 'submitted',
    createdAt: now,
    ...(deadlineMs === undefined ? {} : { deadlineAt: later(now, durationMs(deadlineMs)) }),
    ...(spec.storage === 'zonal' ? { storage: spec.storage } : {}),
    output: outputOf(spec, jobId, dataBucket),
    ...nothingYet,
  };
}

const tokenRounds = 3;

/** What a client token is kept by: a name of job has tokens of its own. */
const tokenDigest = ({ ids }: Pick<SubmitDeps, 'ids'>, { name }: JobSpec, clientToken: string): string =>
  ids.digest(`${name}/${clientToken}`);

/** Whether the time is up for which the record of a job is kept: it may still be seen, but counts as gone. */
const isForgotten = (job: JobRecord, now: EpochMs): boolean =>
  later(job.createdAt, durationMs(limits.recordsKeptMs)) <= now;

/**
 * The job that a client token stands for: of the first to bring it, for as long as the record of that job is kept.
 * Where the record is gone and its job has run, the token stands for a new job with a name of its own: an execution
 * of the old name could not be started again for 90 days, and might meet what the old job has left.
 */
async function jobOfToken(
  deps: SubmitDeps,
  spec: JobSpec,
  clientToken: string,
  now: EpochMs,
): Promise<JobId> {
  const token = tokenDigest(deps, spec, clientToken);
  let forgotten: JobId | undefined;
  for (let round = 0; round < tokenRounds; round++) {
    const fresh = freshJobId(deps.ids, spec);
    const claim = { jobId: fresh, now, ...(forgotten === undefined ? {} : { forgotten }) };
    const jobId = await deps.jobs.claimToken(token, claim);
    if (jobId === fresh) return jobId;
    if (await standsFor(deps, jobId, now)) return jobId;
    forgotten = jobId;
  }
  throw new StoreUnavailableError('others claim the client token at the same time', { rounds: tokenRounds });
}

/** Whether a job that a token was claimed for is there yet, or still to come. */
async function standsFor(deps: SubmitDeps, jobId: JobId, now: EpochMs): Promise<boolean> {
  const seen = await deps.jobs.load(jobId);
  if (seen !== undefined) return !isForgotten(seen, now);
  // Without a record and without an execution it is a submission that ended half-way: this one completes it.
  if ((await deps.coordinator.status(jobId)) === 'missing') return true;
  // A record comes before its execution, so it is gone, unless both have come since the first look.
  const since = await deps.jobs.load(jobId);
  return since !== undefined && !isForgotten(since, now);
}

/** The job that was made of this very spec under this token, and is not forgotten yet. */
async function earlierJob(
  deps: SubmitDeps,
  spec: JobSpec,
  clientToken: string,
  { specDigest, now }: { readonly specDigest: string; readonly now: EpochMs },
): Promise<JobId | undefined> {
  const jobId = await deps.jobs.jobOfToken(tokenDigest(deps, spec, clientToken));
  const job = jobId === undefined ? undefined : await deps.jobs.load(jobId);
  if (job === undefined || job.specDigest !== specDigest || isForgotten(job, now)) return undefined;
  return job.jobId;
}

/** Where the store does not tell whether there is a job, its spec is wrong all the same. */
function unlessAway(error: unknown): undefined {
  if (!(error instanceof StoreUnavailableError)) throw error;
}

const freshJobId = (ids: IdSource, { name }: JobSpec): JobId =>
  `${name}-${ids.token().slice(0, 12)}` as JobId;

/**
 * Creates a job's record, and before it the claim on its output, so that a refused job leaves no record. A job that is
 * there already keeps its claim or has given it back.
 */
async function createJob(deps: SubmitDeps, job: JobRecord): ReturnType<JobStore['create']> {
  const earlier = await deps.jobs.load(job.jobId);
  if (earlier !== undefined) return { kind: 'exists', job: earlier };
  checkPlaces(job, deps);
  try {
    await claimOutput(deps, job, { isPlanned: false });
  } catch (cause) {
    // A submission of the same job may have come all the way meanwhile, and others after it.
    const meanwhile = await deps.jobs.load(job.jobId);
    if (meanwhile === undefined) throw cause;
    return { kind: 'exists', job: meanwhile };
  }
  const outcome = await deps.jobs.create(job);
  if (outcome.kind === 'exists' && finalJobStates.includes(outcome.job.state))
    await releaseOutput(deps, outcome.job);
  return outcome;
}

/**
 * Ends a job that was made and could not be started, so that its output is free for the next try: without a token that would
 * make another job. True where it has begun all the same, as where only the answer was lost.
 */
async function hasBegun(
  { jobs, clock }: Pick<SubmitDeps, 'jobs' | 'clock'>,
  jobId: JobId,
  cause: unknown,
): Promise<boolean> {
  const { name, message } = cause instanceof Error ? cause : new Error(String(cause));
  const error = { name, message: `its execution could not be started: ${message}` };
  const end = { state: 'failed', endedAt: clock.now(), error } as const;
  try {
    return (await jobs.update(jobId, ['submitted'], end)) === 'stale';
  } catch {
    return false; // What is told is why it could not be started.
  }
}

/**
 * Starts a job, once per client token for as long as its record is kept (30 days): token, record and execution are
 * each created only if they are not there. A crash between them is mended by the next submission with the same
 * token. Throws `InvalidInputError` (nothing started), `ConflictError` where the token was used for another spec, or
 * an unfinished job writes where this one would; their `field` is a path in the request. `request` is a `SubmitRequest`, unchecked.
 */
export async function submitJob(
  deps: SubmitDeps,
  request: unknown,
): Promise<{ jobId: JobId; started: boolean }> {
  refuseProtoKeys(request);
  const { spec, clientToken } = parseInput(submitRequestSchema, request);
  const specDigest = deps.ids.digest(JSON.stringify(spec));
  const now = deps.clock.now();
  try {
    checkRequestedSpec(spec, deps);
  } catch (cause) {
    // Whoever repeats a submission asks for the job that was accepted, whatever has been refused since.
    const earlier =
      clientToken === undefined
        ? undefined
        : await earlierJob(deps, spec, clientToken, { specDigest, now }).catch(unlessAway);
    if (earlier === undefined) throw cause;
    await deps.coordinator.start(earlier);
    return { jobId: earlier, started: false };
  }
  const jobId =
    clientToken === undefined ? freshJobId(deps.ids, spec) : await jobOfToken(deps, spec, clientToken, now);
  const counted = deps.requests?.take(submissionOwner);
  const job = {
    ...newJob(spec, { jobId, specDigest, dataBucket: deps.dataBucket }, now),
    ...(counted === undefined ? {} : { coordination: counted }),
  };
  const outcome = await createJob(deps, job).catch((cause: unknown) => {
    throw underField('spec', cause);
  });
  if (outcome.kind === 'exists' && outcome.job.specDigest !== specDigest) {
    throw new ConflictError('clientToken was used before for another spec', { field: 'clientToken', jobId });
  }
  try {
    await deps.coordinator.start(jobId);
  } catch (cause) {
    // Under a token the next try starts this very job.
    if (clientToken !== undefined || !(await hasBegun(deps, jobId, cause))) throw cause;
  }
  return { jobId, started: outcome.kind === 'created' };
}
