import { join } from 'node:path';
import { mostWholeBytes } from '../ports/object-store.ts';
import { noting } from './lost-inputs.ts';
import { FrameCursor } from './frame-cursor.ts';
import { fewRuns, mergeFrames } from './merge-runs.ts';
import { RunWriter } from './run-file.ts';
import type { Run } from './run-file.ts';
import { damaged, SegmentChunks, streamSegment } from './segment-chunks.ts';
import type { SegmentReading } from './segment-chunks.ts';
import type { UpstreamSegment } from './upstream-segment.ts';

/** What a segment in memory takes beside its bytes. */
const segmentOverheadBytes = 512;
/** Scratch files that are merged at once: each is open meanwhile, and a process may have a thousand. */
const runsAtOnce = 256;

export interface SpillReading extends SegmentReading {
  /** Bytes for buffers. */
  readonly memoryBytes: number;
  /** An empty directory for scratch files. */
  readonly scratchDir: string;
}

const heldBytesOf = ({ length }: UpstreamSegment): number => length + segmentOverheadBytes;

/** Memory that segments take when they are held whole. */
export const heldBytes = (segments: readonly UpstreamSegment[]): number =>
  segments.reduce((sum, segment) => sum + heldBytesOf(segment), 0);

/** Whether a segment is streamed, and by itself: memory does not hold it, or one answer does not. */
const isTooLarge = (segment: UpstreamSegment, mostBytes: number): boolean =>
  heldBytesOf(segment) > mostBytes || segment.length > mostWholeBytes;

/**
 * Sorted runs in scratch files with the records of all segments, in their order of ties: neighbours that memory holds
 * together are merged there, and a segment that is too large for that is streamed. One request for each segment.
 */
export async function spilledRuns(
  reading: SpillReading,
  segments: readonly UpstreamSegment[],
): Promise<readonly Run[]> {
  const runs: Run[] = [];
  const mostBytes = reading.memoryBytes / 2;
  for (const group of groupsOf(segments, mostBytes)) {
    reading.signal.throwIfAborted();
    const path = join(reading.scratchDir, `segments-${String(runs.length)}`);
    const [first] = group;
    const isStreamed = first !== undefined && isTooLarge(first, mostBytes);
    runs.push(await (isStreamed ? streamedRun(reading, first, path) : mergedRun(reading, group, path)));
  }
  const { memoryBytes, scratchDir, signal } = reading;
  return fewRuns(runs, {
    partitions: 1,
    memoryBytes,
    combine: undefined,
    scratchDir,
    signal,
    fanIn: runsAtOnce,
  });
}

/** Cuts into groups of neighbours that are held together; a segment that is too large is a group of its own. */
function groupsOf(
  segments: readonly UpstreamSegment[],
  mostBytes: number,
): readonly (readonly UpstreamSegment[])[] {
  const groups: UpstreamSegment[][] = [];
  let group: UpstreamSegment[] = [];
  let sizeBytes = 0;
  const close = (): void => {
    if (group.length > 0) groups.push(group);
    group = [];
    sizeBytes = 0;
  };
  for (const segment of segments) {
    const isAlone = isTooLarge(segment, mostBytes);
    if (isAlone || sizeBytes + heldBytesOf(segment) > mostBytes) close();
    group.push(segment);
    sizeBytes += heldBytesOf(segment);
    if (isAlone) close();
  }
  close();
  return groups;
}

async function mergedRun(
  reading: SpillReading,
  group: readonly UpstreamSegment[],
  path: string,
): Promise<Run> {
  const cursors = group.map((segment, order) => {
    const chunks = new SegmentChunks(reading, segment, segment.length);
    return new FrameCursor(order, () => chunks.next());
  });
  const writer = await RunWriter.create(path, 1);
  try {
    await mergeFrames(cursors, writer, { combine: undefined, signal: reading.signal });
    return await writer.finish();
  } catch (error) {
    await writer.discard();
    throw error;
  }
}

/** A sorted segment is a run as it is. What arrives damaged is asked for once more. */
async function streamedRun(reading: SpillReading, segment: UpstreamSegment, path: string): Promise<Run> {
  for (let tries = 1; ; tries++) {
    const writer = await RunWriter.create(path, 1);
    try {
      const crc = await streamSegment(reading, segment, (chunk) => {
        if (tries === 1) reading.onBytes(chunk.length);
        return writer.put(0, chunk, 0, chunk.length);
      });
      if (crc === segment.crc) return await writer.finish();
      if (tries > 1) await noting(reading.check, () => Promise.reject(damaged(segment)));
    } catch (error) {
      await writer.discard();
      throw error;
    }
    await writer.discard();
  }
}
