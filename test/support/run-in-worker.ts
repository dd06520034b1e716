import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { sortMemoryBytes, engineSize } from '../../functions/shared/task-memory.ts';
import { SystemClock } from '../../src/adapters/node/system-clock.ts';
import { attemptIdOf, parseJobId, taskIdOf } from '../../src/contracts/ids.ts';
import { isSource, jobSpecSchema, type JobSpecInput } from '../../src/contracts/job-spec.ts';
import { attemptDataKey, type ObjectRef, parseUri, partName } from '../../src/contracts/keys.ts';
import { type Plan, type PlannedInput, sourceManifestLineSchema } from '../../src/contracts/plan.ts';
import type { TaskResult } from '../../src/contracts/records.ts';
import { edgeManifest } from '../../src/core/model/edge-manifest.ts';
import { inputField } from '../../src/core/model/job-graph.ts';
import { planStages } from '../../src/core/model/plan-stages.ts';
import type { SourceObject } from '../../src/core/model/splits.ts';
import { operators } from '../../src/operators/registry.ts';
import type { ObjectStore } from '../../src/ports/object-store.ts';
import { AttemptMeter } from '../../src/worker/attempt-meter.ts';
import type { AttemptInput } from '../../src/worker/attempt-plan.ts';
import { prepareTask, runOperator, writerOf } from '../../src/worker/run-task.ts';

const dataBucket = 'data';
const output = { bucket: 'output', key: 'out/' };
/** The medium worker of the deployment, one core. */
const workerBytes = 1769 * 1024 * 1024;

/** What a stage came to. CPU is of this process, with what the store takes of it. */
export interface MeasuredStage {
  readonly stage: string;
  readonly tasks: number;
  readonly cpuMs: number;
  readonly wallMs: number;
  readonly bytesOut: number;
}

/**
 * Runs a job in this process as medium workers would, one task after the other and with nothing between tasks: no
 * records, no scheduler. Its parts are left in the store, see `partsOf`.
 */
export async function runInWorker(
  objects: ObjectStore,
  input: JobSpecInput,
  scratchRoot: string,
  sortBytes = sortMemoryBytes(workerBytes),
): Promise<readonly MeasuredStage[]> {
  const jobId = parseJobId('bench-0123456789ab');
  if (jobId === undefined) throw new Error('no job id');
  const spec = jobSpecSchema.parse(input);
  const sources = new Map<string, readonly SourceObject[]>();
  for (const [index, stage] of spec.stages.entries())
    for (const [number, one] of stage.inputs.entries())
      if (isSource(one)) sources.set(inputField(index, number), await matched(objects, one.s3));
  const { plan, manifests } = planStages(spec, sources, { jobId, nonce: 'n', dataBucket, output });
  const text = new Map(manifests.map(({ key, texts }) => [key, [...texts()].join('')]));
  const done = new Map<string, readonly TaskResult[]>();
  const measured: MeasuredStage[] = [];
  for (const stage of plan.stages) {
    const before = process.cpuUsage();
    const began = performance.now();
    const results: TaskResult[] = [];
    for (let task = 0; task < stage.description.tasks; task++)
      results.push(await runOne({ objects, stage, text, done, scratchRoot, task, sortBytes }));
    done.set(stage.description.name, results);
    const { user, system } = process.cpuUsage(before);
    measured.push({
      stage: stage.description.name,
      tasks: stage.description.tasks,
      cpuMs: (user + system) / 1_000,
      wallMs: performance.now() - began,
      bytesOut: results.reduce((sum, { bytesOut }) => sum + bytesOut, 0),
    });
  }
  return measured;
}

/** Where the parts of a job of so many last tasks lie, in order; those that are empty are not there. */
export const partsOf = (tasks: number): ObjectRef[] =>
  Array.from({ length: tasks }, (_, task) => ({ bucket: output.bucket, key: output.key + partName(task) }));

async function matched(objects: ObjectStore, uris: readonly string[]): Promise<readonly SourceObject[]> {
  return Promise.all(
    uris.map(async (uri) => {
      const ref = parseUri(uri);
      const info = ref === undefined ? undefined : await objects.head(ref);
      if (ref === undefined || info === undefined) throw new Error(`no object ${uri}`);
      return { ...ref, sizeBytes: info.sizeBytes, etag: info.etag };
    }),
  );
}

interface OneTask {
  readonly objects: ObjectStore;
  readonly stage: Plan['stages'][number];
  readonly text: ReadonlyMap<string, string>;
  readonly done: ReadonlyMap<string, readonly TaskResult[]>;
  readonly scratchRoot: string;
  readonly task: number;
  readonly sortBytes: number;
}

async function runOne(one: OneTask): Promise<TaskResult> {
  const { objects, stage, scratchRoot, task } = one;
  const { description } = stage;
  const attemptId = attemptIdOf(description.name, task, 0);
  const scratchDir = await mkdtemp(join(scratchRoot, 'attempt-'));
  const { signal } = new AbortController();
  const clock = new SystemClock();
  const meter = new AttemptMeter(clock, signal, () => 0);
  const writer = writerOf(objects, description, attemptId, {
    noteUpload: () => Promise.resolve(),
    zone: 'unknown',
  });
  const inputs = description.inputs.map((planned, number) => inputOf(one, planned, number));
  const prepared = await prepareTask(
    {
      environment: { plain: {} },
      objects,
      operators,
      sortMemoryBytes: one.sortBytes,
      engine: engineSize(workerBytes),
      userCode: { objects, program: { entryPath: '' } },
    },
    {
      attemptId,
      plan: { description, inputs, bytesTotal: 0 },
      writer,
      meter,
      log: { info: () => undefined, warn: () => undefined },
      signal,
      scratchDir,
    },
  );
  await runOperator(clock, prepared);
  const { partitions, bytesOut, written } = await prepared.finish();
  if (written.kind === 'inline')
    await objects.write({ bucket: output.bucket, key: output.key + partName(task) }, written.body);
  await rm(scratchDir, { recursive: true });
  return {
    taskId: taskIdOf(description.name, task),
    attemptId,
    committedAt: clock.now(),
    ...(partitions === undefined ? {} : { partitions }),
    bytesOut,
    bytesIn: meter.bytesRead,
    recordsIn: meter.recordsIn,
    recordsOut: meter.recordsOut,
    counters: {},
    progress: meter.progress(),
  };
}

function inputOf({ stage, text, done, task }: OneTask, planned: PlannedInput, number: number): AttemptInput {
  const { description } = stage;
  if (planned.kind === 'source') {
    const offsets = stage.manifestOffsets[number] ?? [];
    const manifest = [...text.entries()].find(([key]) =>
      key.endsWith(`/${description.name}/${String(number)}.ndjson`),
    );
    const line = Buffer.from(manifest?.[1] ?? '').subarray(offsets[task], offsets[task + 1]);
    return { planned, segments: sourceManifestLineSchema.parse(JSON.parse(line.toString())).segments };
  }
  const lines = edgeManifest(description, planned, done.get(planned.stage) ?? []);
  const { segments = [] } = lines[lines.length === 1 ? 0 : task] ?? {};
  return {
    planned,
    segments: [...segments].map(({ task: from, attempt, offset, length, crc }) => {
      const producer = attemptIdOf(planned.stage, from, attempt);
      const ref = { bucket: dataBucket, key: attemptDataKey(description.jobId, producer) };
      return { ref, offset, length, crc, producer };
    }),
  };
}
