import { crc32 } from 'node:zlib';
import type { Gate } from '../lib/gate.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { howLost, type InputCheck, LostInputError, noting, type UncheckedPiece } from './lost-inputs.ts';
import type { UpstreamSegment } from './upstream-segment.ts';

export interface SegmentReading {
  readonly objects: ObjectStore;
  readonly gate: Gate;
  readonly signal: AbortSignal;
  onBytes(count: number): void;
  /** Makes a request once it has its turn, and measures it. */
  fetching(request: () => Promise<Uint8Array>): Promise<Uint8Array>;
  /** Is told what is gone, and what is read before it was checked; absent: nobody asks. */
  readonly check?: InputCheck;
}

/** What is read at once of a piece of which nobody wants more records. */
const restBytes = 4 * 1024 * 1024;

/**
 * Reads a segment in chunks and checks its CRC-32: what arrives damaged is asked for once more, and then the
 * attempt fails with `LostInputError`. A segment of several chunks is checked at its end, hence its records
 * are good only once it has ended without a throw.
 */
export class SegmentChunks implements UncheckedPiece {
  readonly segment: UpstreamSegment;
  readonly #reading: SegmentReading;
  #chunkBytes: number;
  #position = 0;
  #crc = 0;
  #ahead: Promise<Buffer> | undefined;
  /** The last chunk that was asked for: whoever has given up reading may not have waited for it. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(reading: SegmentReading, segment: UpstreamSegment, chunkBytes: number) {
    this.#reading = reading;
    this.segment = segment;
    this.#chunkBytes = chunkBytes;
  }

  /** Begins to read the next chunk, if there is one and it was not begun before. */
  prefetch(): void {
    if (this.#ahead !== undefined || this.#position >= this.segment.length) return;
    const size = Math.min(this.#chunkBytes, this.segment.length - this.#position);
    const ahead = this.#read(this.#position, size);
    ahead.catch(() => undefined); // Whoever asks for the chunk gets the error; nobody may ask any more.
    this.#ahead = ahead;
    this.#position += size;
  }

  /** The next chunk, in memory of its own; undefined at the end. */
  next(): Promise<Buffer | undefined> {
    const next = this.#turn.then(() => this.#next());
    // Not with what came, which would be held for as long.
    const over = (): void => undefined;
    this.#turn = next.then(over, over);
    return next;
  }

  /** Reads on to the end, for the checksum. Throws as `next` does, and once more what that threw. */
  async readRest(): Promise<void> {
    this.#chunkBytes = Math.max(this.#chunkBytes, restBytes);
    while ((await this.next()) !== undefined);
  }

  async #next(): Promise<Buffer | undefined> {
    this.prefetch();
    const ahead = this.#ahead;
    if (ahead === undefined) return undefined;
    const { check } = this.#reading;
    const chunk = await noting(check, () => ahead);
    this.#ahead = undefined;
    this.#reading.onBytes(chunk.length);
    if (chunk.length < this.segment.length) {
      check?.begin(this);
      this.#crc = crc32(chunk, this.#crc);
      if (this.#position >= this.segment.length) {
        if (this.#crc !== this.segment.crc) await noting(check, () => Promise.reject(damaged(this.segment)));
        check?.end(this);
      }
      this.prefetch();
    }
    return chunk;
  }

  async #read(from: number, size: number): Promise<Buffer> {
    const chunk = await this.#readOnce(from, size);
    if (size < this.segment.length || crc32(chunk) === this.segment.crc) return chunk;
    const again = await this.#readOnce(from, size);
    if (crc32(again) !== this.segment.crc) throw damaged(this.segment);
    return again;
  }

  async #readOnce(from: number, size: number): Promise<Buffer> {
    const { ref, offset } = this.segment;
    const start = offset + from;
    return fromProducer(this.segment, async () => {
      const { gate, objects, signal } = this.#reading;
      const request = (): Promise<Uint8Array> => objects.readAll(ref, { start, end: start + size }, signal);
      const bytes = await gate.run(() => this.#reading.fetching(request));
      if (bytes.length !== size) throw new LostInputError(this.segment, 'short');
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    });
  }
}

/** Says of missing data whose output it was. */
async function fromProducer<T>(segment: UpstreamSegment, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (cause) {
    const how = howLost(cause, segment.ref);
    throw how === undefined ? cause : new LostInputError(segment, how, cause);
  }
}

/** The error of a segment whose bytes do not have its CRC-32. */
export const damaged = (segment: UpstreamSegment): LostInputError => new LostInputError(segment, 'damaged');

/** Streams a segment that memory cannot hold, in one request; answers the CRC-32 of what came. */
export function streamSegment(
  reading: SegmentReading,
  segment: UpstreamSegment,
  take: (chunk: Buffer) => Promise<void> | undefined,
): Promise<number> {
  const { objects, gate, signal } = reading;
  const { ref, offset: start, length } = segment;
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
    throw new LostInputError(segment, 'short');
  };
  return noting(reading.check, () => fromProducer(segment, () => gate.run(read)));
}
