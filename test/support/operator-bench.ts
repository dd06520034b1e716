import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { isSource, jobSpecSchema } from '../../src/contracts/job-spec.ts';
import type { JobSpecInput, SourceFormat, StageSpec } from '../../src/contracts/job-spec.ts';
import { MemoryObjectStore } from '../../src/adapters/memory/memory-object-store.ts';
import { operators } from '../../src/operators/registry.ts';
import type { SourceSegment } from '../../src/contracts/plan.ts';
import { csvBlocks } from '../../src/worker/csv-blocks.ts';
import { ndjsonCells } from '../../src/worker/ndjson-rows.ts';
import type { SourceReading } from '../../src/worker/object-ranges.ts';
import { plainEnvironment } from '../../src/worker/processes/child-environment.ts';
import type {
  CsvBlock,
  EngineSize,
  JsonCells,
  KeyValue,
  Operator,
  Row,
  TaskContext,
  TaskInput,
  TaskOutput,
} from '../../src/worker/operator.ts';

/** A random number in [0, 1), the same sequence for the same seed. */
export function seeded(seed: number): () => number {
  let state = (seed ^ 0x9e3779b9) >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Whole lines of a text; the last may lack its newline. */
export function linesOf(text: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < text.length;) {
    const found = text.indexOf(10, start);
    const end = found < 0 ? text.length : found + 1;
    lines.push(text.subarray(start, end));
    start = end;
  }
  return lines;
}

const chopped = (line: Buffer): Buffer => (line.at(-1) === 10 ? line.subarray(0, -1) : line);

/** Lines put together to pieces of random size, but at least one line each. */
function pieces(lines: readonly Buffer[], random: () => number): Buffer[] {
  const cut: Buffer[] = [];
  for (let at = 0; at < lines.length;) {
    const take = 1 + Math.floor(random() * 20);
    cut.push(Buffer.concat(lines.slice(at, at + take)));
    at += take;
  }
  return cut;
}

function batches<T>(items: readonly T[], random: () => number): T[][] {
  const cut: T[][] = [];
  for (let at = 0; at < items.length;) {
    const take = Math.floor(random() * 20);
    cut.push(items.slice(at, at + take));
    at += take;
  }
  return cut;
}

async function* stream<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

/** As of inputs that have none. */
const noRows = (): never => {
  throw new Error('the operator reads rows');
};

function rowsOf(text: Buffer, format: SourceFormat): Row[] {
  if (format === 'text') noRows();
  if (format === 'csv') return parse(text, { columns: true, skip_empty_lines: true });
  return linesOf(text).map((line) => JSON.parse(line.toString()) as Row);
}

/** An input of one source text. */
export function sourceOf(text: Buffer, random: () => number, format: SourceFormat = 'text'): TaskInput {
  const lines = linesOf(text);
  return {
    kind: 'source',
    format,
    blocks: () => stream(pieces(lines, random).map((bytes) => ({ bytes, file: 'file', offset: 0 }))),
    records: () =>
      stream(
        batches(
          lines.map((line) => ({ key: chopped(line), value: Buffer.alloc(0) })),
          random,
        ),
      ),
    rows: () => stream(batches(rowsOf(text, format), random)),
    ...(format === 'csv' ? { csv: (key, needed) => csvOf(text, key, needed) } : {}),
    ...(format === 'csv' ? { firstColumns: () => Promise.resolve(headerOf(text)) } : {}),
    ...(format === 'ndjson' ? { cells: (columns) => cellsOf(text, columns) } : {}),
  };
}

const headerOf = (text: Buffer): string[] | undefined => parse(text, { bom: true, to: 1 })[0];

/** The records of a CSV file as the worker finds them in its bytes. */
async function* csvOf(
  text: Buffer,
  key: string | undefined,
  needed: readonly string[] | undefined,
): AsyncGenerator<CsvBlock> {
  const { reading, segment } = await readingOf(text);
  yield* csvBlocks(reading, segment, { header: true, bad: failing, key, needed });
}

/** The values of columns of NDJSON as the worker finds them in its bytes. */
async function* cellsOf(text: Buffer, columns: readonly string[]): AsyncGenerator<JsonCells> {
  const { reading, segment } = await readingOf(text);
  yield* ndjsonCells(reading, segment, { bad: failing, columns });
}

const failing = { policy: 'fail', onSkip: () => undefined } as const;

