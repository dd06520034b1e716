import { codecOf, type SourceSegment } from '../contracts/plan.ts';
import type { LineBlock } from './operator.ts';
import { sourceBlocks } from './source-blocks.ts';
import type { SourceReading } from './object-ranges.ts';

/** What is read at each place that is looked at. */
const sampleBytes = 16 * 1024;
/** An input of at most so many times what its sample would be is read whole: in fewer requests. */
const worthSampling = 8;
const readsAtOnce = 16;

/** Lines, and how many bytes of the input they stand for. */
export interface SampledBlock extends LineBlock {
  readonly standsForBytes: number;
}

/** How segments are sampled: which are read whole, and at which places the others are looked at. */
export interface SamplePlan {
  readonly whole: readonly SourceSegment[];
  readonly places: readonly SourceSegment[];
  /** What each place stands for. */
  readonly strideBytes: number;
}

const bytesOf = (segments: readonly SourceSegment[]): number =>
  segments.reduce((sum, { start, end }) => sum + end - start, 0);

/**
 * Plans a sample of about `places` places, evenly spread over the bytes of plain segments. Compressed ones cannot be
 * entered, and are read whole, as is what is small.
 */
export function planSample(segments: readonly SourceSegment[], places: number): SamplePlan {
  const plain = segments.filter((segment) => codecOf(segment) === undefined);
  const total = bytesOf(plain);
  if (total <= places * sampleBytes * worthSampling) return { whole: segments, places: [], strideBytes: 0 };
  const strideBytes = total / places;
  const found: SourceSegment[] = [];
  let before = 0;
  for (const segment of plain) {
    const size = segment.end - segment.start;
    // Place number n lies in the middle of the stretch that it stands for.
    for (
      let at = (found.length + 0.5) * strideBytes;
      at < before + size;
      at = (found.length + 0.5) * strideBytes
    ) {
      const start = segment.start + Math.floor(at - before);
      found.push({ ...segment, start, end: Math.min(segment.end, start + sampleBytes) });
    }
    before += size;
  }
  return { whole: segments.filter((segment) => codecOf(segment) !== undefined), places: found, strideBytes };
}

/** Bytes of the segments that a sample leaves out. */
export const unreadBytes = (segments: readonly SourceSegment[], { whole, places }: SamplePlan): number =>
  bytesOf(segments) - bytesOf(whole) - bytesOf(places);

/**
 * Lines from places that are spread over the segments, in order, and all lines of what is read whole. Where no line
 * begins at any of the places, since lines are very long, the places are given up and all is read.
 */
export async function* sampledBlocks(
  reading: SourceReading,
  segments: readonly SourceSegment[],
  plan: SamplePlan,
): AsyncGenerator<SampledBlock> {
  for (const segment of plan.whole) yield* wholeBlocks(reading, segment);
  let isAnyFound = plan.places.length === 0;
  for (let at = 0; at < plan.places.length; at += readsAtOnce) {
    const some = plan.places.slice(at, at + readsAtOnce);
    for (const block of await Promise.all(some.map((place) => blockAt(reading, place)))) {
      if (block === undefined) continue;
      isAnyFound = true;
      yield { ...block, standsForBytes: plan.strideBytes };
    }
  }
  if (isAnyFound) return;
  for (const segment of segments) if (codecOf(segment) === undefined) yield* wholeBlocks(reading, segment);
}

async function* wholeBlocks(reading: SourceReading, segment: SourceSegment): AsyncGenerator<SampledBlock> {
  for await (const block of sourceBlocks(reading, segment))
    yield { ...block, standsForBytes: block.bytes.length };
}

/** The lines that begin at a place; undefined where none does. */
async function blockAt(reading: SourceReading, place: SourceSegment): Promise<LineBlock | undefined> {
  const blocks: LineBlock[] = [];
  for await (const block of sourceBlocks(reading, place)) blocks.push(block);
  const [first] = blocks;
  if (first === undefined) return undefined;
  return { ...first, bytes: Buffer.concat(blocks.map(({ bytes }) => bytes)) };
}
