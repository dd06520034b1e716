import {
  AccessDeniedError,
  ConflictError,
  InvalidInputError,
  JobFailedError,
  NotFoundError,
} from '../contracts/errors.ts';
import type { JobId } from '../contracts/ids.ts';
import { isSource, type SourceInput } from '../contracts/job-spec.ts';
import { isHiddenPath, type ObjectRef, parseUri, planKey, stageKey, uriOf } from '../contracts/keys.ts';
import { limits } from '../contracts/limits.ts';
import type { StagePlan } from '../contracts/plan.ts';
import { finalJobStates, type JobRecord, type StageSummary } from '../contracts/records.ts';
import { compareUtf8 } from '../lib/compare-utf8.ts';
import type { Manifest } from '../core/model/manifest.ts';
import { inputField } from '../core/model/job-graph.ts';
import { type PlannedJob, planStages, type ResolvedSources } from '../core/model/plan-stages.ts';
import type { SourceObject } from '../core/model/splits.ts';
import type { Clock } from '../ports/clock.ts';
import type { IdSource } from '../ports/id-source.ts';
import type { JobStore } from '../ports/job-store.ts';
import type { Log } from '../ports/log.ts';
import { archivedText, type ObjectInfo, type ObjectStore } from '../ports/object-store.ts';
import { claimOutput } from './claim-output.ts';
import { findJob } from './query-jobs.ts';
import { withUnpackedSizes } from './size-packed.ts';
import { writeManifest } from './write-manifest.ts';
import { countedPatch, type CountingDeps } from './tell-costs.ts';

export interface PlanDeps extends CountingDeps {
  readonly jobs: JobStore;
  readonly objects: ObjectStore;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Log;
  readonly dataBucket: string;
  /** Directory buckets of the tier `zonal`, one per zone; absent: there is none. */
  readonly zonalBuckets?: readonly string[];
  /** Slots of all jobs together; where nothing is said any number may be guaranteed. */
  readonly totalSlots?: number;
}

function checkGuarantee({ spec }: JobRecord, { totalSlots }: Pick<PlanDeps, 'totalSlots'>): void {
  const { guaranteedSlots } = spec;
  if (guaranteedSlots === undefined || totalSlots === undefined || guaranteedSlots <= totalSlots) return;
  throw new InvalidInputError(
    `guaranteedSlots must be at most ${totalSlots}, the slots of this deployment, not ${guaranteedSlots}`,
    { field: 'guaranteedSlots' },
  );
}

function refuseArchived(ref: ObjectRef, { archive }: ObjectInfo, field: string): void {
  if (archive === undefined) return;
  throw new InvalidInputError(`${field}: ${archivedText(uriOf(ref), archive)}`, { field });
}

/**
 * The objects behind one URI: those under a prefix that ends in "/" (or a bucket) which are not hidden there, in byte order of
 * their keys, which a listing of a directory bucket is not in; else the one of that key, whatever its name.
 */
async function objectsOf(objects: ObjectStore, uri: string, field: string): Promise<SourceObject[]> {
  const ref = parseUri(uri);
  if (ref === undefined) throw new InvalidInputError(`${field} must look like s3://bucket/key`, { field });
  if (ref.key !== '' && !ref.key.endsWith('/')) {
    const info = await objects.head(ref);
    if (info === undefined) throw new InvalidInputError(`${field}: there is no object ${uri}`, { field });
    refuseArchived(ref, info, field);
    return [{ ...ref, sizeBytes: info.sizeBytes, etag: info.etag }];
  }
  return objectsBelow(objects, ref, field);
}

/** Objects below a prefix that may be passed over, such as those of a table's log: listing them takes Plan's time. */
const mostHidden = 10 * limits.inputObjects;

