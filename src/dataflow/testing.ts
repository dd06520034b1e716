import { tmpdir } from 'node:os';
import { InvalidInputError } from '../contracts/errors.ts';
import { skippedRecords } from '../contracts/own-counters.ts';
import type { KeyValue, TaskContext, TaskInput, TaskOutput } from '../worker/operator.ts';
import { partitionOf } from '../worker/partition-of.ts';
import type { CompiledInput, CompiledStage } from './compile.ts';
import { isShuffled } from './compile.ts';
import type { SourceNode } from './graph.ts';
import { mainInput } from './graph.ts';
import type { Job } from './job.ts';
import { copyOfLent } from './lent-records.ts';
import { runStage } from './runtime.ts';
import { tailWriter } from './tails.ts';

/** What a job's inputs hold: lines for `read.text`, objects for `read.ndjson` and `read.csv`. */
export type Records = readonly unknown[];

/** How a job is run on lists. */
export interface RunOptions {
  /** Tasks into which each input is cut, at most. */
  readonly tasks?: number;
  /** Tasks that read a shuffle. */
  readonly partitions?: number;
}

/** What a job has made. */
export interface JobResult<T> {
  /** The records that were written, before they became text. */
  readonly records: readonly T[];
  /** The output, part after part. */
  readonly text: string;
  readonly counters: Readonly<Record<string, number>>;
}

/**
 * Runs a job on lists in memory: the same stages, cut into tasks, with what goes between them in the same bytes, but no
 * processes, files or services. `inputs` are the records of `--input`, or of several inputs by their names or paths.
 *
 * @throws InvalidInputError where an input is missing or is none of the job's, and what the job's functions throw.
 */
export async function runJob<T>(
  job: Job<T>,
  inputs: Records | Readonly<Record<string, Records>>,
  { tasks = 3, partitions = 2 }: RunOptions = {},
): Promise<JobResult<T>> {
  const lists = Array.isArray(inputs) ? { [mainInput]: inputs } : (inputs as Record<string, Records>);
  checkInputs(job, lists);
  const run = new MemoryRun(job.stages, lists, { tasks, partitions });
  for (const stage of job.stages) await run.stage(stage);
  return run.result as unknown as JobResult<T>;
}

const nameOf = ({ paths, input }: SourceNode): string => (paths.length === 0 ? input : paths.join(' '));

function checkInputs(job: Job, lists: Readonly<Record<string, Records>>): void {
  const names = new Set(
    job.stages.flatMap(({ inputs }) =>
      inputs.flatMap((input) => (input.kind === 'source' ? [nameOf(input.node)] : [])),
    ),
  );
  const wanted = `the job reads ${[...names].map((name) => JSON.stringify(name)).join(', ')}`;
  for (const name of names)
    if (!Object.hasOwn(lists, name))
      throw new InvalidInputError(`no records were given for ${JSON.stringify(name)}: ${wanted}`);
  for (const name of Object.keys(lists))
    if (!names.has(name)) throw new InvalidInputError(`nothing reads ${JSON.stringify(name)}: ${wanted}`);
}

interface Emitted extends KeyValue {
  readonly partition: number;
}

const noBytes = Buffer.alloc(0);

class MemoryRun {
  readonly result: { records: unknown[]; text: string; counters: Record<string, number> } = {
    records: [],
    text: '',
    counters: {},
  };
  readonly #stages: readonly CompiledStage[];
  readonly #lists: Readonly<Record<string, Records>>;
  readonly #sizes: Required<RunOptions>;
  /** What the tasks of each stage have emitted. */
  readonly #emitted = new Map<CompiledStage, readonly (readonly Emitted[])[]>();

  constructor(
    stages: readonly CompiledStage[],
    lists: Readonly<Record<string, Records>>,
    sizes: Required<RunOptions>,
  ) {
    this.#stages = stages;
    this.#lists = lists;
    this.#sizes = sizes;
  }

