import { ErrorName } from '../contracts/errors.ts';
import type { OperatorName, SourceFormat } from '../contracts/job-spec.ts';

/** A record between stages: any bytes, compared byte by byte. */
export interface KeyValue {
  readonly key: Buffer;
  readonly value: Buffer;
}

/**
 * Many keys without values, in one piece of memory: key number i is `bytes[starts[i], ends[i])`, for the partition
 * `partitions[i]`. Keys lie one behind the other in the order in which they are emitted, with little between them.
 */
export interface KeyBatch {
  readonly bytes: Buffer;
  readonly count: number;
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  readonly partitions: Uint16Array;
}

/** Records as lines: the key, if the value is not empty a TAB and it, and "\n". */
export interface RecordLines {
  readonly bytes: Buffer;
  readonly records: number;
}

/** Whole lines of text: `bytes` begins at a line's begin and ends after "\n", but perhaps at the end of a file. */
export interface LineBlock {
  readonly bytes: Buffer;
  /** Where the lines come from, for messages: object key and byte offset of the first line within the file. */
  readonly file: string;
  readonly offset: number;
}

/** A parsed NDJSON or CSV record: column → value; CSV values are strings, NDJSON values as they are. */
export type Row = Readonly<Record<string, unknown>>;

/** Rows of one file, and the byte at which each begins in it. */
export interface LocatedRows {
  readonly rows: readonly Row[];
  readonly file: string;
  readonly offsets: ArrayLike<number>;
}

/** What a task reads of an object: its `s3://` address, and the bytes [start, end) in which its lines begin. */
export interface SourcePiece {
  readonly uri: string;
  readonly start: number;
  readonly end: number;
  /** Whether its name says that it is compressed as a whole. */
  readonly isPacked: boolean;
}

/** A file that is read by places: which of its bytes are the task's, and any of all its bytes. */
export interface SourceFile extends SourcePiece {
  readonly sizeBytes: number;
  /** Bytes [start, end); they count as read where they are of what was expected. */
  read(start: number, end: number, isExpected?: boolean): AsyncIterable<Uint8Array>;
  /** Says how many bytes the task takes of the file, where these are not those of its piece. */
  expect(bytes: number): void;
}

/** Whole records of a CSV file, well-formed (RFC 4180), each ended by "\n"; without header and without empty lines. */
export interface CsvBlock {
  readonly bytes: Buffer;
  readonly columns: readonly string[];
  readonly records: CsvRecords;
}

/** Places within the bytes of a `CsvBlock`, by record; valid until the next block is asked for. */
export interface CsvRecords {
  readonly count: number;
  /** Where records begin; each ends before the "\n" at `ends`. */
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /** The cell of the key, with its quotes where it has some; means nothing where nobody asked for a key. */
  readonly keyStarts: Int32Array;
  readonly keyEnds: Int32Array;
}

/**
 * Values of some columns of NDJSON, as JSON: of record r and column c it is `bytes[starts[i], ends[i])`, i being r times the
 * number of columns plus c, and empty where the record has no such column. Good until the next are asked for.
 */
export interface JsonCells {
  readonly bytes: Buffer;
  readonly count: number;
  readonly starts: Int32Array;
  readonly ends: Int32Array;
}

/** What an engine of relational work may use. */
export interface EngineSize {
  /** 0: there is to be none. */
  readonly memoryBytes: number;
  readonly threads: number;
}