async function objectsBelow(objects: ObjectStore, ref: ObjectRef, field: string): Promise<SourceObject[]> {
  const found: SourceObject[] = [];
  let hidden = 0;
  for await (const info of objects.list(ref)) {
    const { key, sizeBytes, etag } = info;
    if (key.endsWith('/')) continue; // A folder marker of the console.
    if (isHiddenPath(key.slice(ref.key.length))) {
      if (++hidden > mostHidden)
        throw new InvalidInputError(
          `${field} must have at most ${mostHidden} objects below it whose names begin with "_" or "."`,
          { field },
        );
      continue;
    }
    refuseArchived({ bucket: ref.bucket, key }, info, field);
    found.push({ bucket: ref.bucket, key, sizeBytes, etag });
    if (found.length > limits.inputObjects) {
      throw new InvalidInputError(`${field} must match at most ${limits.inputObjects} objects`, { field });
    }
  }
  if (found.length === 0) {
    const but = hidden === 0 ? '' : ' but those whose names begin with "_" or ".", which are passed over';
    throw new InvalidInputError(`${field}: there is no object under ${uriOf(ref)}${but}`, { field });
  }
  return found.sort((a, b) => compareUtf8(a.key, b.key));
}

/** A listing fails where the bucket itself is not there: the user's mistake, and theirs to find by the field. */
function blame(field: string, uri: string): (cause: unknown) => never {
  return (cause) => {
    if (cause instanceof AccessDeniedError)
      throw new AccessDeniedError(`${field}: ${cause.message}`, { ...cause.details, field }, { cause });
    if (cause instanceof InvalidInputError && cause.details['field'] === undefined)
      throw new InvalidInputError(`${field}: ${cause.message}`, { ...cause.details, field }, { cause });
    if (!(cause instanceof NotFoundError)) throw cause;
    throw new InvalidInputError(`${field}: there is no bucket for ${uri}`, { field }, { cause });
  };
}

/**
 * The objects behind one source, whose path is `field`, in the order of its entries; what several of them name is there once, at
 * the first. Throws `InvalidInputError` or `AccessDeniedError` that names it.
 */
export async function sourceObjects(
  objects: ObjectStore,
  input: SourceInput,
  field: string,
): Promise<SourceObject[]> {
  const found = new Map<string, SourceObject>();
  for (const [place, uri] of input.s3.entries()) {
    const entry = `${field}.s3[${place}]`;
    for (const object of await objectsOf(objects, uri, entry).catch(blame(entry, uri))) {
      const name = uriOf(object);
      if (!found.has(name)) found.set(name, object);
    }
  }
  return withUnpackedSizes(objects, [...found.values()]).catch(blame(field, input.s3.join(', ')));
}

/** The objects behind each source of a job's stages, by the path of its field. Throws `InvalidInputError` that names it. */
export async function resolveSources(
  objects: ObjectStore,
  job: Pick<JobRecord, 'spec'>,
): Promise<ResolvedSources> {
  const sources = new Map<string, readonly SourceObject[]>();
  const bySource = new Map<string, Promise<SourceObject[]>>(); // Two stages may read the same objects.
  for (const [stageIndex, stage] of job.spec.stages.entries()) {
    for (const [number, input] of stage.inputs.entries()) {
      if (!isSource(input)) continue;
      const field = inputField(stageIndex, number);
      const identity = JSON.stringify(input.s3);
      const found = bySource.get(identity) ?? sourceObjects(objects, input, field);
      bySource.set(identity, found);
      sources.set(field, await found);
    }
  }
  return sources;
}

async function checkOutputIsFree(objects: ObjectStore, output: ObjectRef): Promise<void> {
  for await (const { key } of objects.list(output)) {
    const there = uriOf({ bucket: output.bucket, key });
    throw new ConflictError(`output must be an empty prefix, but ${there} is there`, { field: 'output' });
  }
}

function emptySummary({ description }: StagePlan): StageSummary {
  return {
    name: description.name,
    operator: description.operator ?? 'code',
    tasks: description.tasks,
    done: 0,
    running: 0,
    failed: 0,
    bytesIn: 0,
    bytesOut: 0,
    recordsIn: 0,
    recordsOut: 0,
    workerMs: 0,
    progress: 0,
  };
}

