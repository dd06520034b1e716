import { mostWholeBytes } from '../ports/object-store.ts';
import { FrameCursor, heapOf } from './frame-cursor.ts';
import { copyShort, isShort, viewOf } from './copy-short.ts';
import { chunkBytesFor } from './merge-runs.ts';
import type { KeyValue, RecordLines } from './operator.ts';
import { RunReader } from './run-file.ts';
import type { Run } from './run-file.ts';
import { scratchSpaceOf, scratchTooSmall } from './scratch-space.ts';
import type { ScratchSpace } from './scratch-space.ts';
import { SegmentChunks } from './segment-chunks.ts';
import type { SegmentReading } from './segment-chunks.ts';
import type { UpstreamSegment } from './upstream-segment.ts';
import { heldBytes, spilledRuns } from './spill-segments.ts';
import type { SpillReading } from './spill-segments.ts';

const newline = 0x0a;
const tab = 0x09;
const batchRecords = 1_000;
const batchBytes = 256 * 1024;
const leastChunkBytes = 64 * 1024;
/** Chunks of segments that are read one after the other, and how many segments are begun ahead. */
const sequentialChunkBytes = 8 * 1024 * 1024;
const segmentsAhead = 16;
/** Of the scratch space that is free, for what else is written meanwhile. */
const usableScratch = 0.9;

export interface MergeReading extends SpillReading {
  /** What scratch space there is; that of the disk where nothing is said. */
  readonly scratchSpace?: (dir: string) => Promise<ScratchSpace>;
}

/** Records of segments one after the other, in batches. */
export async function* recordsInTurn(
  reading: MergeReading,
  segments: readonly UpstreamSegment[],
): AsyncGenerator<readonly KeyValue[]> {
  const chunkBytes = Math.max(1, Math.min(sequentialChunkBytes, Math.floor(reading.memoryBytes / 16)));
  const firstBytes = ({ length }: UpstreamSegment): number => Math.min(chunkBytes, length);
  const begun: SegmentChunks[] = [];
  let aheadBytes = 0;
  for (let index = 0; index < segments.length; index++) {
    for (const segment of segments.slice(index + begun.length, index + segmentsAhead)) {
      if (begun.length > 0 && aheadBytes + firstBytes(segment) > reading.memoryBytes / 4) break;
      const chunks = new SegmentChunks(reading, segment, chunkBytes);
      chunks.prefetch();
      begun.push(chunks);
      aheadBytes += firstBytes(segment);
    }
    const segment = segments[index];
    if (segment !== undefined) aheadBytes -= firstBytes(segment);
    const chunks = begun.shift();
    if (chunks !== undefined) yield* merged([new FrameCursor(index, () => chunks.next())]);
  }
}

/** What a head is read by: few bytes at its begin are wanted. */
const headChunkBytes = 64 * 1024;

/**
 * Records of heads, one after the other, of which whoever reads them wants the first ones alone. They count neither as
 * read nor as work, and one that is gone is as lost as any other.
 */
export async function* headRecords(
  reading: MergeReading,
  heads: readonly UpstreamSegment[],
): AsyncGenerator<readonly KeyValue[]> {
  for (const [order, head] of heads.entries()) {
    const chunks = new SegmentChunks({ ...reading, onBytes: () => undefined }, head, headChunkBytes);
    yield* merged([new FrameCursor(order, () => chunks.next())]);
  }
}

/**
 * Records of sorted segments merged: in order of key, equal keys in order of segment. Each segment is read by one
 * request: into memory where all of them fit, else, group by group, into scratch files that are merged. Where few
 * segments are too large for scratch files as well, all are read side by side in many requests. Throws
 * `BadInputError` where neither is possible.
 */
export function recordsInOrder(
  reading: MergeReading,
  segments: readonly UpstreamSegment[],
): AsyncGenerator<readonly KeyValue[]> {
  return inOrder(reading, segments, merged);
}

/** `recordsInOrder` as lines. */
export function linesInOrder(
  reading: MergeReading,
  segments: readonly UpstreamSegment[],
): AsyncGenerator<RecordLines> {
  return inOrder(reading, segments, mergedLines);
}

async function* inOrder<T>(
  reading: MergeReading,
  segments: readonly UpstreamSegment[],
  merge: (cursors: readonly FrameCursor[]) => AsyncIterable<T>,
): AsyncGenerator<T> {
  const way = await wayOf(reading, segments);
  if (way !== 'spill') {
    yield* merge(cursorsOf(reading, segments, way));
    return;
  }
  const runs = await spilledRuns(reading, segments);
  const readers: RunReader[] = [];
  try {
    for (const run of runs) readers.push(await RunReader.open(run));
    const chunkBytes = chunkBytesFor(reading.memoryBytes, readers.length);
    yield* merge(readers.map((reader, order) => new FrameCursor(order, reader.chunks(chunkBytes))));
  } finally {
    await Promise.all(readers.map((reader) => reader.close()));
  }
}

