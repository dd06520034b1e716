import type { Combine } from './operator.ts';
import { copyShort, isShort, viewOf } from './copy-short.ts';
import { frameOf, writeVarint } from './framing.ts';

/** A record within a buffer: its key is `bytes[keyStart, keyEnd)`, its value `bytes[keyEnd, end)`. */
export interface FrameView {
  readonly bytes: Buffer;
  /** Of the same memory. */
  readonly view: DataView;
  readonly keyStart: number;
  readonly keyEnd: number;
  readonly end: number;
  readonly partition: number;
}

/** Takes frames in order of partition. Await what a call returns before anything else; until then `bytes` must stay. */
export interface FrameSink {
  /** Copies the frames `bytes[start, end)`, any number of them. */
  put(partition: number, bytes: Buffer, start: number, end: number): Promise<void> | undefined;
}

/** Small enough for the cache of a core, and large enough that a call for each costs nothing. */
const batchBytes = 64 * 1024;
/** The two lengths before a record, at most. */
const mostHeaderBytes = 10;

/**
 * Writes records as frames, many of one partition at once. Await what a call returns before the record moves. Throws
 * `BadInputError` where a record is longer than `limits.recordBytes`.
 */
export class FrameBatch {
  readonly #sink: FrameSink;
  readonly #buffer: Buffer = Buffer.allocUnsafeSlow(batchBytes);
  readonly #view = viewOf(this.#buffer);
  #used = 0;
  #partition = -1;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  put(record: FrameView): Promise<void> | undefined {
    const most = record.end - record.keyStart + mostHeaderBytes;
    if (record.partition !== this.#partition || this.#used + most > batchBytes) return this.#putFirst(record);
    this.#append(record);
    return undefined;
  }

  #append({ bytes, view, keyStart, keyEnd, end }: FrameView): void {
    const buffer = this.#buffer;
    const at = writeVarint(buffer, writeVarint(buffer, this.#used, keyEnd - keyStart), end - keyEnd);
    const size = end - keyStart;
    if (isShort(size)) copyShort(this.#view, at, view, keyStart, size);
    else bytes.copy(buffer, at, keyStart, end);
    this.#used = at + size;
  }

  /** The first record of a batch. */
  #putFirst(record: FrameView): Promise<void> | undefined {
    const flushed = this.flush();
    return flushed === undefined ? this.#begin(record) : flushed.then(() => this.#begin(record));
  }

  #begin(record: FrameView): Promise<void> | undefined {
    this.#partition = record.partition;
    if (record.end - record.keyStart + mostHeaderBytes > batchBytes) return this.#putLarge(record);
    this.#append(record);
    return undefined;
  }

  #putLarge({ partition, bytes, keyStart, keyEnd, end }: FrameView): Promise<void> | undefined {
    const frame = frameOf(bytes.subarray(keyStart, keyEnd), bytes.subarray(keyEnd, end));
    return this.#sink.put(partition, frame, 0, frame.length);
  }

  /** Passes on what is gathered; call at the end. */
  flush(): Promise<void> | undefined {
    const used = this.#used;
    if (used === 0) return undefined;
    this.#used = 0;
    return this.#sink.put(this.#partition, this.#buffer, 0, used);
  }
}

function memoryOf(sizeBytes: number): Pick<FrameView, 'bytes' | 'view'> {
  const bytes = Buffer.allocUnsafeSlow(sizeBytes);
  return { bytes, view: viewOf(bytes) };
}

/** Combines the values of equal keys that come one after the other, and passes the results on. */
export class CombiningSink {
  readonly #output: FrameBatch;
  readonly #combine: Combine | undefined;
  /** The pending record, in memory of its own; partition −1 where there is none. */
  readonly #pending = { ...memoryOf(256), keyStart: 0, keyEnd: 0, end: 0, partition: -1 };

  /** Without `combine` everything is passed on as it is. */
  constructor(sink: FrameSink, combine: Combine | undefined) {
    this.#output = new FrameBatch(sink);
    this.#combine = combine;
  }

  /** Await what is returned before the record moves. */
  put(record: FrameView): Promise<void> | undefined {
    const combine = this.#combine;
    if (combine === undefined) return this.#output.put(record);
    if (this.#isSameKey(record)) {
      const { bytes, keyEnd, end } = this.#pending;
      const value = combine(bytes.subarray(keyEnd, end), record.bytes.subarray(record.keyEnd, record.end));
      this.#replaceValue(value);
      return undefined;
    }
    const passed = this.#passOn();
    if (passed === undefined) {
      this.#keep(record);
      return undefined;
    }
    // The sink may still read the old record: it is overwritten only after that.
    return passed.then(() => {
      this.#keep(record);
    });
  }

  #passOn(): Promise<void> | undefined {
    return this.#pending.partition < 0 ? undefined : this.#output.put(this.#pending);
  }

  /** Passes the last record on; call at the end. */
  async flush(): Promise<void> {
    await this.#passOn();
    this.#pending.partition = -1;
    await this.#output.flush();
  }

  #isSameKey({ bytes, keyStart, keyEnd, partition }: FrameView): boolean {
    const pending = this.#pending;
    return (
      partition === pending.partition &&
      keyEnd - keyStart === pending.keyEnd &&
      pending.bytes.compare(bytes, keyStart, keyEnd, 0, pending.keyEnd) === 0
    );
  }

  #keep({ bytes, keyStart, keyEnd, end, partition }: FrameView): void {
    const pending = this.#pending;
    const size = end - keyStart;
    if (size > pending.bytes.length) Object.assign(pending, memoryOf(2 * size));
    bytes.copy(pending.bytes, 0, keyStart, end);
    pending.keyEnd = keyEnd - keyStart;
    pending.end = size;
    pending.partition = partition;
  }

  /** `value` may lie in the pending record itself, or in what is overwritten soon. */
  #replaceValue(value: Uint8Array): void {
    const pending = this.#pending;
    const end = pending.keyEnd + value.length;
    if (end > pending.bytes.length) {
      const larger = memoryOf(2 * end);
      pending.bytes.copy(larger.bytes, 0, 0, pending.keyEnd);
      larger.bytes.set(value, pending.keyEnd);
      Object.assign(pending, larger);
    } else pending.bytes.set(value, pending.keyEnd);
    pending.end = end;
  }
}