/** One input of a task, in the order of the spec. Each of its streams may be read once; only one of them. */
export interface TaskInput {
  readonly kind: 'source' | 'stage';
  readonly format: SourceFormat;
  /** The stage that is read, undefined for a source. */
  readonly stage?: string;
  /** Of a source: what of which objects the task reads, in order. */
  readonly objects?: readonly SourcePiece[];
  /** The files of a source of Parquet, in order; absent elsewhere. */
  readonly files?: readonly SourceFile[];
  /** Lines in order. Records of a stage become lines: the key, and if the value is not empty a TAB and it. */
  blocks(): AsyncIterable<LineBlock>;
  /** Counts a record that is left out for a bad value; absent where such a record fails the task. */
  readonly onBadValue?: () => void;
  /**
   * Lines from about so many places that are spread evenly over the input, with the bytes that they stand for; of
   * small and of compressed inputs all. Absent where there is nothing but the whole stream.
   */
  sampled?(places: number): AsyncIterable<LineBlock & { readonly standsForBytes: number }>;
  /**
   * Where the task reads but a part of its partition, and the first piece of all is another task's: the records of that
   * piece, for what those at its begin say of all others; whoever has read them stops. Absent: `records` begins with it.
   */
  head?(): AsyncIterable<readonly KeyValue[]>;
  /**
   * Records in batches. All-to-all: merged, in order of key (bytes), equal keys in order of producing task.
   * Other patterns: in order of producing task and of emission. Sources: each line is a key without value.
   */
  records(): AsyncIterable<readonly KeyValue[]>;
  /**
   * The records of CSV as bytes, checked: bad ones fail the task or are skipped as with `rows`. With `key` the places
   * of that column's cells are told, too; a file with records and without it, or without one of `needed`, throws
   * `BadRecordError`. Absent where the input is not CSV from files.
   */
  csv?(key?: string, needed?: readonly string[]): AsyncIterable<CsvBlock>;
  /**
   * The columns in the header of the first file of CSV, which another task may read: tasks that each write rows of their
   * own files write them in that order. Undefined where nobody can tell.
   */
  firstColumns?(): Promise<readonly string[] | undefined>;
  /** The first file of Parquet, which another task may read, for the same. */
  readonly firstFile?: SourceFile;
  /** Records with which the first file of NDJSON begins, for the same; none where it has none. */
  firstRows?(): Promise<readonly Row[]>;
  /**
   * `records` as lines, in their order, many at once, each block until the next is asked for; absent where there is no
   * quicker way to them than by `records`.
   */
  recordLines?(): AsyncIterable<RecordLines>;
  /** The values of columns of the records of NDJSON as JSON, bad ones as with `rows`; absent elsewhere. */
  cells?(columns: readonly string[]): AsyncIterable<JsonCells>;
  /** Parsed records in batches; bad ones fail the task (with file and line) or are skipped and counted. */
  rows(): AsyncIterable<readonly Row[]>;
  /** `rows` with the places from which they come; absent where they come from no file. */
  located?(): AsyncIterable<LocatedRows>;
  /** Whether the last stream of it has ended before its end, for another attempt to go on; absent where that cannot be. */
  endedEarly?(): boolean;
  /**
   * `s3://bucket/key:17`: the line of one of the task's files that holds a byte. Reads the file up to there, but not beyond a
   * gigabyte: `s3://bucket/key: the line at byte 2000000000`.
   */
  placeAt?(file: string, offset: number): Promise<string>;
}

/**
 * The output of a task. Await what a call returns before the next one: `undefined` means go on at once.
 * The bytes are copied: the caller may reuse its buffers.
 */
export interface TaskOutput {
  /**
   * A record for the consumers. `partition` overrides hash(key) mod partitions. In the final stage: a line, the
   * key, and if the value is not empty a TAB and it.
   */
  emit(key: Uint8Array, value: Uint8Array, partition?: number): Promise<void> | undefined;
  /** As `emit` of each key without a value, but without a call for each; absent where there is nothing quicker. */
  emitKeys?(keys: KeyBatch): Promise<void> | undefined;
  /**
   * Text as it is, in pieces of any size. In the final stage the bytes of the part; elsewhere each line is a
   * record: the key up to the first TAB, the value after it. Who reads such records as lines reads what was written, byte for
   * byte, each line ended; but all-to-all a TAB with nothing behind it is lost if it is its line's first: "a<TAB>" is the key
   * "a" without a value, and is to meet "a". Otherwise that line is a key as a whole. `records`: in the final stage, how many of
   * them begin in it, from a caller who knows that: none in a header, and one in a row of several lines. Else each line counts.
   */
  write(bytes: Uint8Array, records?: number): Promise<void> | undefined;
}

/** What an operator may leave for whoever goes on: plain JSON, of at most 4 MB. */
export interface JsonState {
  readonly [name: string]: JsonValue;
}
type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonState;

