import type { JobId } from '../contracts/ids.ts';
import { attemptMetadata, jobPrefix, type ObjectRef, parseUri } from '../contracts/keys.ts';
import type { EndingJob } from '../contracts/records.ts';
import type { CapacityLedger } from '../ports/capacity-ledger.ts';
import type { ObjectStore } from '../ports/object-store.ts';

const removeBatch = 1_000;

async function removePrefix(objects: ObjectStore, prefix: ObjectRef): Promise<void> {
  let keys: string[] = [];
  for await (const { key } of objects.list(prefix)) {
    keys.push(key);
    if (keys.length < removeBatch) continue;
    await objects.remove(prefix.bucket, keys);
    keys = [];
  }
  if (keys.length > 0) await objects.remove(prefix.bucket, keys);
}

async function abortUploads(objects: ObjectStore, prefix: ObjectRef): Promise<void> {
  for await (const upload of objects.listUploads(prefix)) await objects.abortUpload(upload);
}

/**
 * Takes back what Finish had made visible of a job that then could not end well: its own objects under its output
 * prefix, by the metadata that names their writer. What others wrote there stays. May be repeated.
 */
export async function unpublish(objects: ObjectStore, job: EndingJob): Promise<void> {
  const output = parseUri(job.output);
  if (output === undefined) return;
  for await (const { key } of objects.list(output)) {
    const writer = (await objects.head({ bucket: output.bucket, key }))?.metadata[attemptMetadata];
    if (writer === job.jobId || writer?.startsWith(`${job.jobId}/`) === true)
      await objects.remove(output.bucket, [key]);
  }
}

/**
 * Removes what a job leaves besides its output and its records: uploads that nobody completed, its slots, and last
 * intermediate data and plans, so that where these are gone all is. May be repeated. What a worker writes after this
 * is removed by the worker itself when it learns that its job has ended, and by the bucket's lifecycle rule where even
 * that fails.
 */
export async function cleanUp(
  deps: { readonly objects: ObjectStore; readonly ledger: CapacityLedger; readonly dataBucket: string },
  job: EndingJob,
): Promise<void> {
  const intermediate = { bucket: deps.dataBucket, key: jobPrefix(job.jobId) };
  const output = parseUri(job.output);
  if (output !== undefined) await abortUploads(deps.objects, output);
  await abortUploads(deps.objects, intermediate);
  await deps.ledger.release(job.jobId satisfies JobId);
  await removePrefix(deps.objects, intermediate);
}
