import { invariant } from '../contracts/errors.ts';
import { limits } from '../contracts/limits.ts';
import { codecOf, type Codec, type SourceSegment } from '../contracts/plan.ts';
import { isPiece, memberBlocks } from './gzip-cuts.ts';
import type { SegmentMark } from './input-cut.ts';
import { LineCutter, pieces } from './line-cutter.ts';
import { rangeOf, rangesFrom, type SourceReading } from './object-ranges.ts';
import type { LineBlock } from './operator.ts';
import { unpacked } from './unpacked.ts';

const newline = 10;
/** First read past the end of a split, for the rest of its last line; each further one is four times as long. */
const tailBytes = 16 * 1024;

/**
 * The lines that begin in [start, end) of a plain file, or all lines of a compressed one, in blocks; of a piece of a gzip
 * file those that `memberBlocks` gives. Only the last line of a file may lack its "\n". Offsets are of the text, also
 * where the file is compressed, but for pieces of gzip behind the first. Throws `BadInputError`
 * (broken compression, line too long, object changed or gone), `StoreUnavailableError`. Ends early where the input is cut.
 */
export function sourceBlocks(reading: SourceReading, segment: SourceSegment): AsyncGenerator<LineBlock> {
  const blocks = allBlocks(reading, segment);
  return reading.mark === undefined ? blocks : untilCut(blocks, reading.mark);
}

/** Whoever asks for the next block is done with the one before it: the place between them is one to end at. */
async function* untilCut(blocks: AsyncIterable<LineBlock>, mark: SegmentMark): AsyncGenerator<LineBlock> {
  for await (const block of blocks) {
    const end = block.offset + block.bytes.length;
    mark.hand(end);
    yield block;
    if (mark.isCutAt(end)) return;
  }
}

function allBlocks(reading: SourceReading, segment: SourceSegment): AsyncGenerator<LineBlock> {
  const codec = codecOf(segment);
  if (codec === undefined) return plainBlocks(reading, segment);
  if (!isPiece(segment)) return packedBlocks(reading, segment, codec);
  invariant(codec === 'gzip', 'of what is packed only gzip is cut', { segment });
  return memberBlocks(reading, segment);
}

/** All bytes of the segment's file from its begin, decompressed. */
export function wholeText(reading: SourceReading, segment: SourceSegment): AsyncIterable<Uint8Array> {
  const whole = { start: 0, end: segment.sizeBytes };
  const codec = codecOf(segment);
  return codec === undefined ? rangeOf(reading, segment, whole) : inflated(reading, segment, codec);
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
    yield* cutter.push(piece.subarray(from, isLast ? lastEnd + 1 : piece.length));
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
  const place = { begin, until: segment.end, tailBytes };
  for await (const chunk of rangesFrom(reading, segment, place)) yield* pieces(chunk);
}

async function* packedBlocks(
  reading: SourceReading,
  segment: SourceSegment,
  codec: Codec,
): AsyncGenerator<LineBlock> {
  const cutter = new LineCutter(segment.key, reading.lineBytes ?? limits.recordBytes, 0);
  for await (const chunk of inflated(reading, segment, codec)) {
    for (const piece of pieces(chunk)) {
      yield* cutter.push(piece);
    }
  }
  const rest = cutter.rest();
  if (rest !== undefined) yield rest;
}

async function* inflated(
  reading: SourceReading,
  segment: SourceSegment,
  codec: Codec,
): AsyncGenerator<Uint8Array> {
  if (segment.sizeBytes === 0) return;
  const compressed = counted(rangeOf(reading, segment, { start: 0, end: segment.sizeBytes }), reading);
  yield* unpacked(compressed, codec, segment.key);
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
