import { limits } from '../../contracts/limits.ts';
import type { Failure } from '../../contracts/records.ts';
import type { TaskInput } from '../operator.ts';
import type { RecordPlace } from './record-place.ts';

/*
 * What a worker and the process that runs user code say to each other, over one socket. The worker starts the process;
 * it answers `hello`. `start` loads the bundle and checks its options, then it is `ready`; it is given what an earlier
 * attempt has handed on, if that has (`take`, each answered by `taken`); `run` runs one task. From then on the process pulls batches of its inputs, one at a time from each stream, and sends the bytes of its output as
 * they are to lie in the object. It ends with `done` or `failed`, and is killed.
 */

/** As they were before user code came, which may change what everybody else sees. */
const { parse, stringify } = JSON;

/** Both sides are of one build; a number that differs means that they are not. */
export const protocolVersion = 1;

/** The file descriptor of the socket in the process. Its standard output and error belong to the user. */
export const channelNumber = 3;

/** Messages to the process. */
export const ToHost = {
  /** JSON, `StartMessage`. */
  start: 1,
  run: 2,
  /** Stream, then a batch in the encoding of its kind. */
  batch: 3,
  /** Stream. */
  end: 4,
  /** Stream, then JSON, `ThrownMessage`: reading threw. */
  inputFailed: 5,
  cancel: 6,
  /** Partition, then frames of it, as an earlier attempt of the task has put them out: they go into the output. */
  take: 7,
} as const;

/** Messages from the process. */
export const FromHost = {
  /** JSON, `HelloMessage`. */
  hello: 64,
  /** JSON, `ReadyMessage`. */
  ready: 65,
  /** Asks for the next batch: `encodePull`. The first one opens the stream. */
  pull: 66,
  /** Stream: nothing more is wanted of it. */
  close: 67,
  /** Output; whole frames, unless it is text of the final stage. */
  bytes: 68,
  /** A partition of the output is complete. */
  cut: 69,
  /** JSON, `DoneMessage`. */
  done: 70,
  /** JSON, `FailedMessage`. */
  failed: 71,
  /** How much of the task is done, from 0 to 1: a double. */
  progress: 72,
  /** What was to be taken is in the output. */
  taken: 73,
} as const;

/** Largest message from the process: a record, and what lies around it. */
export const mostBytesFromHost = limits.recordBytes + 1_024;
/** Largest message to the process: rows of the longest lines, as V8 writes them. */
export const mostBytesToHost = 1024 * 1024 * 1024;
/** Output is sent in pieces of about this size. */
export const outputBytes = 256 * 1024;
/** Streams that a task may have open at once, those of inputs that it reads again included. */
export const mostStreams = 64;

export interface HelloMessage {
  readonly version: number;
}

/** How an input is read. */
export const streamKinds = ['blocks', 'records', 'rows', 'located'] as const;
export type StreamKind = (typeof streamKinds)[number];

export interface StartMessage {
  /** The bundle as a file, and as messages name it. */
  readonly codePath: string;
  readonly codeName: string;
  readonly stage: string;
  readonly task: number;
  readonly attempt: number;
  readonly partitions: number;
  readonly options: Readonly<Record<string, unknown>>;
  readonly output: 'final' | 'sorted' | 'unsorted';
  readonly sortMemoryBytes: number;
  readonly operatorDir: string;
  readonly sortDir: string;
  readonly inputs: readonly DescribedInput[];
  /** What the operator has left when another attempt handed on what this one takes up; as JSON has it. */
  readonly kept?: unknown;
}

export interface ReadyMessage {
  /** Whether the operator says that its task may be cut (`Operator.resumes`). */
  readonly resumes: boolean;
}

export type DescribedInput = Pick<TaskInput, 'kind' | 'format' | 'stage'> & {
  /** Whether records are left out for bad values; absent: they fail the task. */
  readonly skipsBadValues?: boolean;
};

/** What reading an input threw, as far as user code needs to know. */
export interface ThrownMessage {
  readonly name: string;
  readonly message: string;
}

/** What user code threw. */
export interface FailedMessage extends Failure {
  /** It is what reading this stream threw. */
  readonly stream?: number | undefined;
  /** The record for which it was thrown. */
  readonly place?: RecordPlace | undefined;
}

export interface DoneMessage {
  readonly recordsOut: number;
  readonly peakMemoryBytes: number;
  /** Names and sums. */
  readonly counters: readonly (readonly [string, number])[];
  /** What the operator has left for whoever goes on, as JSON; null where that is more than can be handed on. */
  readonly state?: string | null | undefined;
}

/** The next batch of a stream is wanted; and how far the task is. */
export interface Pull {
  readonly stream: number;
  readonly input: number;
  readonly kind: StreamKind;
  readonly recordsOut: number;
  readonly peakMemoryBytes: number;
}

const pullBytes = 22;

export function encodePull(pull: Pull): Buffer {
  const body = Buffer.alloc(pullBytes);
  body.writeUInt32LE(pull.stream, 0);
  body.writeUInt8(pull.input, 4);
  body.writeUInt8(streamKinds.indexOf(pull.kind), 5);
  body.writeDoubleLE(pull.recordsOut, 6);
  body.writeDoubleLE(pull.peakMemoryBytes, 14);
  return body;
}

/** Throws `ProtocolError` where the bytes are no pull. */
export function decodePull(body: Buffer): Pull {
  if (body.length !== pullBytes) throw new ProtocolError('a request of another length');
  const kind = streamKinds[body.readUInt8(5)];
  const recordsOut = body.readDoubleLE(6);
  const peakMemoryBytes = body.readDoubleLE(14);
  if (kind === undefined || !isCount(recordsOut) || !isCount(peakMemoryBytes)) {
    throw new ProtocolError('a request that makes no sense');
  }
  return { stream: body.readUInt32LE(0), input: body.readUInt8(4), kind, recordsOut, peakMemoryBytes };
}

/** Whether a value can be how many of something there are: the other side may send anything. */
export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

/** A number that stands for itself: of a stream, at the begin of a message. */
export function numberBody(value: number): Buffer {
  const body = Buffer.alloc(4);
  body.writeUInt32LE(value);
  return body;
}

/** A double, as it is. */
export function doubleBody(value: number): Buffer {
  const body = Buffer.alloc(8);
  body.writeDoubleLE(value);
  return body;
}

/** Throws `ProtocolError` where it is no share, from 0 to 1. */
export function shareOf(body: Buffer): number {
  const share = body.length === 8 ? body.readDoubleLE(0) : NaN;
  if (share >= 0 && share <= 1) return share;
  throw new ProtocolError('progress that is no share');
}

/** Throws `ProtocolError` where there is none. */
export function numberOf(body: Buffer): number {
  if (body.length < 4) throw new ProtocolError('a message without its number');
  return body.readUInt32LE(0);
}

/** JSON as a message. */
export const jsonBody = (
  value: HelloMessage | StartMessage | ReadyMessage | ThrownMessage | FailedMessage | DoneMessage,
): Buffer => Buffer.from(stringify(value));

/** Throws `ProtocolError` where it is none. What it says is for the receiver to judge: a worker checks all of it. */
export function parsedBody(body: Buffer): unknown {
  try {
    return parse(body.toString());
  } catch (cause) {
    throw new ProtocolError('a message that is no JSON', { cause });
  }
}

/** The other side sent what it cannot have meant: something else wrote to its channel, or changed what it runs on. */
export class ProtocolError extends Error {
  override readonly name = 'Protocol';
}