/** Every object of a plan: its manifests, its stages' descriptions, and the plan itself last. */
function planObjects({ plan, manifests }: PlannedJob): readonly Manifest[] {
  return [
    ...manifests,
    ...plan.stages.map(({ description }) => ({
      key: stageKey(plan, description.name),
      texts: () => [JSON.stringify(description)],
    })),
    { key: planKey(plan), texts: () => [JSON.stringify(plan)] },
  ];
}

async function writePlan(deps: PlanDeps, planned: PlannedJob): Promise<void> {
  for (const manifest of planObjects(planned)) await writeManifest(deps.objects, deps.dataBucket, manifest);
}

/** Removes what this run of Plan has written, all of it under its own nonce, which no record names. */
const withdrawPlan = (deps: PlanDeps, planned: PlannedJob): Promise<void> =>
  deps.objects.remove(
    deps.dataBucket,
    planObjects(planned).map(({ key }) => key),
  );

/**
 * Makes a plan the job's, if the job still has none: the record names one plan, whoever else may be planning. A plan
 * that was not taken is withdrawn, also where it comes so late that the job has ended and been cleaned up.
 */
async function takePlan(deps: PlanDeps, job: JobRecord, planned: PlannedJob): Promise<void> {
  const { jobId } = job;
  const { plan } = planned;
  try {
    await writePlan(deps, planned);
  } catch (cause) {
    await withdrawPlan(deps, planned).catch(() => undefined);
    throw cause;
  }
  const patch = {
    state: 'running',
    startedAt: deps.clock.now(),
    shards: plan.shards,
    planNonce: plan.nonce,
    stages: plan.stages.map(emptySummary),
    ...countedPatch(deps, job),
  } as const;
  if ((await deps.jobs.update(jobId, ['submitted'], patch)) === 'updated') {
    deps.log.info('planned', {
      jobId,
      stages: plan.stages.map(({ description }) => [description.name, description.tasks]),
    });
    return;
  }
  // The record says who has won, also where the answer to a write of our own was lost.
  const { state, planNonce } = await findJob(deps.jobs, jobId);
  const hasEnded = finalJobStates.includes(state);
  if (hasEnded || planNonce !== plan.nonce) await withdrawPlan(deps, planned);
  if (hasEnded) throw new JobFailedError(`job ${jobId} has ended`, { state });
}

/**
 * Resolves a job's inputs, cuts it into tasks and writes its plan. May be repeated, also while an earlier run goes
 * on: each run lists the inputs anew and writes under a nonce of its own, and the record names the one that is
 * taken. Does nothing where the job is `running`. Throws `InvalidInputError` for inputs that are not there or are archived,
 * `ConflictError` where the output prefix holds something or an unfinished job writes there, `JobFailedError` where the job has ended.
 */
export async function planJob(deps: PlanDeps, jobId: JobId): Promise<void> {
  const job = await findJob(deps.jobs, jobId);
  if (finalJobStates.includes(job.state))
    throw new JobFailedError(`job ${jobId} has ended`, { state: job.state });
  if (job.state === 'running') return;
  const output = parseUri(job.output);
  if (output === undefined)
    throw new InvalidInputError('output must look like s3://bucket/key/', { field: 'output' });
  checkGuarantee(job, deps);
  await claimOutput(deps, job, { isPlanned: true });
  await checkOutputIsFree(deps.objects, output).catch(blame('output', job.output));
  const sources = await resolveSources(deps.objects, job);
  const { dataBucket, zonalBuckets = [] } = deps;
  const nonce = deps.ids.token();
  const context = { jobId, nonce, dataBucket, zonalBuckets, totalSlots: deps.totalSlots, output };
  await takePlan(deps, job, planStages(job.spec, sources, context));
}
