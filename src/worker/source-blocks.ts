import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { ConflictError, NotFoundError } from '../contracts/errors.ts';
import { limits } from '../contracts/limits.ts';
import type { SourceSegment } from '../contracts/plan.ts';
import type { ByteRange, ObjectStore } from '../ports/object-store.ts';
import { BadInputError } from './operator.ts';
import type { LineBlock } from './operator.ts';
import type { ReadAhead } from './read-ahead.ts';

const newline = 10;
/** Blocks are cut at the first line end after this size. */
const blockBytes = 256 * 1024;
/** Longer pieces of a stream are cut, so that a block never grows far beyond its size. */
const pieceBytes = 512 * 1024;
/** First read past the end of a split, for the rest of its last line; each further one is four times as long. */
const tailBytes = 16 * 1024;

export interface SourceReading {
  readonly objects: ObjectStore;
  readonly signal: AbortSignal;
  /** Told of each byte of the segment that was read (as stored: compressed, if it is). */
  onBytes(count: number): void;
  /** What is fetched before it is read. */
  readonly ahead?: ReadAhead;
  /** Longest line or record; default `limits.recordBytes`. */
  readonly lineBytes?: number;
}

/**
 * The lines that begin in [start, end) of a plain file, or all lines of a gzip file, in blocks. Only the last line
 * of a file may lack its "\n". Offsets are of the text, also where the file is compressed. Throws `BadInputError`
 * (broken gzip, line too long, object changed or gone), `StoreUnavailableError`.
 */
export function sourceBlocks(reading: SourceReading, segment: SourceSegment): AsyncGenerator<LineBlock> {
  return segment.gzip ? gzipBlocks(reading, segment) : plainBlocks(reading, segment);
}

/** All bytes of the segment's file from its begin, decompressed. */
export function wholeText(reading: SourceReading, segment: SourceSegment): AsyncIterable<Uint8Array> {
  const whole = { start: 0, end: segment.sizeBytes };
  return segment.gzip ? inflated(reading, segment) : rangeOf(reading, segment, whole);
}

async function* plainBlocks(reading: SourceReading, segment: SourceSegment): AsyncGenerator<LineBlock> {
  const { start, end } = segment;
  if (start >= end) return;
  const cutter = new LineCutter(segment.key, reading.lineBytes ?? limits.recordBytes, start);
  // One byte before the split tells whether a line begins exactly at its start.
  let offset = Math.max(0, start - 1);
  let isSkipping = start > 0;
  for await (const piece of plainPieces(reading, segment, offset)) {
    let from = 0;
    if (isSkipping) {
      const skipped = piece.indexOf(newline);
      from = skipped + 1;
      if (skipped < 0) from = piece.length;
      else isSkipping = false;
      if (offset + from >= end) return;
      cutter.begin(offset + from);
    }
    const lastEnd = piece.indexOf(newline, Math.max(from, end - 1 - offset));
    const isLast = lastEnd >= 0;
    const block = cutter.push(piece.subarray(from, isLast ? lastEnd + 1 : piece.length));
    if (block !== undefined) yield block;
    if (isLast) break;
    offset += piece.length;
  }
  const rest = cutter.rest();
  if (rest !== undefined) yield rest;
}

/** The file from `begin`: the split in one request, then its tail in growing ones, for as long as it is asked. */
async function* plainPieces(
  reading: SourceReading,
  segment: SourceSegment,
  begin: number,
): AsyncGenerator<Buffer> {
  const { end, sizeBytes } = segment;
  let at = begin;
  let next = Math.min(sizeBytes, end + tailBytes);
  for (let tail = 4 * tailBytes; at < next; tail *= 4) {
    for await (const chunk of rangeOf(reading, segment, { start: at, end: next })) {
      const counted = Math.min(at + chunk.length, end) - Math.max(at, segment.start);
      if (counted > 0) reading.onBytes(counted);
      at += chunk.length;
      yield* pieces(chunk);
    }
    next = Math.min(sizeBytes, at + tail);
  }
}

async function* gzipBlocks(reading: SourceReading, segment: SourceSegment): AsyncGenerator<LineBlock> {
  const cutter = new LineCutter(segment.key, reading.lineBytes ?? limits.recordBytes, 0);
  for await (const chunk of inflated(reading, segment)) {
    for (const piece of pieces(chunk)) {
      const block = cutter.push(piece);
      if (block !== undefined) yield block;
    }
  }
  const rest = cutter.rest();
  if (rest !== undefined) yield rest;
}

