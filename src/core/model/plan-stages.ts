import { InvalidInputError } from '../../contracts/errors.ts';
import { isSource, type JobSpec, type SourceInput } from '../../contracts/job-spec.ts';
import { inputManifestKey, type ObjectRef, type PlanPlace } from '../../contracts/keys.ts';
import { limits } from '../../contracts/limits.ts';
import { defaultPolicyConfig } from '../../contracts/policy-config.ts';
import type { Plan, PlannedInput, SourceSegment, StageDescription, StagePlan } from '../../contracts/plan.ts';
import { type GraphStage, inputField, jobGraph } from './job-graph.ts';
import { keepWithWorkers } from './kept-outputs.ts';
import { type Manifest, manifestOf } from './manifest.ts';
import { readsRows } from './operator-inputs.ts';
import { withPartHeaders } from './part-headers.ts';
import { type SourceObject, splitObjects } from './splits.ts';
import { isShuffled, partitionsOf, taskCountOf } from './task-counts.ts';

/** Matched objects of a source input, by the input's field path (`inputField`). */
export type ResolvedSources = ReadonlyMap<string, readonly SourceObject[]>;

/** A planned job and the manifests of its sources, to be written before it. */
export interface PlannedJob {
  readonly plan: Plan;
  readonly manifests: readonly Manifest[];
}

export interface PlanContext extends PlanPlace {
  readonly dataBucket: string;
  /** Directory buckets, one per zone, for jobs on the tier `zonal`; absent: none. */
  readonly zonalBuckets?: readonly string[];
  /** Attempts that may run at once; absent: any number. */
  readonly totalSlots?: number | undefined;
  readonly output: ObjectRef;
}

interface SizedStage {
  readonly stage: GraphStage;
  readonly splits: readonly (readonly (readonly SourceSegment[])[] | undefined)[];
  readonly tasks: number;
}

function splitsOf(stage: GraphStage, sources: ResolvedSources): SizedStage['splits'] {
  return stage.spec.inputs.map((input, number) => {
    if (!isSource(input)) return undefined;
    const field = inputField(stage.index, number);
    const objects = sources.get(field) ?? [];
    return splitObjects(readsRows(stage.spec) ? withPartHeaders(objects, input, field) : objects, {
      format: input.format,
      splitBytes: input.splitBytes,
      multiline: input.multiline,
      field,
    });
  });
}

/** What a job is told that asks for the tier `zonal` where there is none. */
export const noZonalTier = (): InvalidInputError =>
  new InvalidInputError(
    'storage must be "standard": this deployment has no zone of the tier "zonal" (deploy it with the parameter ZonalZone1)',
    { field: 'storage' },
  );

function plannedInput(
  input: JobSpec['stages'][number]['inputs'][number],
  sized: ReadonlyMap<string, SizedStage>,
  split: SizedStage['splits'][number],
): PlannedInput {
  if (isSource(input)) {
    const { format, header, onBadRecord, multiline }: SourceInput = input;
    const namesColumns = format === 'parquet' || format === 'ndjson' || (format === 'csv' && header);
    const first = namesColumns ? split?.find(({ length }) => length > 0)?.[0] : undefined;
    return {
      ...{ kind: 'source', format, header, onBadRecord, multiline },
      ...(first === undefined ? {} : { first }),
    };
  }
  const producer = sized.get(input.stage);
  return {
    kind: 'stage',
    stage: input.stage,
    pattern: input.pattern,
    producerTasks: producer?.tasks ?? 1,
    producerPartitions: partitionsOf(producer?.stage),
  };
}

/** Where the stages of a job leave what others read. Throws `InvalidInputError` where the deployment has not that tier. */
function placesOf(
  { storage }: JobSpec,
  { dataBucket, zonalBuckets = [] }: PlanContext,
): Pick<StageDescription, 'dataBucket' | 'zonalBuckets'> {
  if (storage !== 'zonal') return { dataBucket };
  if (zonalBuckets.length > 0) return { dataBucket, zonalBuckets: [...zonalBuckets] };
  throw noZonalTier();
}

function describe(
  { stage, tasks, splits }: SizedStage,
  sized: ReadonlyMap<string, SizedStage>,
  context: PlanContext & { readonly places: ReturnType<typeof placesOf> },
): StageDescription {
  const partitions = partitionsOf(stage);
  if (tasks * partitions > limits.shuffleSegments) {
    const field = `stages[${stage.index}].partitions`;
    throw new InvalidInputError(
      `${field} must be at most ${Math.floor(limits.shuffleSegments / tasks)} with ${tasks} tasks: a shuffle has at most ${limits.shuffleSegments} segments`,
      { field },
    );
  }
  const { spec } = stage;
  return {
    jobId: context.jobId,
    name: spec.name,
    ...(spec.operator === undefined ? {} : { operator: spec.operator }),
    ...(spec.code === undefined ? {} : { code: spec.code }),
    options: spec.options,
    ...(spec.credentials === true ? { credentials: true } : {}),
    ...(spec.cutInputs === undefined ? {} : { cutInputs: spec.cutInputs }),
    worker: spec.worker,
    inputs: spec.inputs.map((input, number) => plannedInput(input, sized, splits[number])),
    tasks,
    partitions,
    output: stage.consumers.length === 0 ? 'final' : isShuffled(stage) ? 'sorted' : 'unsorted',
    ...context.places,
    outputPrefix: context.output,
  };
}

/**
 * Cuts a job into tasks. `sources` holds the objects that each source input matched, in reading order.
 * Throws `InvalidInputError` with the field where the graph is unsound or a limit is passed.
 */
export function planStages(spec: JobSpec, sources: ResolvedSources, context: PlanContext): PlannedJob {
  const sized = new Map<string, SizedStage>();
  const places = placesOf(spec, context);
  const manifests: Manifest[] = [];
  const planned = jobGraph(spec).map((stage): StagePlan => {
    const splits = splitsOf(stage, sources);
    const counts = splits.map((perTask) => perTask?.length);
    const entry = { stage, splits, tasks: taskCountOf(stage, counts, sized) ?? 1 };
    sized.set(stage.spec.name, entry);
    const sourceBytes = Array.from({ length: entry.tasks }, () => 0);
    const manifestOffsets = splits.map((perTask, number) => {
      if (perTask === undefined) return [];
      perTask.forEach((segments, task) => {
        sourceBytes[task] = segments.reduce(
          (sum, { start, end }) => sum + end - start,
          sourceBytes[task] ?? 0,
        );
      });
      const { manifest, offsets } = manifestOf(
        inputManifestKey(context, stage.spec.name, number),
        perTask.map((segments) => ({ segments })),
      );
      manifests.push(manifest);
      return [...offsets];
    });
    return { description: describe(entry, sized, { ...context, places }), sourceBytes, manifestOffsets };
  });
  const stages = keepWithWorkers(spec, planned, context.totalSlots);
  const totalTasks = stages.reduce((sum, { description }) => sum + description.tasks, 0);
  const shards = Math.min(limits.shards, Math.max(1, Math.ceil(totalTasks / limits.tasksPerShard)));
  const { policy, policyConfig = defaultPolicyConfig } = spec;
  return {
    plan: {
      version: 1,
      jobId: context.jobId,
      nonce: context.nonce,
      name: spec.name,
      policy,
      policyConfig,
      shards,
      stages: [...stages],
    },
    manifests,
  };
}