/** A file in memory, and how a worker reads it. */
async function readingOf(text: Buffer): Promise<{ reading: SourceReading; segment: SourceSegment }> {
  const objects = new MemoryObjectStore();
  const ref = { bucket: 'bucket', key: 'file' };
  await objects.write(ref, text);
  const etag = (await objects.head(ref))?.etag ?? '';
  const segment = { ...ref, etag, sizeBytes: text.length, start: 0, end: text.length, gzip: false };
  return { reading: { objects, signal: new AbortController().signal, onBytes: () => undefined }, segment };
}

/** An input of records of a stage. */
export function recordsOf(stage: string, records: readonly KeyValue[], random: () => number): TaskInput {
  return {
    kind: 'stage',
    format: 'text',
    stage,
    blocks: () =>
      stream(pieces(records.map(lineOf), random).map((bytes) => ({ bytes, file: stage, offset: 0 }))),
    records: () => stream(batches(records, random)),
    rows: noRows,
  };
}

const lineOf = ({ key, value }: KeyValue): Buffer =>
  Buffer.concat(
    value.length === 0 ? [key, Buffer.from('\n')] : [key, Buffer.from('\t'), value, Buffer.from('\n')],
  );

interface Emitted extends KeyValue {
  readonly partition: number;
}

/** Gathers what an operator emits and writes. */
class Collector implements TaskOutput {
  readonly records: Emitted[] = [];
  readonly texts: Buffer[] = [];
  /** How many records are in the texts, where it is told of each. */
  told = 0;
  private readonly partitions: number;

  constructor(partitions: number) {
    this.partitions = partitions;
  }

  emit(key: Uint8Array, value: Uint8Array, partition?: number): undefined {
    const own = Buffer.from(key);
    const to = partition ?? own.reduce((hash, byte) => (hash * 31 + byte) % 65_521, 7) % this.partitions;
    if (to < 0 || to >= this.partitions)
      throw new Error(`partition ${String(to)} of ${String(this.partitions)}`);
    const record = { key: own, value: Buffer.from(value), partition: to };
    this.records.push(record);
    this.texts.push(lineOf(record));
  }

  write(bytes: Uint8Array, records = Number.NaN): Promise<void> {
    this.texts.push(Buffer.from(bytes));
    this.told += records;
    return Promise.resolve();
  }

  /** Records by key, those of one key combined. */
  sorted(partition: number, operator: Operator, options: Row): KeyValue[] {
    const combine = operator.combiner?.(options);
    const sorted = this.records.filter((record) => record.partition === partition);
    sorted.sort((left, right) => left.key.compare(right.key));
    if (combine === undefined) return sorted;
    const combined: KeyValue[] = [];
    for (const { key, value } of sorted) {
      const last = combined.at(-1);
      if (last?.key.equals(key) !== true) combined.push({ key, value });
      else combined.splice(-1, 1, { key, value: Buffer.from(combine(last.value, value)) });
    }
    return combined;
  }
}

/** What runs of operators left behind. */
export interface BenchTask {
  readonly records: readonly Emitted[];
  readonly text: Buffer;
  readonly counts: Readonly<Record<string, number>>;
}

/** Runs one task of an operator; `check` first, as a worker would. */
export async function runTask(
  operator: Operator,
  options: Row,
  inputs: readonly TaskInput[],
  {
    partitions = 1,
    task = 0,
    tasks,
    signal = new AbortController().signal,
    environment = plainEnvironment(process.env),
    isFinal = true,
    printed = [],
    engine,
    notes = [],
    tally,
    kept,
    keep,
    progress,
  }: {
    partitions?: number;
    task?: number;
    /** Tasks of the stage. */
    tasks?: number;
    signal?: AbortSignal;
    environment?: Readonly<Record<string, string>>;
    isFinal?: boolean;
    /** Takes what programs print. */
    printed?: string[];
    engine?: EngineSize | undefined;
    /** Takes what the task notes in the job's log. */
    notes?: string[];
    tally?: TaskContext['tally'];
    kept?: unknown;
    keep?: NonNullable<TaskContext['keep']>;
    /** Takes what the task says of its progress, with its directory. */
    progress?: (fraction: number, scratchDir: string) => void;
  } = {},
): Promise<BenchTask & { collector: Collector }> {
  operator.check(options);
  const collector = new Collector(partitions);
  const counts: Record<string, number> = {};
  const scratchDir = await mkdtemp(join(tmpdir(), 'operator-'));
  try {
    await operator.run({
      stage: 'stage',
      task,
      ...(tasks === undefined ? {} : { tasks }),
      partitions,
      options,
      inputs,
      output: collector,
      scratchDir,
      isFinal,
      environment,
      signal,
      ...(engine === undefined ? {} : { engine }),
      ...(tally === undefined ? {} : { tally }),
      ...(kept === undefined ? {} : { kept }),
      ...(keep === undefined ? {} : { keep }),
      progress: (fraction) => progress?.(fraction, scratchDir),
      note: (text) => {
        notes.push(text);
      },
      print: (stream, text) => {
        printed.push(`${stream}: ${text}`);
      },
      count: (name, by) => {
        counts[name] = (counts[name] ?? 0) + by;
      },
    });
  } finally {
    await rm(scratchDir, { recursive: true });
  }
  return { records: collector.records, text: Buffer.concat(collector.texts), counts, collector };
}