async function* inflated(reading: SourceReading, segment: SourceSegment): AsyncGenerator<Uint8Array> {
  if (segment.sizeBytes === 0) return;
  const gunzip = createGunzip({ chunkSize: 128 * 1024 });
  const compressed = counted(rangeOf(reading, segment, { start: 0, end: segment.sizeBytes }), reading);
  const feeding = pipeline(Readable.from(compressed, { objectMode: false }), gunzip).catch(() => undefined);
  try {
    for await (const chunk of gunzip) {
      if (chunk instanceof Uint8Array) yield chunk;
    }
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && String(cause.code).startsWith('Z_')) {
      throw new BadInputError(`${segment.key}: not whole gzip data: ${cause.message}`, { cause });
    }
    throw cause;
  } finally {
    gunzip.destroy();
    await feeding;
  }
}

async function* counted(
  chunks: AsyncIterable<Uint8Array>,
  reading: SourceReading,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    reading.onBytes(chunk.length);
    yield chunk;
  }
}

/** A range of the segment's object, if it is still the object that was planned. */
async function* rangeOf(
  { objects, signal, ahead }: SourceReading,
  segment: SourceSegment,
  range: ByteRange,
): AsyncGenerator<Uint8Array> {
  if (range.start >= range.end) return;
  const { bucket, key, etag, sizeBytes } = segment;
  let missing = range.end - range.start;
  const isWhole = range.start === 0 && range.end === sizeBytes;
  const fetched = isWhole ? ahead?.take(segment) : undefined;
  try {
    const chunks =
      fetched === undefined ? objects.read({ bucket, key }, { range, etag, signal }) : await fetched;
    for await (const chunk of chunks) {
      missing -= chunk.length;
      yield chunk;
    }
  } catch (cause) {
    if (cause instanceof ConflictError) {
      throw new BadInputError(`${key}: changed since the job was planned`, { cause });
    }
    if (cause instanceof NotFoundError)
      throw new BadInputError(`${key}: gone since the job was planned`, { cause });
    throw cause;
  }
  if (missing > 0) throw new BadInputError(`${key}: shorter than when the job was planned`);
}

function* pieces(chunk: Uint8Array): Generator<Buffer> {
  for (let at = 0; at < chunk.length; at += pieceBytes) {
    const size = Math.min(pieceBytes, chunk.length - at);
    yield Buffer.from(chunk.buffer, chunk.byteOffset + at, size);
  }
}

/** Gathers pieces of a file into blocks of whole lines. */
class LineCutter {
  readonly #file: string;
  readonly #lineBytes: number;
  /** Offset of the first gathered byte. */
  #offset: number;
  #pieces: Buffer[] = [];
  #size = 0;
  /** Bytes since the last "\n". */
  #openBytes = 0;

  constructor(file: string, lineBytes: number, offset: number) {
    this.#file = file;
    this.#lineBytes = lineBytes;
    this.#offset = offset;
  }

  /** Sets where the first line begins; before the first piece. */
  begin(offset: number): void {
    this.#offset = offset;
  }

  /** A block, if there is enough for one. */
  push(piece: Buffer): LineBlock | undefined {
    if (piece.length === 0) return undefined;
    const first = piece.indexOf(newline);
    if (this.#openBytes + (first < 0 ? piece.length : first) > this.#lineBytes) {
      const offset = this.#offset + this.#size - this.#openBytes;
      throw new BadInputError(
        `${this.#file}: the line at byte ${String(offset)} is longer than ${String(this.#lineBytes)} bytes`,
      );
    }
    this.#pieces.push(piece);
    this.#size += piece.length;
    if (first < 0) {
      this.#openBytes += piece.length;
      return undefined;
    }
    this.#openBytes = piece.length - 1 - piece.lastIndexOf(newline);
    return this.#size < blockBytes ? undefined : this.#cut(this.#size - this.#openBytes);
  }

  /** What is left at the end. */
  rest(): LineBlock | undefined {
    return this.#size === 0 ? undefined : this.#cut(this.#size);
  }

  #cut(size: number): LineBlock {
    const [only] = this.#pieces;
    const all =
      only !== undefined && this.#pieces.length === 1 ? only : Buffer.concat(this.#pieces, this.#size);
    const block = { bytes: all.subarray(0, size), file: this.#file, offset: this.#offset };
    const open = all.subarray(size);
    // A copy where it is small, so that the open line does not hold the whole block.
    this.#pieces = open.length === 0 ? [] : [open.length < 65_536 ? Buffer.from(open) : open];
    this.#size = open.length;
    this.#offset += size;
    return block;
  }
}
