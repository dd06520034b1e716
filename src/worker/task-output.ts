import { invariant } from '../contracts/errors.ts';
import { limits } from '../contracts/limits.ts';
import type { PartitionIndex } from '../contracts/records.ts';
import type { AttemptMeter } from './attempt-meter.ts';
import type { ExternalSort } from './external-sort.ts';
import type { FrameSink } from './frame-sink.ts';
import { frameBytes, writeFrame } from './framing.ts';
import type { ObjectWriter, WrittenObject } from './object-writer.ts';
import { BadInputError } from './operator.ts';
import type { KeyBatch, TaskOutput } from './operator.ts';

const newline = 10;
const tab = 9;
const newlineBytes = Buffer.from('\n');
const tabBytes = Buffer.from('\t');
const noValue = Buffer.alloc(0);

/** Where bytes of an output go: what an `ObjectWriter` does, as far as outputs need it. */
export type ByteSink = Pick<ObjectWriter, 'sizeBytes' | 'append' | 'takeChecksum' | 'finish'>;

/** What a task's output came to. */
export interface FinishedOutput {
  readonly written: WrittenObject;
  /** Absent for text of the final stage. */
  readonly partitions?: PartitionIndex;
  readonly bytesOut: number;
}

/** What is written behind an output, once its index is known. It is no part of it. */
export type Trailer = (partitions: PartitionIndex) => Uint8Array;

/** The output of a task and how it ends. */
export interface ClosableOutput extends TaskOutput {
  /** Writes what is left, and `trailer` behind it. */
  finish(trailer?: Trailer): Promise<FinishedOutput>;
}

/** Appends what goes behind an output of this index, if anything does. */
export async function appendTrailer(
  writer: ByteSink,
  partitions: PartitionIndex,
  trailer: Trailer | undefined,
): Promise<void> {
  const bytes = trailer?.(partitions);
  if (bytes !== undefined) await writer.append(bytes, 0, bytes.length);
}

/** Writes frames partition by partition into one object, and keeps each partition's length and CRC-32. */
export class PartitionedObject implements FrameSink {
  readonly #writer: ByteSink;
  readonly #partitions: number;
  readonly #lengths: number[] = [];
  readonly #crcs: number[] = [];

  constructor(writer: ByteSink, partitions: number) {
    this.#writer = writer;
    this.#partitions = partitions;
  }

  put(partition: number, bytes: Buffer, start: number, end: number): Promise<void> | undefined {
    if (partition !== this.#lengths.length) this.#closeBefore(partition);
    return this.#writer.append(bytes, start, end);
  }

  #closeBefore(partition: number): void {
    while (this.#lengths.length < partition) {
      const { lengthBytes, crc } = this.#writer.takeChecksum();
      this.#lengths.push(lengthBytes);
      this.#crcs.push(crc);
    }
  }

