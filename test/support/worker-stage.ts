import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { onTestFinished } from 'vitest';
import { MemoryAttemptStore } from '../../src/adapters/memory/memory-attempt-store.ts';
import { MemoryClock } from '../../src/adapters/memory/memory-clock.ts';
import { MemoryObjectStore } from '../../src/adapters/memory/memory-object-store.ts';
import { attemptIdOf, parseJobId } from '../../src/contracts/ids.ts';
import type { AttemptId, JobId } from '../../src/contracts/ids.ts';
import { attemptDataKey } from '../../src/contracts/keys.ts';
import type { AttemptPayload } from '../../src/contracts/payloads.ts';
import type {
  PlannedInput,
  SourceSegment,
  StageDescription,
  StageSegment,
} from '../../src/contracts/plan.ts';
import type { AttemptRecord, TaskResult } from '../../src/contracts/records.ts';
import { operatorNames } from '../../src/contracts/job-spec.ts';
import type { Operator, OperatorRegistry, TaskContext } from '../../src/worker/operator.ts';
import { plainEnvironment } from '../../src/worker/processes/child-environment.ts';
import { userCodeEntry } from './user-code-entry.ts';
import { runAttempt } from '../../src/worker/run-attempt.ts';
import type { AttemptDeps } from '../../src/worker/run-attempt.ts';

const dataBucket = 'data-bucket';
let serial = 0;
const jobId = mustBeJobId('words-0123456789ab');

function mustBeJobId(text: string): JobId {
  const parsed = parseJobId(text);
  if (parsed === undefined) throw new Error(`${text} is no job id`);
  return parsed;
}

/** What a stage of a test looks like; the rest is the same everywhere. */
export interface StageOfTest {
  readonly run: (context: TaskContext) => Promise<void>;
  readonly combiner?: NonNullable<Operator['combiner']>;
  readonly check?: Operator['check'];
  readonly output?: StageDescription['output'];
  readonly partitions?: number;
  readonly inputs?: readonly {
    readonly planned: PlannedInput;
    readonly segments: readonly (SourceSegment | StageSegment)[];
  }[];
  readonly name?: string;
  readonly credentials?: boolean;
  /** User code in the place of `run`. */
  readonly code?: StageDescription['code'];
  readonly options?: StageDescription['options'];
}

/** Stores, a clock and a worker around one stage at a time. */
export class WorkerOfTest {
  readonly objects = new MemoryObjectStore();
  readonly attempts = new MemoryAttemptStore();
  readonly clock = new MemoryClock();
  readonly logged: string[] = [];
  readonly jobId = jobId;
  readonly space = { jobId, shards: 1 };
  readonly dataBucket = dataBucket;
  readonly scratchRoot = join(tmpdir(), `outrider-worker-test-${String(process.pid)}-${String(serial++)}`);

  /** Within a test, which removes the scratch directory when it ends. */
  constructor() {
    onTestFinished(() => rm(this.scratchRoot, { recursive: true, force: true }));
  }

  async prepare(stage: StageOfTest, number = 0, task = 0): Promise<AttemptPayload> {
    const name = stage.name ?? 'work';
    const inputs = stage.inputs ?? [];
    const description: StageDescription = {
      jobId,
      name,
      ...(stage.code === undefined ? { operator: 'grep' } : { code: stage.code }),
      options: stage.options ?? {},
      ...(stage.credentials === undefined ? {} : { credentials: stage.credentials }),
      worker: { kind: 'lambda', size: 'medium' },
      inputs: inputs.map(({ planned }) => planned),
      tasks: 1,
      partitions: stage.partitions ?? 1,
      output: stage.output ?? 'final',
      dataBucket,
      outputPrefix: { bucket: 'output-bucket', key: 'out/' },
    };
    const stageKey = `jobs/${jobId}/stages/${name}-${String(number)}.json`;
    await this.objects.write({ bucket: dataBucket, key: stageKey }, Buffer.from(JSON.stringify(description)));
    const manifests = [];
    for (const [index, { segments }] of inputs.entries()) {
      const key = `jobs/${jobId}/inputs/${name}/${String(index)}.ndjson`;
      const line = Buffer.from(`${JSON.stringify({ segments })}\n`);
      await this.objects.write(
        { bucket: dataBucket, key },
        Buffer.concat([Buffer.from('other task\n'), line]),
      );
      manifests.push({ key, start: 11, end: 11 + line.length });
    }
    const attemptId = attemptIdOf(name, task, number);
    await this.attempts.create(this.space, attemptId, this.clock.now());
    return { jobId, attemptId, shards: 1, stageKey, inputs: manifests, heartbeatMs: 1_000 };
  }

  deps(stage: StageOfTest, extra: Partial<AttemptDeps> = {}): AttemptDeps {
    const operator: Operator = {
      check: stage.check ?? (() => undefined),
      run: stage.run,
      ...(stage.combiner === undefined ? {} : { combiner: stage.combiner }),
    };
    const log = (event: string): void => {
      this.logged.push(event);
    };
    return {
      objects: this.objects,
      attempts: this.attempts,
      clock: this.clock,
      log: { info: log, warn: log },
      operators: registryOf(operator),
      dataBucket,
      environment: { plain: plainEnvironment(process.env) },
      place: { node: 'node-1', zone: 'zone-a' },
      scratchRoot: this.scratchRoot,
      sortMemoryBytes: 4_096,
      userCode: { objects: this.objects, program: { entryPath: userCodeEntry } },
      ...extra,
    };
  }

  /** Prepares and runs one attempt. */
  async run(stage: StageOfTest, number = 0, extra: Partial<AttemptDeps> = {}): ReturnType<typeof runAttempt> {
    return runAttempt(this.deps(stage, extra), await this.prepare(stage, number));
  }

  async attempt(id: AttemptId): Promise<AttemptRecord | undefined> {
    const { attempts } = await this.attempts.all(this.space);
    return attempts.find(({ attemptId }) => attemptId === id);
  }

  async results(): Promise<readonly TaskResult[]> {
    return (await this.attempts.all(this.space)).results;
  }

  /** Intermediate objects and unfinished uploads, by key. */
  async leftovers(): Promise<{ data: string[]; uploads: string[] }> {
    const data: string[] = [];
    const uploads: string[] = [];
    for await (const { key } of this.objects.list({ bucket: dataBucket, key: `jobs/${jobId}/data/` }))
      data.push(key);
    for await (const { key } of this.objects.listUploads({ bucket: 'output-bucket', key: '' }))
      uploads.push(key);
    for await (const { key } of this.objects.listUploads({ bucket: dataBucket, key: '' })) uploads.push(key);
    return { data, uploads };
  }

  /** Puts what attempt `stage/task/0` would have written, and answers the segment of all of it. */
  async putData(stage: string, task: number, frames: Uint8Array): Promise<StageSegment> {
    const key = attemptDataKey(jobId, attemptIdOf(stage, task, 0));
    await this.objects.write({ bucket: dataBucket, key }, frames);
    return { task, attempt: 0, offset: 0, length: frames.length, crc: crc32(frames) };
  }
}

function registryOf(operator: Operator): OperatorRegistry {
  const registry: Partial<Record<keyof OperatorRegistry, Operator>> = {};
  for (const name of operatorNames) registry[name] = operator;
  return registry as OperatorRegistry;
}
