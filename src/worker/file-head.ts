import { codecOf, type SourceSegment } from '../contracts/plan.ts';
import type { SourceReading } from './object-ranges.ts';
import { sourceBlocks } from './source-blocks.ts';

/** First look at the begin of a file; each further one is four times as long. */
export const headBytes = 64 * 1024;

/**
 * Looks at a file from its begin until byte `end`, each the blocks of a piece, for as long as they are asked for. What is read counts
 * where the file itself is read.
 */
export function* looksAtBegin(
  reading: SourceReading,
  file: SourceSegment,
  end: number,
): Generator<ReturnType<typeof sourceBlocks>> {
  const quiet = { ...reading, onBytes: () => undefined, onExpected: undefined, mark: undefined };
  // What cannot be entered in its middle is read once, for as long as it takes: each look would begin anew.
  const isStream = (codecOf(file) ?? 'gzip') !== 'gzip';
  const firstBytes = isStream ? file.sizeBytes : headBytes;
  for (let start = 0, size = firstBytes; start < end; start += size, size *= 4)
    yield sourceBlocks(quiet, { ...file, start, end: Math.min(end, start + size) });
}
