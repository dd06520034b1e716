import { invariant, StoreUnavailableError } from '../contracts/errors.ts';
import { attemptParts, type JobId } from '../contracts/ids.ts';
import { isPlanKey, jobPrefix, type ObjectRef, parseUri } from '../contracts/keys.ts';
import { type EndingJob, finalJobStates } from '../contracts/records.ts';
import { durationMs } from '../contracts/units.ts';
import { forEachBounded } from '../lib/bounded.ts';
import type { AttemptStore } from '../ports/attempt-store.ts';
import type { CapacityLedger } from './capacity-ledger.ts';
import type { ObjectStore, UploadRef } from '../ports/object-store.ts';
import { type ClaimDeps, releaseOutput } from './claim-output.ts';
import { partRef, unpublish } from './publish-output.ts';
import { stopAttempts } from './stop-attempts.ts';

export interface CleanUpDeps extends ClaimDeps {
  readonly attempts: AttemptStore;
  readonly objects: ObjectStore;
  readonly ledger: CapacityLedger;
  /** Directory buckets of the tier `zonal`; absent: there is none. */
  readonly zonalBuckets?: readonly string[];
}

const removeBatch = 1_000;
const abortParallelism = 16;

/** Removes everything under a prefix that is one job's alone, but keys that are to stay. */
async function removePrefix(
  objects: ObjectStore,
  prefix: ObjectRef,
  stays: (key: string) => boolean = () => false,
): Promise<void> {
  for await (const upload of objects.listUploads(prefix)) await objects.abortUpload(upload);
  let keys: string[] = [];
  for await (const { key } of objects.list(prefix)) {
    if (!stays(key)) keys.push(key);
    if (keys.length < removeBatch) continue;
    await objects.remove(prefix.bucket, keys);
    keys = [];
  }
  if (keys.length > 0) await objects.remove(prefix.bucket, keys);
}

/**
 * The uploads that a job has begun in its output's bucket, as its attempts noted them, but those that have become
 * parts of its output. The bucket holds uploads of others too, perhaps at the very same keys.
 */
async function leftUploads(deps: CleanUpDeps, job: EndingJob): Promise<UploadRef[]> {
  const output = parseUri(job.output);
  if (job.shards === undefined || output === undefined) return [];
  const {
    attempts,
    results,
    unreadable = [],
  } = await deps.attempts.all({ jobId: job.jobId, shards: job.shards });
  const uploads = new Map<string, UploadRef>();
  const noted = [...attempts.map(({ attemptId, upload }) => ({ attemptId, ...upload })), ...unreadable];
  for (const { attemptId, uploadId } of noted) {
    if (attemptId === undefined || uploadId === undefined) continue;
    uploads.set(uploadId, { ...partRef(output, attemptParts(attemptId).task), uploadId });
  }
  for (const { attemptId, final } of results) {
    if (final?.kind !== 'upload') continue;
    const { uploadId } = final;
    if (job.state === 'succeeded') uploads.delete(uploadId);
    else uploads.set(uploadId, { ...partRef(output, attemptParts(attemptId).task), uploadId });
  }
  return [...uploads.values()];
}

/**
 * Sees to it that no attempt of a job that ended badly begins to write its part from now on, whoever still launches
 * some. One that looks for what its task reads finds nothing from now on. One that has read it has claimed itself
 * before, so that it is seen, told to stop, and may note no upload any more.
 */
async function shutOut(deps: CleanUpDeps, { jobId, shards }: EndingJob): Promise<void> {
  const own = { bucket: deps.dataBucket, key: jobPrefix(jobId) };
  await removePrefix(deps.objects, own, isPlanKey);
  if (shards !== undefined) await stopAttempts(deps, { jobId, shards }, durationMs(0));
}

/**
 * Removes what a job on the tier `zonal` has left there. What is in a zone that does not answer is gone with it, or goes by the
 * bucket's lifecycle rule: no job waits for that.
 */
async function removeZonal(
  { objects, zonalBuckets = [] }: CleanUpDeps,
  { jobId, storage }: EndingJob,
): Promise<void> {
  if (storage !== 'zonal') return;
  await forEachBounded(zonalBuckets, zonalBuckets.length, async (bucket) => {
    await removePrefix(objects, { bucket, key: jobPrefix(jobId) }).catch((cause: unknown) => {
      if (!(cause instanceof StoreUnavailableError)) throw cause;
    });
  });
}

/**
 * Removes what a job that has ended leaves besides its output and its records: uploads that nobody completed and, where
 * it did not end well, the parts that were published, its claim on its output, its slots, and last intermediate data
 * and plans, so that where these are gone all is. Where it did not end well what tasks read goes first, and the plan
 * alone stays for the last: its scheduler may have launched more attempts since they were stopped. Uploads go before
 * parts, so that a Finish which sleeps cannot make more parts of them. Touches nothing that is not the job's by its
 * records. What cannot be removed, as where a right is missing, keeps nothing else from being given back; the first
 * such error is thrown at the end. May be repeated. What a worker writes after this is removed by the worker itself
 * when it learns that its job has ended, and by the bucket's lifecycle rule where even that fails.
 */
export async function cleanUp(deps: CleanUpDeps, job: EndingJob): Promise<void> {
  const { jobId, state } = job;
  invariant(finalJobStates.includes(state), 'a job was cleaned up before its end', { jobId, state });
  const steps: readonly (() => Promise<void>)[] = [
    ...(state === 'succeeded' ? [] : [() => shutOut(deps, job)]),
    async () =>
      forEachBounded(await leftUploads(deps, job), abortParallelism, (upload) =>
        deps.objects.abortUpload(upload),
      ),
    () => unpublish(deps.objects, job),
    () => releaseOutput(deps, job),
    () => deps.ledger.release(jobId),
    () => removeZonal(deps, job),
    () => removePrefix(deps.objects, { bucket: deps.dataBucket, key: jobPrefix(jobId) }),
  ];
  const failures: unknown[] = [];
  for (const step of steps) await step().catch((cause: unknown) => failures.push(cause));
  if (failures.length > 0) throw failures[0];
}

/**
 * Does nothing to a job that goes on. Of one that has ended it takes back once more what its scheduler may have done
 * after the end: attempts that it launched, slots that it took, manifests that it wrote. May be repeated.
 */
export async function sweepEnded(
  deps: Pick<CleanUpDeps, 'attempts' | 'clock' | 'dataBucket' | 'jobs' | 'ledger' | 'objects'>,
  jobId: JobId,
): Promise<void> {
  const job = await deps.jobs.salvage(jobId);
  if (job === undefined || !finalJobStates.includes(job.state)) return;
  if (job.shards !== undefined) await stopAttempts(deps, { jobId, shards: job.shards }, durationMs(0));
  await deps.ledger.release(jobId);
  await removePrefix(deps.objects, { bucket: deps.dataBucket, key: jobPrefix(jobId) });
}
