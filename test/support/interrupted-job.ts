import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rm } from 'node:fs/promises';
import { onTestFinished } from 'vitest';
import { engineSize } from '../../functions/shared/task-memory.ts';
import { MemoryAttemptStore } from '../../src/adapters/memory/memory-attempt-store.ts';
import { MemoryClock } from '../../src/adapters/memory/memory-clock.ts';
import { MemoryObjectStore } from '../../src/adapters/memory/memory-object-store.ts';
import { attemptIdOf, attemptParts, parseJobId } from '../../src/contracts/ids.ts';
import { isSource, type JobSpecInput, jobSpecSchema } from '../../src/contracts/job-spec.ts';
import { parseUri, partName } from '../../src/contracts/keys.ts';
import type { StagePlan } from '../../src/contracts/plan.ts';
import type { AttemptRecord, TaskResult } from '../../src/contracts/records.ts';
import type { SavedOf } from '../../src/contracts/saved-work.ts';
import { durationMs } from '../../src/contracts/units.ts';
import { edgeManifest } from '../../src/core/model/edge-manifest.ts';
import { inputField } from '../../src/core/model/job-graph.ts';
import { planStages } from '../../src/core/model/plan-stages.ts';
import type { SourceObject } from '../../src/core/model/splits.ts';
import { operators } from '../../src/operators/registry.ts';
import type { Operator, OperatorRegistry, TaskContext, TaskInput } from '../../src/worker/operator.ts';
import { runAttempt } from '../../src/worker/run-attempt.ts';
import { PlaceTakenError } from '../../src/worker/time-limit.ts';

const dataBucket = 'data';
const output = { bucket: 'output', key: 'out/' };
const jobId = jobOfTest();
const combining: ReadonlySet<string> = new Set(['tokenize', 'grep-count', 'groupby-map']);
const notice = durationMs(120_000);
/** For so long each attempt has run when it loses its place: it would take far longer than its notice for all. */
const ranMs = 300_000;

function jobOfTest(): NonNullable<ReturnType<typeof parseJobId>> {
  const parsed = parseJobId('cut-0123456789ab');
  if (parsed === undefined) throw new Error('no job id');
  return parsed;
}

/** What a job came to: the text of its parts, in order, and what it counted. */
export interface JobOutcome {
  readonly text: string;
  readonly stages: readonly {
    readonly bytesIn: number;
    readonly recordsIn: number;
    readonly recordsOut: number;
  }[];
  readonly counters: Readonly<Record<string, number>>;
}

/** Runs all tasks of a job in this process, each by several attempts that lose their place at will. */
export class InterruptedJob {
  readonly #objects = new MemoryObjectStore();
  readonly #attempts = new MemoryAttemptStore();
  readonly #clock = new MemoryClock();
  readonly #inputs: Readonly<Record<string, Buffer>>;
  readonly #scratchRoot = mkdtempSync(join(tmpdir(), 'outrider-cut-'));
  readonly #space = { jobId, shards: 1 };
  readonly #hasEngine: boolean;
  /** How many attempts have gone on with what others had done. */
  takenUp = 0;

