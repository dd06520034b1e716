import {
  BrokenInvariantError,
  ConflictError,
  invariant,
  JobFailedError,
  NotFoundError,
  OutputLostError,
  UnreadableRecordError,
} from '../contracts/errors.ts';
import { type AttemptId, attemptParts, type JobId } from '../contracts/ids.ts';
import {
  attemptMetadata,
  type ObjectRef,
  partListKey,
  isOutputName,
  partName,
  parseUri,
  successName,
  uriOf,
} from '../contracts/keys.ts';
import { limits } from '../contracts/limits.ts';
import {
  type EndingJob,
  finalJobStates,
  finalSizeBytes,
  type JobRecord,
  type OutputPart,
  type TaskResult,
} from '../contracts/records.ts';
import { forEachBounded } from '../lib/bounded.ts';
import type { AttemptStore, TaskSpace } from '../ports/attempt-store.ts';
import type { Clock } from '../ports/clock.ts';
import type { JobStore } from '../ports/job-store.ts';
import type { Log } from '../ports/log.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { loadPlan } from './load-plan.ts';
import { decodePartList, encodePartList } from '../contracts/part-list.ts';
import { findJob } from './query-jobs.ts';
import { countedPatch, type CountingDeps } from './tell-costs.ts';

export interface PublishDeps extends CountingDeps {
  readonly jobs: JobStore;
  readonly attempts: AttemptStore;
  readonly objects: ObjectStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly dataBucket: string;
}

const publishParallelism = 16;
const removeBatch = 1_000;

function outputOf({ jobId, output }: JobRecord): ObjectRef {
  const ref = parseUri(output);
  invariant(ref !== undefined, 'a job has no output', { jobId });
  return ref;
}

/** Where part `task` of a job's output lies. */
export const partRef = (output: ObjectRef, task: number): ObjectRef => ({
  bucket: output.bucket,
  key: `${output.key}${partName(task)}`,
});

const successRef = (output: ObjectRef): ObjectRef => ({
  bucket: output.bucket,
  key: `${output.key}${successName}`,
});

const taken = (jobId: JobId, ref: ObjectRef): ConflictError =>
  new ConflictError(`output must be an empty prefix, but ${uriOf(ref)} was written by another`, { jobId });

/** Makes one part visible, once: a part that is there already must be of this very attempt. */
async function publishPart(
  objects: ObjectStore,
  jobId: JobId,
  ref: ObjectRef,
  result: TaskResult,
): Promise<OutputPart | 'lost'> {
  const { final } = result;
  invariant(final !== undefined, 'a task of the final stage committed no output', {
    attemptId: result.attemptId,
  });
  const writer = `${jobId}/${result.attemptId}`;
  const outcome =
    final.kind === 'upload'
      ? await objects.completeUpload({ ...ref, uploadId: final.uploadId }, final.parts, { ifAbsent: true })
      : await objects.write(ref, final.kind === 'inline' ? final.body : new Uint8Array(), {
          ifAbsent: true,
          metadata: { [attemptMetadata]: writer },
        });
  if (outcome === 'exists' || outcome === 'gone') {
    const there = await objects.head(ref);
    // Neither an upload nor what came of it: somebody, or a rule of the bucket, has removed it.
    if (there === undefined && outcome === 'gone') return 'lost';
    if (there?.metadata[attemptMetadata] !== writer) throw taken(jobId, ref);
  }
  return { key: ref.key, sizeBytes: finalSizeBytes(final) };
}

