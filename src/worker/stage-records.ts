import { join } from 'node:path';
import { FrameCursor, heapOf } from './frame-cursor.ts';
import { chunkBytesFor, mergeFrames } from './merge-runs.ts';
import type { KeyValue } from './operator.ts';
import { RunReader, RunWriter } from './run-file.ts';
import type { Run } from './run-file.ts';
import { SegmentChunks } from './segment-chunks.ts';
import type { SegmentReading, UpstreamSegment } from './segment-chunks.ts';

/** Segments that are merged at once where they do not all fit into memory. */
const segmentFanIn = 200;
const batchRecords = 1_000;
const batchBytes = 256 * 1024;
const leastChunkBytes = 16 * 1024;
const mostChunkBytes = 8 * 1024 * 1024;
/** Chunks of segments that are read one after the other, and how many segments are begun ahead. */
const sequentialChunkBytes = 1024 * 1024;
const segmentsAhead = 4;

export interface MergeReading extends SegmentReading {
  /** Bytes for buffers. */
  readonly memoryBytes: number;
  /** An empty directory for scratch files. */
  readonly scratchDir: string;
  readonly signal: AbortSignal;
  /** Segments merged at once; the default suits all but tests. */
  readonly fanIn?: number;
}

/** Records of segments one after the other, in batches. */
export async function* recordsInTurn(
  reading: MergeReading,
  segments: readonly UpstreamSegment[],
): AsyncGenerator<readonly KeyValue[]> {
  const chunkBytes = Math.max(
    leastChunkBytes,
    Math.min(sequentialChunkBytes, Math.floor(reading.memoryBytes / 16)),
  );
  const begun: SegmentChunks[] = [];
  for (let index = 0; index < segments.length; index++) {
    for (const segment of segments.slice(index + begun.length, index + segmentsAhead)) {
      const chunks = new SegmentChunks(reading, segment, chunkBytes);
      chunks.prefetch();
      begun.push(chunks);
    }
    const chunks = begun.shift();
    if (chunks !== undefined) yield* merged([new FrameCursor(index, () => chunks.next())]);
  }
}

/**
 * Records of sorted segments merged: in order of key, equal keys in order of segment. Segments beyond what memory
 * can hold at once are first merged into scratch files.
 */
export async function* recordsInOrder(
  reading: MergeReading,
  segments: readonly UpstreamSegment[],
): AsyncGenerator<readonly KeyValue[]> {
  const groups = groupSegments(segments, reading);
  const [only] = groups;
  if (only === undefined) return;
  if (groups.length === 1) {
    yield* merged(cursorsOf(reading, only));
    return;
  }
  const readers: RunReader[] = [];
  try {
    for (const [number, group] of groups.entries()) {
      const run = await mergeGroup(reading, group, join(reading.scratchDir, `segments-${String(number)}`));
      readers.push(await RunReader.open(run));
    }
    const chunkBytes = chunkBytesFor(reading.memoryBytes, readers.length);
    yield* merged(readers.map((reader, order) => new FrameCursor(order, reader.chunks(chunkBytes))));
  } finally {
    await Promise.all(readers.map((reader) => reader.close()));
  }
}

/** Cuts into groups of neighbours that can be merged at once: few enough, or small enough to be in memory whole. */
function groupSegments(
  segments: readonly UpstreamSegment[],
  { memoryBytes, fanIn = segmentFanIn }: MergeReading,
): readonly (readonly UpstreamSegment[])[] {
  const groups: UpstreamSegment[][] = [];
  let group: UpstreamSegment[] = [];
  let sizeBytes = 0;
  for (const segment of segments) {
    if (group.length >= fanIn && sizeBytes + segment.length > memoryBytes / 2) {
      groups.push(group);
      group = [];
      sizeBytes = 0;
    }
    group.push(segment);
    sizeBytes += segment.length;
  }
  if (group.length > 0) groups.push(group);
  return groups;
}

function cursorsOf(reading: MergeReading, segments: readonly UpstreamSegment[]): readonly FrameCursor[] {
  const total = segments.reduce((sum, segment) => sum + segment.length, 0);
  // One chunk is in use, one is read ahead, and a batch that was handed out may hold a third.
  const share = Math.floor(reading.memoryBytes / (4 * segments.length));
  const chunkBytes =
    total <= reading.memoryBytes / 2
      ? mostChunkBytes
      : Math.max(leastChunkBytes, Math.min(mostChunkBytes, share));
  return segments.map((segment, order) => {
    const chunks = new SegmentChunks(reading, segment, chunkBytes);
    return new FrameCursor(order, () => chunks.next());
  });
}

async function mergeGroup(
  reading: MergeReading,
  group: readonly UpstreamSegment[],
  path: string,
): Promise<Run> {
  const writer = await RunWriter.create(path, 1);
  try {
    await mergeFrames(cursorsOf(reading, group), writer, { combine: undefined, signal: reading.signal });
    return await writer.finish();
  } catch (error) {
    await writer.discard();
    throw error;
  }
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