/** What an operator sees of its task. */
export interface TaskContext {
  readonly stage: string;
  readonly task: number;
  /** Number of the attempt, from 0. */
  readonly attempt?: number;
  /** Takes what programs print, a line at a time, for the job's log; absent in user code, whose output goes there. */
  readonly print?: (stream: 'stdout' | 'stderr', text: string) => void;
  /** Tasks of the stage; absent in user code. */
  readonly tasks?: number;
  /** Partitions of the output. */
  readonly partitions: number;
  readonly options: Readonly<Record<string, unknown>>;
  readonly inputs: readonly TaskInput[];
  readonly output: TaskOutput;
  /** A directory of the attempt's own, removed after it. */
  readonly scratchDir: string;
  /** What an engine of relational work may use; absent: little. */
  readonly engine?: EngineSize;
  /** Whether the output is the job's, and not for another stage; absent in user code. */
  readonly isFinal?: boolean;
  /**
   * Variables for programs that the task starts. They hold no credentials, unless the stage asks for them and the
   * deployment allows it.
   */
  readonly environment: Readonly<Record<string, string>>;
  /** Fires when the attempt is cancelled. */
  readonly signal: AbortSignal;
  /**
   * Adds to a named sum of the task: up to 100 names besides the system's own, each 1 to 100 characters of Unicode without control
   * characters, and finite numbers. Throws `UserCodeError` at anything else.
   */
  count(name: string, by: number): void;
  /** Tells the job's log why the task takes a slower way than it could, in words for people; absent in user code. */
  readonly note?: (why: string) => void;
  /** Adds to what the task is said to have read and written, where one record stands for several; absent in user code. */
  readonly tally?: (records: { readonly in?: number; readonly out?: number }) => void;
  /** What the operator has left with `keep` when an attempt of the task handed on what this one takes up; absent: nothing. */
  readonly kept?: unknown;
  /** Leaves what whoever takes the task up has to know besides the output so far; at the end of `run`. As JSON. */
  readonly keep?: (state: JsonState) => void;
  /** Tells how much of the task is done, from 0 to 1, in place of the share of its input that was read. */
  progress?(fraction: number): void;
}

/** Combines two values of one key; must be associative and commutative. */
export type Combine = (left: Buffer, right: Buffer) => Uint8Array;

/** A stage's function. Stateless: all state is of one call. */
export interface Operator {
  /** Throws `InvalidInputError` where the options are wrong; called when a job is submitted and before `run`. */
  check(options: Readonly<Record<string, unknown>>): void;
  /** Present where values of one key may be combined before they are shuffled. */
  combiner?(options: Readonly<Record<string, unknown>>): Combine;
  /**
   * Whether a task may be cut between any two records of its sources, and the output of the rest put behind that of what
   * came before, or combined with it, to what an unbroken run would have given: it keeps each input's order, and no state
   * over its records but what it hands to `keep` and finds in `kept`. It reads its sources one after the other, each to
   * its end; what it writes as text is whole lines. Absent: not so, and an attempt that loses its place has done nothing. True is
   * for stages that read sources alone. A function answers for the options of a stage, which `check` has passed, and for one
   * that reads other stages besides: each attempt reads those whole, so that they must give nothing by themselves.
   */
  readonly resumes?: true | ((options: Readonly<Record<string, unknown>>, readsStages: boolean) => boolean);
  run(context: TaskContext): Promise<void>;
}

/** Whether an operator says of a stage with these options that its tasks may be cut; `readsStages`: it reads others besides. */
export function saysItResumes(
  { resumes }: Operator,
  options: Readonly<Record<string, unknown>>,
  readsStages: boolean,
): boolean {
  return typeof resumes === 'function' ? resumes(options, readsStages) : resumes === true && !readsStages;
}

/** Operators by name, as the worker gets them. */
export type OperatorRegistry = Readonly<Record<OperatorName, Operator>>;

/** Thrown for a record that cannot be read: fails the job, since a second attempt would read the same. */
export class BadRecordError extends Error {
  override readonly name = 'BadRecord';
}
/**
 * Thrown for a record that can be read and holds a value that its operator cannot use. Left out and counted like one that
 * cannot be read, where an input skips those.
 */
export class BadValueError extends BadRecordError {}
/** Thrown for an input that cannot be read as what it is said to be (broken gzip, line too long, changed object). */
export class BadInputError extends Error {
  override readonly name = 'BadInput';
}
/** Thrown where what runs in an operator has no more memory; a larger worker may have it. */
export class OutOfMemoryError extends Error {
  override readonly name = ErrorName.OutOfMemory;
}
/** Thrown where user code asks the context for what it cannot have. */
export class UserCodeError extends Error {
  override readonly name = 'UserCode';
}
/** Thrown when an attempt ends because it was told to. */
export class CancelledError extends Error {
  override readonly name = 'Cancelled';
}