/** The records of a sorted run, which is removed at the end. */
export async function* recordsOfRun(run: Run, memoryBytes: number): AsyncGenerator<readonly KeyValue[]> {
  const reader = await RunReader.open(run);
  try {
    yield* merged([new FrameCursor(0, reader.chunks(chunkBytesFor(memoryBytes, 1)))]);
  } finally {
    await reader.close();
  }
}

/** How segments are merged, by what memory and scratch space there are. */
async function wayOf(
  reading: MergeReading,
  segments: readonly UpstreamSegment[],
): Promise<'whole' | 'spill' | number> {
  const { memoryBytes, scratchDir } = reading;
  if (heldBytes(segments) <= memoryBytes / 2) return 'whole';
  const space = await (reading.scratchSpace ?? scratchSpaceOf)(scratchDir);
  const neededBytes = segments.reduce((sum, { length }) => sum + length, 0);
  if (neededBytes <= space.freeBytes * usableScratch) return 'spill';
  // One chunk is in use, one is read ahead, and a batch that was handed out may hold a third.
  const share = Math.floor(memoryBytes / (4 * segments.length));
  if (share >= leastChunkBytes) return Math.min(mostWholeBytes, share);
  throw scratchTooSmall({ neededBytes, segments: segments.length, ...space });
}

function cursorsOf(
  reading: SegmentReading,
  segments: readonly UpstreamSegment[],
  way: 'whole' | number,
): readonly FrameCursor[] {
  return segments.map((segment, order) => {
    const chunks = new SegmentChunks(reading, segment, way === 'whole' ? mostWholeBytes : way);
    return new FrameCursor(order, () => chunks.next());
  });
}

/** The merged records of cursors that stand before their first one. */
async function* merged(cursors: readonly FrameCursor[]): AsyncGenerator<readonly KeyValue[]> {
  const heap = await heapOf(cursors);
  let batch: KeyValue[] = [];
  let sizeBytes = 0;
  for (let top = heap.top(); top !== undefined; top = heap.top()) {
    batch.push({
      key: top.bytes.subarray(top.keyStart, top.keyEnd),
      value: top.bytes.subarray(top.keyEnd, top.end),
    });
    sizeBytes += top.end - top.start;
    if (batch.length >= batchRecords || sizeBytes >= batchBytes) {
      yield batch;
      batch = [];
      sizeBytes = 0;
    }
    const more = top.advance();
    heap.settle(typeof more === 'boolean' ? more : await more);
  }
  if (batch.length > 0) yield batch;
}

/**
 * The merged records of cursors as lines: blocks of about `batchBytes`, and of one line where that is longer. A block is
 * good until the one after the next is asked for: of two pieces of memory one is filled while the other is used.
 */
async function* mergedLines(cursors: readonly FrameCursor[]): AsyncGenerator<RecordLines> {
  const heap = await heapOf(cursors);
  let spare: Buffer = Buffer.allocUnsafeSlow(batchBytes);
  let block: Buffer = Buffer.allocUnsafeSlow(batchBytes);
  let blockView = viewOf(block);
  let used = 0;
  let records = 0;
  for (let top = heap.top(); top !== undefined; top = heap.top()) {
    const { bytes, view, keyStart, keyEnd, end } = top;
    const keyBytes = keyEnd - keyStart;
    const size = end - keyStart + (end > keyEnd ? 2 : 1);
    if (used + size > block.length) {
      if (records > 0) yield { bytes: block.subarray(0, used), records };
      [block, spare] = [size > spare.length ? Buffer.allocUnsafeSlow(size) : spare, block];
      blockView = viewOf(block);
      used = 0;
      records = 0;
    }
    if (isShort(keyBytes)) copyShort(blockView, used, view, keyStart, keyBytes);
    else bytes.copy(block, used, keyStart, keyEnd);
    if (end > keyEnd) {
      block[used + keyBytes] = tab;
      bytes.copy(block, used + keyBytes + 1, keyEnd, end);
    }
    used += size;
    block[used - 1] = newline;
    records++;
    const more = top.advance();
    heap.settle(typeof more === 'boolean' ? more : await more);
  }
  if (records > 0) yield { bytes: block.subarray(0, used), records };
}
