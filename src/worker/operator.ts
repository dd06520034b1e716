import type { OperatorName, SourceFormat } from '../contracts/job-spec.ts';

/** A record between stages: any bytes, compared byte by byte. */
export interface KeyValue {
  readonly key: Buffer;
  readonly value: Buffer;
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

/** One input of a task, in the order of the spec. Each of its streams may be read once; only one of them. */
export interface TaskInput {
  readonly kind: 'source' | 'stage';
  readonly format: SourceFormat;
  /** The stage that is read, undefined for a source. */
  readonly stage?: string;
  /** Lines in order. Records of a stage become lines: the key, and if the value is not empty a TAB and it. */
  blocks(): AsyncIterable<LineBlock>;
  /**
   * Lines from about so many places that are spread evenly over the input, with the bytes that they stand for; of
   * small and of compressed inputs all. Absent where there is nothing but the whole stream.
   */
  sampled?(places: number): AsyncIterable<LineBlock & { readonly standsForBytes: number }>;
  /**
   * Records in batches. All-to-all: merged, in order of key (bytes), equal keys in order of producing task.
   * Other patterns: in order of producing task and of emission. Sources: each line is a key without value.
   */
  records(): AsyncIterable<readonly KeyValue[]>;
  /** Parsed records in batches; bad ones fail the task (with file and line) or are skipped and counted. */
  rows(): AsyncIterable<readonly Row[]>;
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
  /**
   * Text as it is, in pieces of any size. In the final stage the bytes of the part; elsewhere each line is a
   * record: the key up to the first TAB, the value after it.
   */
  write(bytes: Uint8Array): Promise<void> | undefined;
}

/** What an operator sees of its task. */
export interface TaskContext {
  readonly stage: string;
  readonly task: number;
  /** Tasks of the stage; absent in user code. */
  readonly tasks?: number;
  /** Partitions of the output. */
  readonly partitions: number;
  readonly options: Readonly<Record<string, unknown>>;
  readonly inputs: readonly TaskInput[];
  readonly output: TaskOutput;
  /** A directory of the attempt's own, removed after it. */
  readonly scratchDir: string;
  /**
   * Variables for programs that the task starts. They hold no credentials, unless the stage asks for them and the
   * deployment allows it.
   */
  readonly environment: Readonly<Record<string, string>>;
  /** Fires when the attempt is cancelled. */
  readonly signal: AbortSignal;
  /**
   * Adds to a named sum of the task: up to 100 names, each 1 to 100 characters of Unicode without control characters,
   * and finite numbers. Throws `UserCodeError` at anything else.
   */
  count(name: string, by: number): void;
}

/** Combines two values of one key; must be associative and commutative. */
export type Combine = (left: Buffer, right: Buffer) => Uint8Array;

/** A stage's function. Stateless: all state is of one call. */
export interface Operator {
  /** Throws `InvalidInputError` where the options are wrong; called when a job is submitted and before `run`. */
  check(options: Readonly<Record<string, unknown>>): void;
  /** Present where values of one key may be combined before they are shuffled. */
  combiner?(options: Readonly<Record<string, unknown>>): Combine;
  run(context: TaskContext): Promise<void>;
}

/** Operators by name, as the worker gets them. */
export type OperatorRegistry = Readonly<Record<OperatorName, Operator>>;

/** Thrown for a record that cannot be read: fails the job, since a second attempt would read the same. */
export class BadRecordError extends Error {
  override readonly name = 'BadRecord';
}
/** Thrown for an input that cannot be read as what it is said to be (broken gzip, line too long, changed object). */
export class BadInputError extends Error {
  override readonly name = 'BadInput';
}
/** Thrown where user code asks the context for what it cannot have. */
export class UserCodeError extends Error {
  override readonly name = 'UserCode';
}
/** Thrown when an attempt ends because it was told to. */
export class CancelledError extends Error {
  override readonly name = 'Cancelled';
}