  /** Of objects by `bucket/key`; within a test. */
  constructor(inputs: Readonly<Record<string, Buffer>>, hasEngine: boolean) {
    this.#inputs = inputs;
    this.#hasEngine = hasEngine;
    onTestFinished(() => rm(this.#scratchRoot, { recursive: true, force: true }));
  }

  /** Attempt number i of each task of a stage that reads files loses its place at its block number `ats[i]`; -1: before any. */
  async run(input: JobSpecInput, ats: readonly number[]): Promise<JobOutcome> {
    for (const [name, body] of Object.entries(this.#inputs))
      await this.#objects.write(refOf(`s3://${name}`), body);
    const spec = jobSpecSchema.parse(input);
    const sources = new Map<string, readonly SourceObject[]>();
    for (const [index, stage] of spec.stages.entries())
      for (const [number, one] of stage.inputs.entries())
        if (isSource(one)) sources.set(inputField(index, number), await this.#matched(one.s3));
    const { plan, manifests } = planStages(spec, sources, { jobId, nonce: 'n', dataBucket, output });
    for (const { key, texts } of manifests)
      await this.#objects.write({ bucket: dataBucket, key }, Buffer.from([...texts()].join('')));
    const done = new Map<string, readonly TaskResult[]>();
    for (const stage of plan.stages) done.set(stage.description.name, await this.#runStage(stage, done, ats));
    return this.#outcome(plan.stages, done);
  }

  async #matched(uris: readonly string[]): Promise<readonly SourceObject[]> {
    return Promise.all(
      uris.map(async (uri) => {
        const info = await this.#objects.head(refOf(uri));
        if (info === undefined) throw new Error(`no object ${uri}`);
        return { ...refOf(uri), sizeBytes: info.sizeBytes, etag: info.etag };
      }),
    );
  }

  async #runStage(
    stage: StagePlan,
    done: ReadonlyMap<string, readonly TaskResult[]>,
    ats: readonly number[],
  ): Promise<readonly TaskResult[]> {
    const { description } = stage;
    const stageKey = `jobs/${jobId}/stages/${description.name}.json`;
    await this.#put(stageKey, JSON.stringify(description));
    for (let task = 0; task < description.tasks; task++) {
      const inputs = await this.#manifestsOf(stage, task, done);
      const readsFiles = description.inputs.some(({ kind }) => kind === 'source');
      await this.#runTask({ stageKey, name: description.name, task, inputs, ats: readsFiles ? ats : [] });
    }
    const { results } = await this.#attempts.all(this.#space);
    return results
      .filter(({ attemptId }) => attemptParts(attemptId).stage === description.name)
      .toSorted((left, right) => attemptParts(left.attemptId).task - attemptParts(right.attemptId).task);
  }

  async #manifestsOf(
    { description, manifestOffsets }: StagePlan,
    task: number,
    done: ReadonlyMap<string, readonly TaskResult[]>,
  ): Promise<readonly { key: string; start: number; end: number }[]> {
    const found = [];
    for (const [number, planned] of description.inputs.entries()) {
      if (planned.kind === 'source') {
        const offsets = manifestOffsets[number] ?? [];
        const listed = [];
        for await (const { key } of this.#objects.list({ bucket: dataBucket, key: `jobs/${jobId}/` }))
          listed.push(key);
        const key = listed.find((one) => one.endsWith(`/${description.name}/${String(number)}.ndjson`)) ?? '';
        found.push({ key, start: offsets[task] ?? 0, end: offsets[task + 1] ?? 0 });
        continue;
      }
      const lines = edgeManifest(description, planned, done.get(planned.stage) ?? []);
      const { segments = [] } = lines[lines.length === 1 ? 0 : task] ?? {};
      const key = `jobs/${jobId}/edges/${description.name}-${String(number)}-${String(task)}.ndjson`;
      found.push({
        key,
        start: 0,
        end: await this.#put(key, `${JSON.stringify({ segments: [...segments] })}\n`),
      });
    }
    return found;
  }

  async #put(key: string, text: string): Promise<number> {
    const body = Buffer.from(text);
    await this.#objects.write({ bucket: dataBucket, key }, body);
    return body.length;
  }

  async #runTask({
    stageKey,
    name,
    task,
    inputs,
    ats,
  }: {
    readonly stageKey: string;
    readonly name: string;
    readonly task: number;
    readonly inputs: readonly { key: string; start: number; end: number }[];
    readonly ats: readonly number[];
  }): Promise<void> {
    let saved: SavedOf | undefined;
    for (let attempt = 0; attempt <= ats.length; attempt++) {
      const attemptId = attemptIdOf(name, task, attempt);
      await this.#attempts.create(this.#space, attemptId, this.#clock.now());
      const stop = new AbortController();
      await runAttempt(
        {
          objects: this.#objects,
          attempts: this.#attempts,
          clock: this.#clock,
          log: { info: () => undefined, warn: () => undefined },
          operators: this.#befallen(ats[attempt], stop),
          dataBucket,
          place: { node: 'node-1', zone: 'zone-a' },
          environment: { plain: {} },
          scratchRoot: this.#scratchRoot,
          sortMemoryBytes: 1_048_576,
          ...(this.#hasEngine ? { engine: engineSize(1769 * 1024 * 1024) } : {}),
          userCode: { objects: this.#objects, program: { entryPath: '' } },
          stopSignal: stop.signal,
        },
        {
          jobId,
          attemptId,
          shards: 1,
          stageKey,
          inputs: [...inputs],
          heartbeatMs: 1_000,
          ...(saved && { saved }),
        },
      );
      const record = (await this.#attempts.all(this.#space)).attempts.find(
        (one) => one.attemptId === attemptId,
      );
      if (record?.progress?.takenUp !== undefined) this.takenUp++;
      if (record?.state === 'done') return;
      if (record?.failure?.cause !== 'interrupted') throw new Error(JSON.stringify(record));
      saved = savedBy(record) ?? saved;
    }
    throw new Error(`task ${String(task)} was never done`);
  }

  #befallen(at: number | undefined, stop: AbortController): OperatorRegistry {
    if (at === undefined) return operators;
    const what = async (): Promise<void> => {
      if (stop.signal.aborted) return;
      await this.#clock.advance(ranMs);
      stop.abort(new PlaceTakenError('Spot needs its place', notice));
    };
    const registry: Partial<Record<keyof OperatorRegistry, Operator>> = {};
    for (const [name, operator] of Object.entries(operators))
      registry[name as keyof OperatorRegistry] = {
        ...operator,
        run: async (context) => {
          if (at < 0) await what();
          await operator.run(befalling(context, at, what));
        },
      };
    return registry as OperatorRegistry;
  }

  async #outcome(
    stages: readonly StagePlan[],
    done: ReadonlyMap<string, readonly TaskResult[]>,
  ): Promise<JobOutcome> {
    const texts: string[] = [];
    const last = done.get(stages.at(-1)?.description.name ?? '') ?? [];
    for (const result of last) texts.push((await this.#bodyOf(result)).toString('latin1'));
    const counters = new Map<string, number>();
    const told = stages.map(({ description }) => {
      const results = done.get(description.name) ?? [];
      for (const result of results)
        for (const [name, by] of Object.entries(result.counters))
          counters.set(name, (counters.get(name) ?? 0) + by);
      const sum = (of: (result: TaskResult) => number): number =>
        results.reduce((all, one) => all + of(one), 0);
      // How many records go out before they are combined hangs on how many attempts put them out.
      const isCombined = combining.has(description.operator ?? '');
      return {
        bytesIn: sum((one) => one.bytesIn),
        recordsIn: sum((one) => one.recordsIn),
        recordsOut: isCombined ? 0 : sum((one) => one.recordsOut),
      };
    });
    return { text: texts.join(''), stages: told, counters: Object.fromEntries([...counters].toSorted()) };
  }

  async #bodyOf({ final, attemptId }: TaskResult): Promise<Buffer> {
    if (final === undefined) throw new Error('no part');
    if (final.kind === 'inline') return Buffer.from(final.body);
    if (final.kind !== 'upload') return Buffer.alloc(0);
    const key = output.key + partName(attemptParts(attemptId).task);
    await this.#objects.completeUpload({ ...output, key, uploadId: final.uploadId }, final.parts);
    return Buffer.from(await this.#objects.readAll({ ...output, key }));
  }
}

function refOf(uri: string): { readonly bucket: string; readonly key: string } {
  const ref = parseUri(uri);
  if (ref === undefined) throw new Error(`${uri} is no address`);
  return ref;
}

function savedBy({ attemptId, saved }: AttemptRecord): SavedOf | undefined {
  if (saved === undefined) return undefined;
  const { dataBytes, noteBytes, noteCrc } = saved;
  return { attempt: attemptParts(attemptId).attempt, dataBytes, noteBytes, noteCrc };
}

/** The context of a task to which something happens when it gets its block number `at`, or at its end before that. */
function befalling(context: TaskContext, at: number, what: () => Promise<void>): TaskContext {
  let blocks = 0;
  async function* none(): AsyncGenerator<never> {}
  async function* befallen<T>(stream: AsyncIterable<T>): AsyncGenerator<T> {
    for await (const item of stream) {
      if (blocks++ === at) await what();
      yield item;
    }
  }
  const inputs = context.inputs.map((input): TaskInput => {
    if (input.kind !== 'source') return input;
    return {
      ...input,
      blocks: () => befallen(input.blocks()),
      rows: () => befallen(input.rows()),
      ...(input.csv && { csv: (key, needed) => befallen(input.csv?.(key, needed) ?? none()) }),
      ...(input.cells && { cells: (columns) => befallen(input.cells?.(columns) ?? none()) }),
    };
  });
  return { ...context, inputs };
}