async function publishParts(deps: PublishDeps, job: JobRecord): Promise<OutputPart[]> {
  const output = outputOf(job);
  const plan = await loadPlan(deps.objects, deps.dataBucket, job);
  const final = plan.stages.at(-1)?.description;
  const { results, unreadable = [] } = await deps.attempts.all({
    jobId: job.jobId,
    shards: plan.shards,
  });
  const lost = unreadable.find(
    ({ kind, taskId }) => kind === 'result' && taskId?.startsWith(`${final?.name ?? ''}/`) === true,
  );
  if (lost !== undefined)
    throw new UnreadableRecordError(`the record ${lost.key} cannot be read: ${lost.why}`, { key: lost.key });
  const finals = results
    .filter(({ attemptId }) => attemptParts(attemptId).stage === final?.name)
    .toSorted((a, b) => attemptParts(a.attemptId).task - attemptParts(b.attemptId).task);
  // More than planned where partitions were split. Of that the record may tell later than the results, and never too many.
  const told = job.stages.find(({ name }) => name === final?.name)?.tasks ?? 0;
  const isWhole = finals.every(({ attemptId }, part) => attemptParts(attemptId).task === part);
  const least = Math.max(told, final?.tasks ?? 1);
  invariant(isWhole && finals.length >= least, 'a job finished before all its tasks', {
    jobId: job.jobId,
    done: finals.length,
  });
  const parts: OutputPart[] = [];
  const gone: AttemptId[] = [];
  await forEachBounded(finals, publishParallelism, async (result) => {
    const { task } = attemptParts(result.attemptId);
    const part = await publishPart(deps.objects, job.jobId, partRef(output, task), result);
    if (part === 'lost') gone.push(result.attemptId);
    else parts[task] = part;
  });
  if (gone.length > 0) await tellLost(deps, { jobId: job.jobId, shards: plan.shards }, gone);
  return parts;
}

/** Notes which parts are gone, for the scheduler that is to have them made again, and throws `OutputLostError`. */
async function tellLost(deps: PublishDeps, space: TaskSpace, lost: readonly AttemptId[]): Promise<never> {
  const { jobId } = space;
  const now = deps.clock.now();
  await forEachBounded(lost, publishParallelism, async (attemptId) => {
    deps.log.warn('part-lost', { jobId, attemptId });
    const times = await deps.attempts.noteOutputLost(space, attemptId, now);
    // Noted nowhere, or over and over in vain: to go back once more would be to do so for ever.
    invariant(times > 0 && times <= limits.notesPerPart, 'a part of the output is gone and not made again', {
      attemptId,
      times,
    });
  });
  throw new OutputLostError('parts of the output are gone before they were published', {
    jobId,
    parts: lost.length,
  });
}

/**
 * Brings a job to its end all of whose parts are there, as its record says: writes `_SUCCESS`, then records the end.
 * May be done by several at once. Throws `ConflictError` where another wrote that object: then the job has not ended.
 */
export async function completeJob(
  deps: PublishDeps,
  job: JobRecord,
  parts: readonly OutputPart[],
): Promise<void> {
  const { jobId } = job;
  const success = successRef(outputOf(job));
  const manifest = encodePartList({ jobId, parts });
  const metadata = { [attemptMetadata]: jobId };
  const written = await deps.objects.write(success, manifest, { ifAbsent: true, metadata });
  if (written === 'exists' && (await deps.objects.head(success))?.metadata[attemptMetadata] !== jobId)
    throw taken(jobId, success);
  const end = { state: 'succeeded', endedAt: deps.clock.now(), ...countedPatch(deps, job) } as const;
  if ((await deps.jobs.update(jobId, ['running'], end)) === 'updated')
    deps.log.info('succeeded', { jobId, parts: parts.length });
}

/** Where the list of a job's parts lies until it has ended. */
const partListRef = (deps: Pick<PublishDeps, 'dataBucket'>, { jobId, planNonce }: JobRecord): ObjectRef => ({
  bucket: deps.dataBucket,
  key: partListKey({ jobId, nonce: planNonce ?? '' }),
});

/**
 * The parts of a job whose record says that all are there: from the record where they are few, else from their list.
 * Undefined where the record does not say so, and where neither can be read.
 */
