import { join } from 'node:path';
import { FrameCursor, heapOf } from './frame-cursor.ts';
import { CombiningSink } from './frame-sink.ts';
import type { FrameSink } from './frame-sink.ts';
import type { Combine } from './operator.ts';
import { RunReader, RunWriter } from './run-file.ts';
import type { Run } from './run-file.ts';

/** Runs that are merged at once. */
export const mergeFanIn = 64;
const mostChunkBytes = 256 * 1024;
const leastChunkBytes = 4 * 1024;

export interface MergeOptions {
  readonly partitions: number;
  /** Bytes for the buffers of all runs together. */
  readonly memoryBytes: number;
  readonly combine: Combine | undefined;
  readonly scratchDir: string;
  readonly signal: AbortSignal;
  /** Default `mergeFanIn`; at least 2. */
  readonly fanIn?: number;
}

/** Merges the records of cursors that stand before their first record into a sink; combines equal keys. */
export async function mergeFrames(
  cursors: readonly FrameCursor[],
  sink: FrameSink,
  options: { readonly combine: Combine | undefined; readonly signal: AbortSignal },
): Promise<void> {
  const heap = await heapOf(cursors);
  const output = new CombiningSink(sink, options.combine);
  for (let top = heap.top(); top !== undefined; top = heap.top()) {
    const stored = output.put(top);
    if (stored !== undefined) await stored;
    const more = top.advance();
    if (typeof more === 'boolean') heap.settle(more);
    else {
      options.signal.throwIfAborted();
      heap.settle(await more);
    }
  }
  await output.flush();
}

/** Merges runs into `sink` and removes their files. Of equal keys, those of earlier runs come first. */
export async function mergeRuns(runs: readonly Run[], sink: FrameSink, options: MergeOptions): Promise<void> {
  await mergeOnce(await fewRuns(runs, options), sink, options);
}

/** At most `fanIn` runs with the records of all of these, in the same order of ties; their files are replaced. */
export async function fewRuns(runs: readonly Run[], options: MergeOptions): Promise<readonly Run[]> {
  const fanIn = options.fanIn ?? mergeFanIn;
  let level = runs;
  // Each round leaves a `fanIn`th of the runs: 64 to the fourth is more than any disk holds.
  for (let round = 0; level.length > fanIn; round++) {
    const next: Run[] = [];
    for (let begin = 0; begin < level.length; begin += fanIn) {
      const path = join(options.scratchDir, `merge-${String(round)}-${String(next.length)}`);
      next.push(await mergeToFile(level.slice(begin, begin + fanIn), path, options));
    }
    level = next;
  }
  return level;
}

async function mergeToFile(runs: readonly Run[], path: string, options: MergeOptions): Promise<Run> {
  const writer = await RunWriter.create(path, options.partitions);
  try {
    await mergeOnce(runs, writer, options);
    return await writer.finish();
  } catch (error) {
    await writer.discard();
    throw error;
  }
}

async function mergeOnce(runs: readonly Run[], sink: FrameSink, options: MergeOptions): Promise<void> {
  const chunkBytes = chunkBytesFor(options.memoryBytes, runs.length);
  const readers: RunReader[] = [];
  try {
    for (const run of runs) readers.push(await RunReader.open(run));
    const cursors = readers.map(
      (reader, order) => new FrameCursor(order, reader.chunks(chunkBytes), runs[order]?.boundaries),
    );
    await mergeFrames(cursors, sink, options);
  } finally {
    await Promise.all(readers.map((reader) => reader.close()));
  }
}

/** Bytes of the buffer of each of `count` runs that share `memoryBytes`; half is left for joins of buffers. */
export const chunkBytesFor = (memoryBytes: number, count: number): number =>
  Math.max(leastChunkBytes, Math.min(mostChunkBytes, Math.floor(memoryBytes / (2 * Math.max(1, count)))));
