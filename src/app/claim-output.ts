import { ConflictError, InvalidInputError, StoreUnavailableError } from '../contracts/errors.ts';
import type { JobId } from '../contracts/ids.ts';
import type { JobSpec } from '../contracts/job-spec.ts';
import { defaultOutputKey, type ObjectRef, parseUri, uriOf } from '../contracts/keys.ts';
import { limits } from '../contracts/limits.ts';
import { finalJobStates } from '../contracts/records.ts';
import { elapsedMs } from '../contracts/units.ts';
import {
  type OutputClaim,
  prefixesOverlap,
  rivalClaims,
  systemPrefixAt,
} from '../core/model/output-claims.ts';
import type { Clock } from '../ports/clock.ts';
import type { JobStore } from '../ports/job-store.ts';
import { inputUris } from './job-grant.ts';

export interface ClaimDeps {
  readonly jobs: JobStore;
  readonly clock: Clock;
  readonly dataBucket: string;
}

/** A job and where it writes. */
export interface ClaimingJob {
  readonly jobId: JobId;
  /** `s3://bucket/prefix/` */
  readonly output: string;
}

/** Every round that is refused has let another's write through, so that many at once all come to their turn. */
const mostRounds = 200;
/**
 * A claim is made before its job's record, so that a refused job leaves none. One whose job is not there yet may be that
 * of a submission under way, for longer than any lasts; after that its submitter died between the two.
 */
const submissionMs = 60_000;

function outputRef({ output }: ClaimingJob): ObjectRef {
  const ref = parseUri(output);
  if (ref === undefined)
    throw new InvalidInputError('output must look like s3://bucket/key/', { field: 'output' });
  return ref;
}

/** An output that no other job can name needs no claim. */
const isDefault = ({ bucket, key }: ObjectRef, { jobId }: ClaimingJob, { dataBucket }: ClaimDeps): boolean =>
  bucket === dataBucket && key === defaultOutputKey(jobId);

/** Throws `InvalidInputError` where an output would meet what is the system's own. */
export function checkOutput(job: ClaimingJob, dataBucket: string): void {
  const met = systemPrefixAt(outputRef(job), { jobId: job.jobId, dataBucket });
  if (met === undefined) return;
  const own = uriOf({ bucket: dataBucket, key: met });
  throw new InvalidInputError(`output must lie outside ${own}, which is the system's own`, {
    field: 'output',
  });
}

/** Whether the job of a claim may still write: it has not ended, or may be about to begin. */
async function isHeld(
  { jobs, clock }: ClaimDeps,
  { jobId, claimedAt, isPlanned }: OutputClaim,
): Promise<boolean> {
  const job = await jobs.salvage(jobId);
  if (job !== undefined) return !finalJobStates.includes(job.state);
  return !isPlanned && elapsedMs(claimedAt, clock.now()) < submissionMs;
}

async function heldOf(deps: ClaimDeps, claims: readonly OutputClaim[]): Promise<OutputClaim[]> {
  const held: OutputClaim[] = [];
  for (const claim of claims) if (await isHeld(deps, claim)) held.push(claim);
  return held;
}

/** The claims of a bucket with one more, without those that are over and in its way. Throws where one is not over. */
async function withClaim(
  deps: ClaimDeps,
  bucket: string,
  there: readonly OutputClaim[],
  claim: OutputClaim,
): Promise<readonly OutputClaim[]> {
  const rivals = rivalClaims(there, claim);
  const [holder] = await heldOf(deps, rivals);
  if (holder !== undefined) {
    const place = uriOf({ bucket, key: holder.prefix });
    throw new ConflictError(
      `output must not overlap that of an unfinished job: ${place} belongs to ${holder.jobId}`,
      { field: 'output', jobId: holder.jobId },
    );
  }
  const others = there.filter((each) => each.jobId !== claim.jobId && !rivals.includes(each));
  if (others.length < limits.claimsPerBucket) return [...others, claim];
  const held = await heldOf(deps, others); // Jobs that ended without giving theirs back.
  if (held.length < limits.claimsPerBucket) return [...held, claim];
  throw new ConflictError(
    `output must be in another bucket: ${limits.claimsPerBucket} unfinished jobs write to ${bucket}`,
    { field: 'output' },
  );
}

/**
 * Makes a job the only unfinished one that writes under its output, above it or below it: one record per bucket holds
 * all claims, so that of two at once one is refused. Made at submission before the job's record; confirmed by Plan, when
 * the record is surely there: the claim of a submitter that was cut off or froze may have been taken over. A claim
 * whose job has ended, or never came to be, is dropped by whoever meets it. May be repeated. Throws `ConflictError`,
 * with the job that holds the output, where that has not ended.
 */
export async function claimOutput(
  deps: ClaimDeps,
  job: ClaimingJob,
  { isPlanned }: Pick<OutputClaim, 'isPlanned'>,
): Promise<void> {
  const { jobId } = job;
  const output = outputRef(job);
  if (isDefault(output, job, deps)) return;
  for (let round = 0; round < mostRounds; round++) {
    const { claims, version } = await deps.jobs.loadClaims(output.bucket);
    const claim: OutputClaim = { jobId, prefix: output.key, claimedAt: deps.clock.now(), isPlanned };
    const own = claims.find((each) => each.jobId === jobId && each.prefix === claim.prefix);
    if (own?.isPlanned === true) return;
    const next = await withClaim(deps, output.bucket, claims, claim);
    if ((await deps.jobs.saveClaims(output.bucket, next, version)) === 'saved') return;
  }
  throw new StoreUnavailableError('the output could not be claimed: too many claim theirs', { jobId });
}

/** Gives a job's claim back. No effect where it holds none, or where nobody can read of what. */
export async function releaseOutput(deps: ClaimDeps, job: ClaimingJob): Promise<void> {
  const output = parseUri(job.output);
  if (output === undefined || isDefault(output, job, deps)) return;
  for (let round = 0; round < mostRounds; round++) {
    const { claims, version } = await deps.jobs.loadClaims(output.bucket);
    const others = claims.filter(({ jobId }) => jobId !== job.jobId);
    if (others.length === claims.length) return;
    if ((await deps.jobs.saveClaims(output.bucket, others, version)) === 'saved') return;
  }
  throw new StoreUnavailableError('the output could not be given back', { jobId: job.jobId });
}

/** Throws `InvalidInputError` where a job would read what it writes. */
export function checkInputsApart(job: ClaimingJob & { readonly spec: JobSpec }): void {
  const output = outputRef(job);
  for (const { field, uri } of inputUris(job.spec)) {
    const input = parseUri(uri);
    if (input?.bucket !== output.bucket) continue;
    const isPrefix = input.key === '' || input.key.endsWith('/');
    const meets = isPrefix ? prefixesOverlap(input.key, output.key) : input.key.startsWith(output.key);
    if (meets)
      throw new InvalidInputError(`${field} must lie apart from the output ${job.output}`, { field });
  }
}
