import { crc32 } from 'node:zlib';
import { attemptIdOf, attemptParts } from '../contracts/ids.ts';
import { attemptDataKey, type ObjectRef } from '../contracts/keys.ts';
import type { AttemptPayload } from '../contracts/payloads.ts';
import type { PartitionIndex } from '../contracts/records.ts';
import { type SavedNote, savedNoteSchema, type SavedOf, type TakenUp } from '../contracts/saved-work.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { AttemptMeter } from './attempt-meter.ts';
import { type AttemptPlan, restOfPlan } from './attempt-plan.ts';
import { FrameCursor } from './frame-cursor.ts';
import type { PreparedTask } from './run-task.ts';

/** What an earlier attempt has handed on cannot be taken up: the task begins anew, and nothing has failed. */
export class NotTakenUpError extends Error {
  override readonly name = 'NotTakenUp';
}

/** What an earlier attempt of the task has handed on. */
export interface EarlierWork {
  readonly attempt: number;
  readonly note: SavedNote;
  /** What is left of the task. */
  readonly plan: AttemptPlan;
  readonly ref: ObjectRef;
}

/** What reading it needs. */
export interface EarlierReading {
  readonly objects: ObjectStore;
  readonly dataBucket: string;
  readonly signal: AbortSignal;
}

/** Finds what a launch names. Throws `NotTakenUpError` where it is not there or not what was written. */
export async function findEarlierWork(
  { objects, dataBucket, signal }: EarlierReading,
  { jobId, attemptId }: Pick<AttemptPayload, 'jobId' | 'attemptId'>,
  saved: SavedOf,
  plan: AttemptPlan,
): Promise<EarlierWork> {
  const { stage, task } = attemptParts(attemptId);
  const { attempt, dataBytes, noteBytes, noteCrc } = saved;
  const ref = { bucket: dataBucket, key: attemptDataKey(jobId, attemptIdOf(stage, task, attempt)) };
  const note = await orNotTakenUp(signal, async () => {
    const range = { start: dataBytes, end: dataBytes + noteBytes };
    const bytes = Buffer.from(await objects.readAll(ref, range, signal));
    if (bytes.length !== noteBytes || crc32(bytes) !== noteCrc) throw new Error('its note is damaged');
    return savedNoteSchema.parse(JSON.parse(bytes.toString('utf8')));
  });
  const length = note.partitions.lengths.reduce((sum, each) => sum + each, 0);
  const rest = restOfPlan(plan, note.inputs);
  if (rest === undefined || length !== dataBytes) throw new NotTakenUpError('its note is of another task');
  return { attempt, note, plan: rest, ref };
}

/**
 * Puts the output of what was done into the task's own, in its order, and adds the counts, before the operator runs; answers what it
 * has taken up. Throws
 * `NotTakenUpError` where that is gone, short or has other bytes: then the output is spoilt.
 */
export async function takeUp(
  { objects, signal }: EarlierReading,
  { attempt, note, ref, plan }: EarlierWork,
  task: PreparedTask,
  meter: AttemptMeter,
): Promise<Omit<TakenUp, 'ms'>> {
  const { output, taken } = task.handOver ?? {};
  if (output === undefined) throw new NotTakenUpError('its operator begins at the begin');
  const { partitions } = note;
  const boundaries = endsOf(partitions.lengths);
  const range = { start: 0, end: boundaries.at(-1) ?? 0 };
  await orNotTakenUp(signal, async () => {
    const chunks = checked(range.end === 0 ? [] : objects.read(ref, { range, signal }), partitions);
    if (plan.description.output === 'final') {
      for await (const chunk of chunks) await output.write(chunk);
      return;
    }
    const cursor = new FrameCursor(0, async () => (await chunks.next()).value ?? undefined, boundaries);
    for (let more = cursor.advance(); ; more = cursor.advance()) {
      if (!(typeof more === 'boolean' ? more : await more)) break;
      const { bytes, keyStart, keyEnd, end, partition } = cursor;
      const wait = output.emit(bytes.subarray(keyStart, keyEnd), bytes.subarray(keyEnd, end), partition);
      if (wait !== undefined) await wait;
    }
    await taken?.();
  });
  for (const [name, by] of note.counters) meter.count(name, by);
  meter.recordsIn += note.recordsIn;
  // Whatever it took to put them in again.
  meter.recordsOut = note.recordsOut;
  return { attempt, bytes: note.bytesDone };
}

/** Where each part ends that begins where the one before it ends. */
function endsOf(lengths: readonly number[]): readonly number[] {
  let end = 0;
  return lengths.map((length) => (end += length));
}

/** Passes the partitions of an output on as they come, and throws where one has not the length and the CRC-32 that it had. */
async function* checked(
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { lengths, crcs }: PartitionIndex,
): AsyncGenerator<Buffer, undefined> {
  let [partition, left, crc] = [0, lengths[0] ?? 0, 0];
  const passFull = (): void => {
    for (; left === 0 && partition < lengths.length; partition++) {
      if (crc !== crcs[partition]) throw new Error('its output is damaged');
      left = lengths[partition + 1] ?? 0;
      crc = 0;
    }
  };
  passFull();
  for await (const bytes of source) {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let at = 0; at < chunk.length;) {
      const size = Math.min(left, chunk.length - at);
      if (size === 0) throw new Error('its output is longer than it was');
      crc = crc32(chunk.subarray(at, at + size), crc);
      at += size;
      left -= size;
      passFull();
    }
    yield chunk;
  }
  if (partition < lengths.length) throw new Error('its output is shorter than it was');
  return undefined;
}

/** Whatever goes wrong, but that the attempt is to stop. */
async function orNotTakenUp<T>(signal: AbortSignal, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (cause) {
    signal.throwIfAborted();
    throw new NotTakenUpError(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}
