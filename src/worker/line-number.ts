import { codecOf, type SourceSegment } from '../contracts/plan.ts';
import { lineEndsBefore } from './gzip-cuts.ts';
import { BadInputError } from './operator.ts';
import { wholeText } from './source-blocks.ts';
import type { SourceReading } from './object-ranges.ts';

const newline = 10;

/**
 * The number of the line that begins at an offset of a block of the segment's file, the first line being 1. A split does not know how many
 * lines came before it: they are counted only where a message needs it. Throws `BadInputError` where the file ends before.
 */
export async function lineNumberAt(
  reading: SourceReading,
  segment: SourceSegment,
  offset: number,
): Promise<number> {
  if (segment.start > 0 && codecOf(segment) !== undefined)
    return 1 + (await lineEndsBefore(reading, segment, offset));
  let line = 1;
  let position = 0;
  for await (const chunk of wholeText({ ...reading, onBytes: () => undefined }, segment)) {
    for (
      let at = chunk.indexOf(newline);
      at >= 0 && position + at < offset;
      at = chunk.indexOf(newline, at + 1)
    )
      line++;
    position += chunk.length;
    if (position >= offset) return line;
  }
  if (position < offset) throw new BadInputError(`${segment.key}: shorter than when the job was planned`);
  return line;
}
