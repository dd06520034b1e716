import { ConflictError, NotFoundError } from '../contracts/errors.ts';
import type { SourceSegment } from '../contracts/plan.ts';
import type { ByteRange, ObjectStore } from '../ports/object-store.ts';
import { BadInputError } from './operator.ts';
import type { InputReach, SegmentMark } from './input-cut.ts';
import type { ReadAhead } from './read-ahead.ts';

export interface SourceReading {
  readonly objects: ObjectStore;
  readonly signal: AbortSignal;
  /** Told of each byte of the segment that was read (as stored: compressed, if it is). */
  onBytes(count: number): void;
  /** Told how many bytes of the segment it will take in all, where a reader knows better than the plan; absent: nobody asks. */
  readonly onExpected?: ((segment: SourceSegment, bytes: number) => void) | undefined;
  /** What is fetched before it is read. */
  readonly ahead?: ReadAhead;
  /** By whom the input may be ended early, and of a segment that is read, its own; absent: nobody. */
  readonly reach?: InputReach | undefined;
  readonly mark?: SegmentMark | undefined;
  /** Longest line or record; default `limits.recordBytes`. */
  readonly lineBytes?: number;
}

/** A range of the segment's object, if it is still the object that was planned. Throws `BadInputError` where it is not. */
export async function* rangeOf(
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

/**
 * The segment's file from `begin` to its end: at first up to `until` in one request, then on in growing ones, for as long as
 * somebody asks. Bytes of the segment itself are told as read.
 */
export async function* rangesFrom(
  reading: SourceReading,
  segment: SourceSegment,
  { begin, until, tailBytes }: { readonly begin: number; readonly until: number; readonly tailBytes: number },
): AsyncGenerator<Uint8Array> {
  const { start, end, sizeBytes } = segment;
  let at = begin;
  let next = Math.min(sizeBytes, until + tailBytes);
  for (let tail = 4 * tailBytes; at < next; tail *= 4) {
    for await (const chunk of rangeOf(reading, segment, { start: at, end: next })) {
      const counted = Math.min(at + chunk.length, end) - Math.max(at, start);
      if (counted > 0) reading.onBytes(counted);
      at += chunk.length;
      yield chunk;
    }
    next = Math.min(sizeBytes, at + tail);
  }
}
