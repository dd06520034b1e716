import { ConflictError, invariant, JobFailedError, UnreadableRecordError } from '../contracts/errors.ts';
import type { JobId } from '../contracts/ids.ts';
import { attemptParts } from '../contracts/ids.ts';
import {
  attemptMetadata,
  type ObjectRef,
  partName,
  parseUri,
  successName,
  uriOf,
} from '../contracts/keys.ts';
import type { JobRecord, TaskResult } from '../contracts/records.ts';
import { type DurationMs, durationMs, epochMs } from '../contracts/units.ts';
import { forEachBounded } from '../lib/bounded.ts';
import type { AttemptStore, TaskSpace } from '../ports/attempt-store.ts';
import type { CapacityLedger } from '../ports/capacity-ledger.ts';
import type { Clock } from '../ports/clock.ts';
import type { JobStore } from '../ports/job-store.ts';
import type { Log } from '../ports/log.ts';
import { stragglersOfAttempts } from '../core/policy/dolly/straggler-rate.ts';
import type { StragglerStatistics } from '../ports/straggler-statistics.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { cleanUp } from './end-job.ts';
import { loadPlan } from './load-plan.ts';
import { findJob } from './query-jobs.ts';
import { stopAttempts } from './stop-attempts.ts';

export interface FinishDeps {
  readonly jobs: JobStore;
  readonly attempts: AttemptStore;
  readonly objects: ObjectStore;
  readonly ledger: CapacityLedger;
  /** How often copies have straggled in all jobs. */
  readonly stragglers?: StragglerStatistics;
  readonly clock: Clock;
  readonly log: Log;
  readonly dataBucket: string;
}

type Part = JobRecord['parts'][number];

const publishParallelism = 16;

/** Makes one part visible, once: a part that is there already must be of this very attempt. */
async function publishPart(
  objects: ObjectStore,
  jobId: JobId,
  ref: ObjectRef,
  result: TaskResult,
): Promise<Part> {
  const { final } = result;
  invariant(final !== undefined, 'a task of the final stage committed no output', {
    attemptId: result.attemptId,
  });
  const writer = `${jobId}/${result.attemptId}`;
  const outcome =
    final.kind === 'empty'
      ? await objects.write(ref, new Uint8Array(), {
          ifAbsent: true,
          metadata: { [attemptMetadata]: writer },
        })
      : await objects.completeUpload({ ...ref, uploadId: final.uploadId }, final.parts, { ifAbsent: true });
  if (outcome === 'exists' || outcome === 'gone') {
    const there = await objects.head(ref);
    if (there?.metadata[attemptMetadata] !== writer) {
      throw new ConflictError(`output must be an empty prefix, but ${uriOf(ref)} was written by another`, {
        jobId,
      });
    }
  }
  return { key: ref.key, sizeBytes: final.kind === 'empty' ? 0 : final.sizeBytes };
}

async function publish(deps: FinishDeps, job: JobRecord): Promise<Part[]> {
  const output = parseUri(job.output);
  invariant(output !== undefined, 'a running job has no output', { jobId: job.jobId });
  const plan = await loadPlan(deps.objects, deps.dataBucket, job);
  const final = plan.stages.at(-1)?.description;
  const { results, unreadable = [] } = await deps.attempts.changes(
    { jobId: job.jobId, shards: plan.shards },
    epochMs(0),
  );
  const lost = unreadable.find(
    ({ kind, taskId }) => kind === 'result' && taskId?.startsWith(`${final?.name ?? ''}/`) === true,
  );
  if (lost !== undefined)
    throw new UnreadableRecordError(`the record ${lost.key} cannot be read: ${lost.why}`, { key: lost.key });
  const finals = results
    .filter(({ attemptId }) => attemptParts(attemptId).stage === final?.name)
    .toSorted((a, b) => attemptParts(a.attemptId).task - attemptParts(b.attemptId).task);
  invariant(finals.length === final?.tasks, 'a job finished before all its tasks', {
    jobId: job.jobId,
    done: finals.length,
  });
  const parts: Part[] = [];
  await forEachBounded(finals, publishParallelism, async (result) => {
    const { task } = attemptParts(result.attemptId);
    const ref = { bucket: output.bucket, key: `${output.key}${partName(task)}` };
    parts[task] = await publishPart(deps.objects, job.jobId, ref, result);
  });
  const manifest = new TextEncoder().encode(`${JSON.stringify({ jobId: job.jobId, parts }, null, 1)}\n`);
  const metadata = { [attemptMetadata]: job.jobId };
  const success = { bucket: output.bucket, key: `${output.key}${successName}` };
  const written = await deps.objects.write(success, manifest, { ifAbsent: true, metadata });
  if (written === 'exists' && (await deps.objects.head(success))?.metadata[attemptMetadata] !== job.jobId) {
    throw new ConflictError(`output must be an empty prefix, but ${uriOf(success)} was written by another`, {
      jobId: job.jobId,
    });
  }
  return parts;
}

/**
 * Publishes a job's output, each part by its committed attempt's upload, then `_SUCCESS`, and records the end. Then
 * waits up to `patienceMs` for copies that lost to stop, which may take them until their next report, and cleans up:
 * nobody waits for his output because of a straggler that nobody needs. May be repeated from any point. Throws
 * `ConflictError` where another writer took the output.
 */
export async function finishJob(
  deps: FinishDeps,
  jobId: JobId,
  patienceMs: DurationMs = durationMs(0),
): Promise<void> {
  const job = await findJob(deps.jobs, jobId);
  if (job.state === 'failed' || job.state === 'cancelled')
    throw new JobFailedError(`job ${jobId} has ended`, { state: job.state });
  if (job.state === 'running') {
    const parts = await publish(deps, job);
    await deps.jobs.update(jobId, ['running'], { state: 'succeeded', endedAt: deps.clock.now(), parts });
    deps.log.info('succeeded', { jobId, parts: parts.length });
  }
  if (job.shards !== undefined) await settleAttempts(deps, { jobId, shards: job.shards }, patienceMs);
  await cleanUp(deps, job);
}

/**
 * Waits for the copies that lost, and counts how often copies of the job have straggled: only now is known how far
 * those were that nobody waited for, and most stragglers are among them. Counts them again where it is repeated.
 */
export async function settleAttempts(
  deps: Pick<FinishDeps, 'attempts' | 'clock' | 'stragglers' | 'log'>,
  space: TaskSpace,
  patienceMs: DurationMs,
): Promise<void> {
  const attempts = await stopAttempts(deps, space, patienceMs);
  // Good to know, and nothing more: no job fails for want of it.
  await deps.stragglers?.add(stragglersOfAttempts(attempts), deps.clock.now()).catch((cause: unknown) => {
    deps.log.warn('statistics-not-kept', { jobId: space.jobId, cause: String(cause) });
  });
}