  async finish(trailer?: Trailer): Promise<FinishedOutput> {
    this.#closeBefore(this.#partitions);
    const partitions = { lengths: this.#lengths, crcs: this.#crcs };
    const bytesOut = this.#writer.sizeBytes;
    await appendTrailer(this.#writer, partitions, trailer);
    return { written: await this.#writer.finish(), partitions, bytesOut };
  }
}

/** What a line may have that is one record: a TAB is of neither key nor value. */
const mostLineBytes = limits.recordBytes + 1;
/** Memory of an open line that is kept for the next one. */
const keptLineBytes = 64 * 1024;

/**
 * Cuts pieces of text into lines (without "\n") and hands each to `take`, which must be done with it before the next piece
 * comes; `flush` gives a last one without end. Throws `BadInputError` as soon as a line is longer than a record may be.
 */
class LineSplitter {
  readonly #take: (line: Uint8Array) => Promise<void> | undefined;
  #open: Buffer = noValue;
  #openBytes = 0;

  constructor(take: (line: Uint8Array) => Promise<void> | undefined) {
    this.#take = take;
  }

  /** Synchronous as long as nobody waits. */
  push(bytes: Uint8Array, from = 0): Promise<void> | undefined {
    let start = from;
    for (let end = bytes.indexOf(newline, start); end >= 0; end = bytes.indexOf(newline, start)) {
      const taken = this.#take(this.#close(bytes.subarray(start, end)));
      start = end + 1;
      if (taken !== undefined) {
        const rest = start;
        return taken.then(() => this.push(bytes, rest));
      }
    }
    if (start < bytes.length) this.#gather(bytes.subarray(start));
    return undefined;
  }

  /** Keeps a copy of a piece of a line, in memory that grows with the line and not with the number of its pieces. */
  #gather(piece: Uint8Array): void {
    const size = this.#openBytes + piece.length;
    if (size > mostLineBytes) {
      const most = String(limits.recordBytes);
      throw new BadInputError(`a record has at least ${String(size)} bytes; the most is ${most}`);
    }
    if (size > this.#open.length) {
      const grown = Buffer.allocUnsafeSlow(Math.min(mostLineBytes, Math.max(size, 2 * this.#open.length)));
      grown.set(this.#open.subarray(0, this.#openBytes));
      this.#open = grown;
    }
    this.#open.set(piece, this.#openBytes);
    this.#openBytes = size;
  }

  #close(end: Uint8Array): Uint8Array {
    if (this.#openBytes === 0) return end;
    this.#gather(end);
    const line = this.#open.subarray(0, this.#openBytes);
    if (this.#open.length > keptLineBytes) this.#open = noValue;
    this.#openBytes = 0;
    return line;
  }

  flush(): Promise<void> | undefined {
    return this.#openBytes === 0 ? undefined : this.#take(this.#close(noValue));
  }
}

/**
 * Emits `line` as a record: the key up to the first TAB, the value after it. A TAB with nothing behind it is left in the key
 * where nobody looks for keys (`keepsText`): a record without value has none when it becomes a line again.
 */
function emitLine(line: Uint8Array, emit: TaskOutput['emit'], keepsText: boolean): Promise<void> | undefined {
  const cut = line.indexOf(tab);
  const isKey = cut < 0 || (keepsText && cut === line.length - 1);
  return isKey ? emit(line, noValue) : emit(line.subarray(0, cut), line.subarray(cut + 1));
}

/** Records for an all-to-all consumer: sorted by key within each partition. */
export class SortedOutput implements ClosableOutput {
  readonly #sort: ExternalSort;
  readonly #object: PartitionedObject;
  readonly #partitions: number;
  readonly #meter: AttemptMeter;
  readonly #lines: LineSplitter;

  constructor(sort: ExternalSort, writer: ByteSink, partitions: number, meter: AttemptMeter) {
    this.#sort = sort;
    this.#object = new PartitionedObject(writer, partitions);
    this.#partitions = partitions;
    this.#meter = meter;
    // "a" and "a<TAB>" are of one key, and have to meet.
    this.#lines = new LineSplitter((line) => emitLine(line, (key, value) => this.emit(key, value), false));
  }

  emit(key: Uint8Array, value: Uint8Array, partition?: number): Promise<void> | undefined {
    if (partition !== undefined) checkPartition(partition, this.#partitions);
    this.#meter.recordsOut++;
    const added = this.#sort.add(key, value, partition);
    return added === undefined ? undefined : this.#meter.during('write', () => added);
  }

  emitKeys(keys: KeyBatch): Promise<void> | undefined {
    for (let each = 0; each < keys.count; each++)
      checkPartition(keys.partitions[each] ?? -1, this.#partitions);
    this.#meter.recordsOut += keys.count;
    const added = this.#sort.addKeys(keys);
    return added === undefined ? undefined : this.#meter.during('write', () => added);
  }

  write(bytes: Uint8Array): Promise<void> | undefined {
    return this.#lines.push(bytes);
  }

  async finish(trailer?: Trailer): Promise<FinishedOutput> {
    await this.#lines.flush();
    await this.#sort.finish(this.#object);
    return this.#object.finish(trailer);
  }
}

function checkPartition(partition: number, partitions: number): void {
  if (Number.isInteger(partition) && partition >= 0 && partition < partitions) return;
  throw new RangeError(`partition ${String(partition)} is not one of the ${String(partitions)} of the stage`);
}

/** Records in order of emission, in one partition. */
export class UnsortedOutput implements ClosableOutput {
  readonly #object: PartitionedObject;
  readonly #meter: AttemptMeter;
  readonly #lines: LineSplitter;
  #frame: Buffer = Buffer.allocUnsafe(4096);

  constructor(writer: ByteSink, partitions: number, meter: AttemptMeter) {
    invariant(partitions === 1, 'unsorted output has one partition', { partitions });
    this.#object = new PartitionedObject(writer, 1);
    this.#meter = meter;
    this.#lines = new LineSplitter((line) => emitLine(line, (key, value) => this.emit(key, value), true));
  }

  emit(key: Uint8Array, value: Uint8Array, partition?: number): Promise<void> | undefined {
    if (partition !== undefined) checkPartition(partition, 1);
    this.#meter.recordsOut++;
    const sizeBytes = frameBytes(key.length, value.length);
    if (sizeBytes > this.#frame.length) this.#frame = Buffer.allocUnsafeSlow(2 * sizeBytes);
    writeFrame(this.#frame, 0, key, value);
    const stored = this.#object.put(0, this.#frame, 0, sizeBytes);
    return stored === undefined ? undefined : this.#meter.during('write', () => stored);
  }

  write(bytes: Uint8Array): Promise<void> | undefined {
    return this.#lines.push(bytes);
  }

  async finish(trailer?: Trailer): Promise<FinishedOutput> {
    await this.#lines.flush();
    return this.#object.finish(trailer);
  }
}

/** Text of the final stage. */
export class FinalOutput implements ClosableOutput {
  readonly #writer: ByteSink;
  readonly #meter: AttemptMeter;
  /** Whether the last byte written was not the end of a line, which then counts at the end. */
  #isLineOpen = false;

  constructor(writer: ByteSink, meter: AttemptMeter) {
    this.#writer = writer;
    this.#meter = meter;
  }

  emit(key: Uint8Array, value: Uint8Array): Promise<void> | undefined {
    this.#meter.recordsOut++;
    let stored = this.#writer.append(key, 0, key.length);
    if (value.length > 0) {
      stored = this.#then(stored, tabBytes);
      stored = this.#then(stored, value);
    }
    stored = this.#then(stored, newlineBytes);
    const waited = stored;
    return waited === undefined ? undefined : this.#meter.during('write', () => waited);
  }

  #then(before: Promise<void> | undefined, bytes: Uint8Array): Promise<void> | undefined {
    return before === undefined
      ? this.#writer.append(bytes, 0, bytes.length)
      : before.then(() => this.#writer.append(bytes, 0, bytes.length));
  }

  write(bytes: Uint8Array, records?: number): Promise<void> | undefined {
    if (bytes.length === 0) return undefined;
    this.#meter.recordsOut += records ?? linesIn(bytes);
    this.#isLineOpen = records === undefined && bytes[bytes.length - 1] !== newline;
    const stored = this.#writer.append(bytes, 0, bytes.length);
    return stored === undefined ? undefined : this.#meter.during('write', () => stored);
  }

  async finish(trailer?: Trailer): Promise<FinishedOutput> {
    // Where it is handed on, whoever goes on counts the line.
    if (this.#isLineOpen && trailer === undefined) this.#meter.recordsOut++;
    const bytesOut = this.#writer.sizeBytes;
    if (trailer !== undefined) {
      const { lengthBytes, crc } = this.#writer.takeChecksum();
      await appendTrailer(this.#writer, { lengths: [lengthBytes], crcs: [crc] }, trailer);
    }
    return { written: await this.#writer.finish(), bytesOut };
  }
}

function linesIn(bytes: Uint8Array): number {
  let lines = 0;
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) lines++;
  return lines;
}

/** Refuses output after the attempt has ended: an operator that was cancelled may still run for a moment. */
export function guarded(output: TaskOutput, signal: AbortSignal): TaskOutput {
  return {
    emit(key, value, partition) {
      signal.throwIfAborted();
      return output.emit(key, value, partition);
    },
    ...(output.emitKeys === undefined
      ? {}
      : {
          emitKeys(keys: KeyBatch) {
            signal.throwIfAborted();
            return output.emitKeys?.(keys);
          },
        }),
    write(bytes, records) {
      signal.throwIfAborted();
      return output.write(bytes, records);
    },
  };
}
