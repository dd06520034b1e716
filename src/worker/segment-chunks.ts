import { crc32 } from 'node:zlib';
import { NotFoundError, StoreUnavailableError } from '../contracts/errors.ts';
import type { ObjectRef } from '../contracts/keys.ts';
import type { ObjectStore } from '../ports/object-store.ts';

/** A piece of the output of an upstream attempt. */
export interface UpstreamSegment {
  readonly ref: ObjectRef;
  readonly offset: number;
  readonly length: number;
  readonly crc: number;
  /** Who wrote it, for messages: `map/3/0`. */
  readonly producer: string;
}

export interface SegmentReading {
  readonly objects: ObjectStore;
  readonly gate: ReadGate;
  readonly signal: AbortSignal;
  onBytes(count: number): void;
  /** Makes a request once it has its turn, and measures it. */
  fetching(request: () => Promise<Uint8Array>): Promise<Uint8Array>;
}

/** Lets a limited number of reads run at once; the others wait their turn in order. */
export class ReadGate {
  readonly #limit: number;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  async run<T>(read: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#limit) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running++;
    try {
      return await read();
    } finally {
      // The place goes straight to the next one, so that nobody can slip in between.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}

/**
 * Reads a segment in chunks and checks its CRC-32: what arrives damaged is asked for once more, and then the
 * attempt fails with `StoreUnavailableError`. A segment of several chunks is checked at its end, hence its records
 * are good only once it has ended without a throw.
 */
export class SegmentChunks {
  readonly #reading: SegmentReading;
  readonly #segment: UpstreamSegment;
  readonly #chunkBytes: number;
  #position = 0;
  #crc = 0;
  #ahead: Promise<Buffer> | undefined;

  constructor(reading: SegmentReading, segment: UpstreamSegment, chunkBytes: number) {
    this.#reading = reading;
    this.#segment = segment;
    this.#chunkBytes = chunkBytes;
  }

  /** Begins to read the next chunk, if there is one and it was not begun before. */
  prefetch(): void {
    if (this.#ahead !== undefined || this.#position >= this.#segment.length) return;
    const size = Math.min(this.#chunkBytes, this.#segment.length - this.#position);
    const ahead = this.#read(this.#position, size);
    ahead.catch(() => undefined); // Whoever asks for the chunk gets the error; nobody may ask any more.
    this.#ahead = ahead;
    this.#position += size;
  }

  /** The next chunk, in memory of its own; undefined at the end. */
  async next(): Promise<Buffer | undefined> {
    this.prefetch();
    const ahead = this.#ahead;
    if (ahead === undefined) return undefined;
    const chunk = await ahead;
    this.#ahead = undefined;
    this.#reading.onBytes(chunk.length);
    if (chunk.length < this.#segment.length) {
      this.#crc = crc32(chunk, this.#crc);
      if (this.#position >= this.#segment.length && this.#crc !== this.#segment.crc) throw this.#damaged();
      this.prefetch();
    }
    return chunk;
  }

  async #read(from: number, size: number): Promise<Buffer> {
    const chunk = await this.#readOnce(from, size);
    if (size < this.#segment.length || crc32(chunk) === this.#segment.crc) return chunk;
    const again = await this.#readOnce(from, size);
    if (crc32(again) !== this.#segment.crc) throw this.#damaged();
    return again;
  }

  async #readOnce(from: number, size: number): Promise<Buffer> {
    const { ref, offset, producer } = this.#segment;
    const start = offset + from;
    return fromProducer(producer, async () => {
      const { gate, objects, signal } = this.#reading;
      const request = (): Promise<Uint8Array> => objects.readAll(ref, { start, end: start + size }, signal);
      const bytes = await gate.run(() => this.#reading.fetching(request));
      if (bytes.length !== size)
        throw new StoreUnavailableError(`output of ${producer} is shorter than what was written`);
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    });
  }

  #damaged(): StoreUnavailableError {
    return damaged(this.#segment);
  }
}

/** Says of missing data whose output it was. */
async function fromProducer<T>(producer: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (cause) {
    if (cause instanceof NotFoundError)
      throw new StoreUnavailableError(`output of ${producer} is gone`, {}, { cause });
    throw cause;
  }
}

/** The error of a segment whose bytes do not have its CRC-32. */
export const damaged = ({ producer }: UpstreamSegment): StoreUnavailableError =>
  new StoreUnavailableError(`output of ${producer} is not what was written (CRC-32)`);

/** Streams a segment that memory cannot hold, in one request; answers the CRC-32 of what came. */
export function streamSegment(
  reading: SegmentReading,
  segment: UpstreamSegment,
  take: (chunk: Buffer) => Promise<void> | undefined,
): Promise<number> {
  const { objects, gate, signal } = reading;
  const { ref, offset: start, length, producer } = segment;
  const read = async (): Promise<number> => {
    let crc = 0;
    let size = 0;
    for await (const bytes of objects.read(ref, { range: { start, end: start + length }, signal })) {
      const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
      crc = crc32(chunk, crc);
      size += chunk.length;
      const taken = take(chunk);
      if (taken !== undefined) await taken;
    }
    if (size === length) return crc;
    throw new StoreUnavailableError(`output of ${producer} is shorter than what was written`);
  };
  return fromProducer(producer, () => gate.run(read));
}
