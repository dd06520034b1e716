import type { Combine } from './operator.ts';
import { frameOf } from './framing.ts';

/** A record within a buffer: its frame is `bytes[start, end)`, its key `bytes[keyStart, keyEnd)`. */
export interface FrameView {
  readonly bytes: Buffer;
  readonly start: number;
  readonly keyStart: number;
  readonly keyEnd: number;
  readonly end: number;
  readonly partition: number;
}

/** Takes frames in order of partition. Await what a call returns before anything else; until then `bytes` must stay. */
export interface FrameSink {
  /** Copies the frame `bytes[start, end)`. */
  put(partition: number, bytes: Buffer, start: number, end: number): Promise<void> | undefined;
}

/** Combines the values of equal keys that come one after the other, and passes the results on. */
export class CombiningSink {
  readonly #sink: FrameSink;
  readonly #combine: Combine | undefined;
  /** The pending record: its frame in `#frame[0, #frameBytes)`, or key and combined value. */
  #frame: Buffer = Buffer.allocUnsafe(256);
  #frameBytes = 0;
  #partition = -1;
  #keyStart = 0;
  #keyEnd = 0;
  #combined: Buffer | undefined;

  /** Without `combine` everything is passed on as it is. */
  constructor(sink: FrameSink, combine: Combine | undefined) {
    this.#sink = sink;
    this.#combine = combine;
  }

  put(record: FrameView): Promise<void> | undefined {
    const combine = this.#combine;
    if (combine === undefined) {
      return this.#sink.put(record.partition, record.bytes, record.start, record.end);
    }
    if (this.#isSameKey(record)) {
      const left = this.#combined ?? this.#frame.subarray(this.#keyEnd, this.#frameBytes);
      const value = combine(left, record.bytes.subarray(record.keyEnd, record.end));
      // A copy, for the combiner may answer one of its arguments, which are overwritten soon.
      this.#combined = Buffer.from(value);
      return undefined;
    }
    const flushed = this.flush();
    if (flushed === undefined) {
      this.#keep(record);
      return undefined;
    }
    // The sink may still read the old frame: it is overwritten only after that.
    return flushed.then(() => {
      this.#keep(record);
    });
  }

  /** Passes the last record on; call at the end. */
  flush(): Promise<void> | undefined {
    if (this.#partition < 0) return undefined;
    const partition = this.#partition;
    this.#partition = -1;
    if (this.#combined === undefined) {
      return this.#sink.put(partition, this.#frame, 0, this.#frameBytes);
    }
    const frame = frameOf(this.#frame.subarray(this.#keyStart, this.#keyEnd), this.#combined);
    this.#combined = undefined;
    return this.#sink.put(partition, frame, 0, frame.length);
  }

  #isSameKey(record: FrameView): boolean {
    return (
      record.partition === this.#partition &&
      record.keyEnd - record.keyStart === this.#keyEnd - this.#keyStart &&
      this.#frame.compare(record.bytes, record.keyStart, record.keyEnd, this.#keyStart, this.#keyEnd) === 0
    );
  }

  #keep(record: FrameView): void {
    const size = record.end - record.start;
    if (size > this.#frame.length) this.#frame = Buffer.allocUnsafeSlow(2 * size);
    record.bytes.copy(this.#frame, 0, record.start, record.end);
    this.#frameBytes = size;
    this.#keyStart = record.keyStart - record.start;
    this.#keyEnd = record.keyEnd - record.start;
    this.#partition = record.partition;
  }
}