export async function publishedParts(
  deps: Pick<PublishDeps, 'objects' | 'dataBucket'>,
  job: JobRecord,
): Promise<readonly OutputPart[] | undefined> {
  if (job.publishingAt === undefined) return undefined;
  if (job.parts.length > 0) return job.parts;
  try {
    const list = decodePartList(await deps.objects.readAll(partListRef(deps, job)));
    return list.jobId === job.jobId ? list.parts : undefined;
  } catch (cause) {
    if (cause instanceof NotFoundError || cause instanceof UnreadableRecordError) return undefined;
    throw cause;
  }
}

/** What the record keeps of the parts: all of them only where they are few, so that it stays small. */
const inRecord = (parts: readonly OutputPart[]): Pick<JobRecord, 'parts' | 'partTotals'> => ({
  parts: parts.length <= limits.partsInRecord ? parts : [],
  partTotals: { count: parts.length, sizeBytes: parts.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) },
});

async function publish(deps: PublishDeps, job: JobRecord): Promise<void> {
  const published = await publishedParts(deps, job);
  if (published !== undefined) return completeJob(deps, job, published);
  const parts = await publishParts(deps, job);
  const kept = inRecord(parts);
  // Before the mark: whoever finds that goes on from the list. The results say what is in it, whoever writes it.
  if (kept.parts.length === 0)
    await deps.objects.write(partListRef(deps, job), encodePartList({ jobId: job.jobId, parts }));
  const mark = { publishingAt: deps.clock.now(), ...kept };
  if ((await deps.jobs.update(job.jobId, ['running'], mark)) === 'stale') {
    // The job has ended, and may have been cleaned up before the list was written.
    if (kept.parts.length === 0) await deps.objects.remove(deps.dataBucket, [partListRef(deps, job).key]);
    return;
  }
  return completeJob(deps, job, parts);
}

/**
 * Publishes the output of a job all of whose tasks are done: the parts, then a mark in the job's record, which decides
 * between this and whoever would fail the job, and only then `_SUCCESS`. Whoever comes too late, since it slept while
 * the job was failed, takes back what it has made visible. Answers the job as it has ended. May be repeated from any
 * point, and by several at once. Throws `ConflictError` where another writer took the output, `JobFailedError` where
 * the job was failed or cancelled, `OutputLostError` where parts are gone, so that the job is to be scheduled again.
 */
export async function publishOutput(deps: PublishDeps, job: JobRecord): Promise<JobRecord> {
  const { jobId } = job;
  let failure: unknown;
  try {
    await publish(deps, job);
  } catch (cause) {
    failure = cause;
  }
  const ended = await findJob(deps.jobs, jobId);
  if (ended.state === 'failed' || ended.state === 'cancelled') {
    await unpublish(deps.objects, ended);
    throw new JobFailedError(`job ${jobId} has ended`, { state: ended.state }, { cause: failure });
  }
  if (ended.state === 'succeeded') return ended;
  if (failure instanceof Error) throw failure;
  throw new BrokenInvariantError('a job was published and did not end', { jobId, state: ended.state });
}

/**
 * Takes back what was made visible of a job that then could not end well: at the keys of parts and of `_SUCCESS`, the
 * objects whose metadata name it as their writer. What others wrote stays, there as well. May be repeated. Does
 * nothing to a job that has not ended, or has ended well.
 */
export async function unpublish(objects: ObjectStore, job: EndingJob): Promise<void> {
  if (!finalJobStates.includes(job.state) || job.state === 'succeeded' || job.startedAt === undefined) return;
  const output = parseUri(job.output);
  if (output === undefined) return;
  const there: ObjectRef[] = [];
  for await (const { key } of objects.list(output)) {
    if (isOutputName(key.slice(output.key.length))) there.push({ bucket: output.bucket, key });
  }
  const written: string[] = [];
  await forEachBounded(there, publishParallelism, async (ref) => {
    const writer = (await objects.head(ref))?.metadata[attemptMetadata];
    if (writer === job.jobId || writer?.startsWith(`${job.jobId}/`) === true) written.push(ref.key);
  });
  for (let at = 0; at < written.length; at += removeBatch)
    await objects.remove(output.bucket, written.slice(at, at + removeBatch));
}
