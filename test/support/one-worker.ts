import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { engineSize, sortMemoryBytes } from '../../functions/shared/task-memory.ts';
import { MemoryClock } from '../../src/adapters/memory/memory-clock.ts';
import { attemptIdOf, parseJobId } from '../../src/contracts/ids.ts';
import { isSource, jobSpecSchema } from '../../src/contracts/job-spec.ts';
import type { JobSpecInput, StageSpec } from '../../src/contracts/job-spec.ts';
import { attemptDataKey, partName } from '../../src/contracts/keys.ts';
import type { PlannedInput, SourceSegment, StageDescription } from '../../src/contracts/plan.ts';
import { operators } from '../../src/operators/registry.ts';
import { AttemptMeter } from '../../src/worker/attempt-meter.ts';
import type { AttemptInput } from '../../src/worker/attempt-plan.ts';
import type { EngineSize } from '../../src/worker/operator.ts';
import { plainEnvironment } from '../../src/worker/processes/child-environment.ts';
import { prepareTask, writerOf } from '../../src/worker/run-task.ts';
import type { TaskHost } from '../../src/worker/run-task.ts';
import type { FinishedOutput } from '../../src/worker/task-output.ts';
import { DirectoryObjects } from './directory-objects.ts';
import { userCodeEntry } from './user-code-entry.ts';

const dataBucket = 'data';
const sourceBucket = 'input';

/** What a stage took: CPU seconds of the process, bytes that it wrote, and how many tasks it had. */
export interface StageCost {
  readonly stage: string;
  readonly tasks: number;
  readonly cpuS: number;
  readonly bytesOut: number;
}

/** A worker that works on all tasks of a job, one after the other, with files in the place of S3. */
export class OneWorker {
  readonly #dir: string;
  readonly #objects: DirectoryObjects;
  readonly #host: TaskHost;
  readonly #outputs = new Map<string, FinishedOutput[]>();
  /** Why tasks went a slower way. */
  readonly notes: string[] = [];
  readonly costs: StageCost[] = [];

  /** In `dir`, whose files in `input` are the objects of a bucket of that name; of a worker of so much memory. */
  constructor(dir: string, memoryMb: number, engine?: EngineSize) {
    this.#dir = dir;
    this.#objects = new DirectoryObjects(dir);
    const memoryBytes = memoryMb * 1024 * 1024;
    this.#host = {
      environment: { plain: plainEnvironment(process.env) },
      objects: this.#objects,
      operators,
      sortMemoryBytes: sortMemoryBytes(memoryBytes),
      engine: engine ?? engineSize(memoryBytes),
      userCode: { objects: this.#objects, program: { entryPath: userCodeEntry } },
    };
  }