  async stage(stage: CompiledStage): Promise<void> {
    const partitions = isShuffled(stage, this.#stages) ? this.#partitionsOf(stage) : 1;
    const outputs: Emitted[][] = [];
    for (let task = 0; task < this.#tasksOf(stage); task++) {
      const emitted: Emitted[] = [];
      await this.#task(stage, task, partitions, emitted);
      outputs.push(emitted);
    }
    this.#emitted.set(stage, outputs);
  }

  #partitionsOf = (stage: CompiledStage): number => stage.parts ?? this.#sizes.partitions;

  /** All inputs that are not brought whole agree on it. */
  #tasksOf({ inputs }: CompiledStage): number {
    const [first] = inputs;
    if (first === undefined) return 1;
    if (first.kind === 'source')
      return Math.max(1, Math.min(this.#sizes.tasks, this.#list(first.node).length));
    switch (first.pattern) {
      case 'all-to-all':
        return this.#partitionsOf(first.stage);
      case 'one-to-one':
        return this.#emitted.get(first.stage)?.length ?? 1;
      case 'many-to-one':
      case 'broadcast':
        return 1;
    }
  }

  #list = (node: SourceNode): Records => this.#lists[nameOf(node)] ?? [];

  async #task(stage: CompiledStage, task: number, partitions: number, emitted: Emitted[]): Promise<void> {
    const { result } = this;
    const output: TaskOutput = {
      emit(key, value, partition) {
        const own = Buffer.from(key);
        emitted.push({
          key: own,
          value: Buffer.from(value),
          partition: partition ?? partitionOf(own, partitions),
        });
        return undefined;
      },
      write(bytes) {
        result.text += Buffer.from(bytes).toString();
        return undefined;
      },
    };
    const context: TaskContext = {
      stage: stage.name,
      task,
      attempt: 0,
      tasks: this.#tasksOf(stage),
      partitions,
      options: {},
      inputs: stage.inputs.map((input) => this.#input(input, task, this.#tasksOf(stage))),
      output,
      scratchDir: tmpdir(),
      environment: {},
      signal: new AbortController().signal,
      count: (name, by) => {
        result.counters[name] = (result.counters[name] ?? 0) + by;
      },
    };
    await runStage(stage, context, this.#sizes.partitions, (tail, to, view, goesOn) => {
      const writer = tailWriter(tail, to, view, goesOn);
      if (tail.kind !== 'sink') return writer;
      return {
        push: (record, isLent) => {
          result.records.push(isLent === true ? copyOfLent(record) : record);
          return writer.push(record, isLent);
        },
        drain: () => writer.drain(),
        finish: () => writer.finish(),
      };
    });
  }

  #input(input: CompiledInput, task: number, tasks: number): TaskInput {
    if (input.kind === 'source') {
      const list = this.#list(input.node);
      const share = (index: number): number => Math.floor((index * list.length) / tasks);
      const source = sourceOf(input.node, list.slice(share(task), share(task + 1)), share(task));
      const onBadValue = (): void => {
        const { counters } = this.result;
        counters[skippedRecords] = (counters[skippedRecords] ?? 0) + 1;
      };
      return input.node.onBadRecord === 'fail' ? source : { ...source, onBadValue };
    }
    return stageOf(input.stage.name, this.#recordsOf(input, task));
  }

  #recordsOf(
    { stage, pattern }: Extract<CompiledInput, { kind: 'stage' }>,
    task: number,
  ): readonly KeyValue[] {
    const outputs = this.#emitted.get(stage) ?? [];
    if (pattern === 'one-to-one') return outputs[task] ?? [];
    const all = outputs.flat();
    if (pattern !== 'all-to-all') return all;
    // A stable sort: equal keys stay in order of producing task and of emission.
    return all
      .filter(({ partition }) => partition === task)
      .sort((left, right) => left.key.compare(right.key));
  }
}

async function* once<T>(item: T): AsyncGenerator<T> {
  yield await Promise.resolve(item);
}

/** Offsets count records: there are no bytes. */
function sourceOf(node: SourceNode, records: Records, first: number): TaskInput {
  const file = nameOf(node);
  const text = (): string => {
    for (const record of records) {
      if (typeof record !== 'string')
        throw new InvalidInputError(`records of read.text must be texts, lines without their ends`);
    }
    return records.map((line) => `${String(line)}\n`).join('');
  };
  return {
    kind: 'source',
    format: node.format,
    blocks: () => once({ bytes: Buffer.from(text()), file, offset: first }),
    records: () => once(records.map((line) => ({ key: Buffer.from(String(line)), value: noBytes }))),
    rows: () => once(records as readonly Record<string, unknown>[]),
    located: () =>
      once({
        // Functions may change what they are given, and the caller's lists are not theirs.
        rows: structuredClone(records) as readonly Record<string, unknown>[],
        file,
        offsets: records.map((_, index) => first + index),
      }),
  };
}

/** Batches as of a real input: no more records than that at once. */
const batchRecords = 1_000;

function stageOf(stage: string, records: readonly KeyValue[]): TaskInput {
  async function* batches(): AsyncGenerator<readonly KeyValue[]> {
    for (let at = 0; at < records.length; at += batchRecords)
      yield await Promise.resolve(records.slice(at, at + batchRecords));
  }
  const none = (): never => {
    throw new InvalidInputError('stages of a job read records');
  };
  return { kind: 'stage', format: 'text', stage, blocks: none, records: batches, rows: none };
}