type Files = Readonly<Record<string, Buffer>>;

/**
 * Runs a job in memory, stage by stage; answers the parts of its output. Text is split, other files are not. `engineOf` tells
 * what relational work each stage may use.
 */
export async function runJob(
  input: JobSpecInput,
  files: Files,
  seed = 1,
  engineOf: (stage: string) => EngineSize | undefined = () => undefined,
): Promise<Buffer[]> {
  const random = seeded(seed);
  const spec = jobSpecSchema.parse(input);
  const done = new Map<string, { stage: StageSpec; tasks: Collector[] }>();
  let parts: Buffer[] = [];
  for (const stage of spec.stages) {
    const operator = operators[stage.operator ?? 'exec'];
    const consumed = spec.stages
      .flatMap(({ inputs }) => inputs)
      .find((one) => 'stage' in one && one.stage === stage.name);
    const partitions =
      consumed !== undefined && 'pattern' in consumed && consumed.pattern === 'all-to-all'
        ? (stage.partitions ?? 8)
        : 1;
    const byInput = stage.inputs.map((one) => inputTasks(one, files, done, random));
    const count = Math.max(...byInput.map(({ tasks }) => tasks ?? 0), 1);
    const tasks = [];
    for (let task = 0; task < count; task++) {
      const inputs = byInput.map(({ open }) => open(task));
      tasks.push(
        await runTask(operator, stage.options, inputs, {
          partitions,
          task,
          isFinal: consumed === undefined,
          engine: engineOf(stage.name),
        }),
      );
    }
    done.set(stage.name, { stage, tasks: tasks.map(({ collector }) => collector) });
    parts = tasks.map(({ text }) => text);
  }
  return parts;
}

function inputTasks(
  input: StageSpec['inputs'][number],
  files: Files,
  done: ReadonlyMap<string, { stage: StageSpec; tasks: Collector[] }>,
  random: () => number,
): { tasks?: number; open: (task: number) => TaskInput } {
  if (isSource(input)) {
    const texts = input.s3.map((uri) => files[uri] ?? Buffer.alloc(0));
    const splits =
      input.format === 'text' ? texts.flatMap((text) => splitText(text, input.splitBytes)) : texts;
    return {
      tasks: splits.length,
      open: (task) => sourceOf(splits[task] ?? Buffer.alloc(0), random, input.format),
    };
  }
  const producer = done.get(input.stage);
  if (producer === undefined) throw new Error(`no stage ${input.stage}`);
  const operator = operators[producer.stage.operator ?? 'exec'];
  const all = (): KeyValue[] => producer.tasks.flatMap(({ records }) => records);
  switch (input.pattern) {
    case 'broadcast':
      return { open: () => recordsOf(input.stage, all(), random) };
    case 'many-to-one':
      return { tasks: 1, open: () => recordsOf(input.stage, all(), random) };
    case 'one-to-one':
      return {
        tasks: producer.tasks.length,
        open: (task) => recordsOf(input.stage, producer.tasks[task]?.records ?? [], random),
      };
    case 'all-to-all':
      return {
        tasks: producer.stage.partitions ?? 8,
        open: (task) => {
          const merged = producer.tasks.flatMap((one) => one.sorted(task, operator, producer.stage.options));
          return recordsOf(
            input.stage,
            merged.sort((left, right) => left.key.compare(right.key)),
            random,
          );
        },
      };
  }
}

/** Lines that begin in each range of `splitBytes` bytes; at least one split. */
function splitText(text: Buffer, splitBytes: number): Buffer[] {
  const splits: Buffer[][] = [[]];
  let offset = 0;
  for (const line of linesOf(text)) {
    const at = Math.floor(offset / splitBytes);
    (splits[at] ??= []).push(line);
    offset += line.length;
  }
  return Array.from(splits, (lines: Buffer[] | undefined) => Buffer.concat(lines ?? []));
}