  /** Answers the paths of the parts of the output. */
  async run(input: JobSpecInput): Promise<readonly string[]> {
    const spec = jobSpecSchema.parse(input);
    let last: readonly FinishedOutput[] = [];
    for (const stage of spec.stages) {
      const before = process.cpuUsage();
      last = await this.#runStage(stage, spec.stages);
      const { user, system } = process.cpuUsage(before);
      const bytesOut = last.reduce((sum, one) => sum + one.bytesOut, 0);
      this.#outputs.set(stage.name, [...last]);
      this.costs.push({ stage: stage.name, tasks: last.length, cpuS: (user + system) / 1e6, bytesOut });
    }
    return last.flatMap(({ bytesOut }, task) =>
      bytesOut === 0 ? [] : [this.#objects.pathOf({ bucket: 'out', key: partName(task) })],
    );
  }

  async #runStage(stage: StageSpec, all: readonly StageSpec[]): Promise<readonly FinishedOutput[]> {
    const consumers = all.flatMap(({ inputs }) =>
      inputs.flatMap((one) => (!isSource(one) && one.stage === stage.name ? [one.pattern] : [])),
    );
    const isSorted = consumers.includes('all-to-all');
    const inputs = await Promise.all(stage.inputs.map((one) => this.#inputOf(one, all)));
    const tasks = Math.max(1, ...inputs.map(({ byTask }) => byTask?.length ?? 1));
    const description: StageDescription = {
      jobId: benchJob(),
      name: stage.name,
      operator: stage.operator,
      options: stage.options,
      worker: { kind: 'lambda', size: 'medium' },
      inputs: inputs.map(({ planned }) => planned),
      tasks,
      partitions: isSorted ? (stage.partitions ?? 8) : 1,
      output: consumers.length === 0 ? 'final' : isSorted ? 'sorted' : 'unsorted',
      dataBucket,
      outputPrefix: { bucket: 'out', key: '' },
    };
    const outputs: FinishedOutput[] = [];
    for (let task = 0; task < tasks; task++)
      outputs.push(
        await this.#runTask(
          description,
          task,
          inputs.map(({ open }) => open(task)),
        ),
      );
    return outputs;
  }

  async #runTask(
    description: StageDescription,
    task: number,
    inputs: readonly AttemptInput[],
  ): Promise<FinishedOutput> {
    const attemptId = attemptIdOf(description.name, task, 0);
    const scratchDir = join(this.#dir, 'scratch');
    await rm(scratchDir, { recursive: true, force: true });
    await mkdir(scratchDir, { recursive: true });
    const { signal } = new AbortController();
    const writer = writerOf(this.#objects, description, attemptId, {
      noteUpload: () => Promise.resolve(),
      zone: 'unknown',
    });
    const log = (_: string, facts?: Readonly<Record<string, unknown>>): void => {
      if (typeof facts?.['why'] === 'string') this.notes.push(facts['why']);
    };
    const prepared = await prepareTask(this.#host, {
      attemptId,
      plan: { description, inputs, bytesTotal: 0 },
      writer,
      meter: new AttemptMeter(new MemoryClock(), signal, () => 0),
      log: { info: log, warn: log },
      signal,
      scratchDir,
    });
    await prepared.run();
    const finished = await prepared.finish();
    if (finished.written.kind === 'inline')
      await this.#objects.write({ bucket: 'out', key: partName(task) }, finished.written.body);
    await prepared.close();
    return finished;
  }

  async #inputOf(
    input: StageSpec['inputs'][number],
    all: readonly StageSpec[],
  ): Promise<{ planned: PlannedInput; byTask?: readonly unknown[]; open: (task: number) => AttemptInput }> {
    if (isSource(input)) {
      const segments = (await Promise.all(input.s3.map((uri) => this.#split(uri, input.splitBytes)))).flat();
      const { format, header, onBadRecord } = input;
      const planned = { kind: 'source', format, header, onBadRecord, multiline: false } as const;
      return {
        planned,
        byTask: segments,
        open: (task) => ({ planned, segments: segments.slice(task, task + 1) }),
      };
    }
    const { stage, pattern } = input;
    const outputs = this.#outputs.get(stage) ?? [];
    const producerPartitions = outputs[0]?.partitions?.lengths.length ?? 1;
    const producerTasks = outputs.length;
    const planned = { kind: 'stage', stage, pattern, producerTasks, producerPartitions } as const;
    const isSpread = pattern === 'all-to-all';
    const partitions = all.find(({ name }) => name === stage)?.partitions ?? 8;
    const segmentsOf = (partition: number) =>
      outputs.map(({ partitions: index }, task) => {
        const producer = attemptIdOf(stage, task, 0);
        const offset =
          index === undefined ? 0 : [...index.lengths].slice(0, partition).reduce((a, b) => a + b, 0);
        return {
          ref: { bucket: dataBucket, key: attemptDataKey(benchJob(), producer) },
          offset,
          length: index?.lengths[partition] ?? 0,
          crc: index?.crcs[partition] ?? 0,
          producer,
        };
      });
    return {
      planned,
      ...(isSpread ? { byTask: Array.from({ length: partitions }) } : {}),
      open: (task) => ({
        planned,
        segments: segmentsOf(isSpread ? task : 0).filter(({ length }) => length > 0),
      }),
    };
  }

  async #split(uri: string, splitBytes: number): Promise<readonly SourceSegment[]> {
    const key = uri.slice(`s3://${sourceBucket}/`.length);
    const { size } = await stat(this.#objects.pathOf({ bucket: sourceBucket, key }));
    return Array.from({ length: Math.max(1, Math.ceil(size / splitBytes)) }, (_, at) => ({
      bucket: sourceBucket,
      key,
      start: at * splitBytes,
      end: Math.min(size, (at + 1) * splitBytes),
      sizeBytes: size,
      etag: '',
      gzip: false,
    }));
  }
}

function benchJob(): StageDescription['jobId'] {
  const id = parseJobId('bench-0123456789ab');
  if (id === undefined) throw new Error('the id of the bench is one');
  return id;
}
