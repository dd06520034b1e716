import { codecOf, type SourceSegment } from '../contracts/plan.ts';
import { lineEndsBefore } from './gzip-cuts.ts';
import { BadInputError } from './operator.ts';
import { wholeText } from './source-blocks.ts';
import type { SourceReading } from './object-ranges.ts';

const newline = 10;
/** Lines are counted through no more than this: seconds, in which no progress is told. Of a piece of gzip as it is stored, else of the text. */
const mostCountedBytes = 1_000_000_000;

/** A piece of gzip other than its file's first, whose offsets are no bytes of the text. */
const isLaterPiece = (segment: SourceSegment): boolean => segment.start > 0 && codecOf(segment) !== undefined;

/**
 * The number of the line that begins at an offset of a block of the segment's file, the first line being 1. A split does not know how many
 * lines came before it: they are counted only where a message needs it, and not beyond a gigabyte: then it is undefined.
 * Throws `BadInputError` where the file ends before.
 */
export async function lineNumberAt(
  reading: SourceReading,
  segment: SourceSegment,
  offset: number,
): Promise<number | undefined> {
  const isPacked = isLaterPiece(segment);
  if ((isPacked ? segment.start : offset) > mostCountedBytes) return undefined;
  if (isPacked) return 1 + (await lineEndsBefore(reading, segment, offset));
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

/** Names the line that begins at an offset of a block of a segment: by its number, or where that is not known by its byte. */
export function lineName(
  file: string,
  line: number | undefined,
  { segment, offset }: { readonly segment: SourceSegment; readonly offset: number },
): string {
  if (line !== undefined) return `${file}:${String(line)}`;
  if (isLaterPiece(segment)) return `${file}: a line of what is packed from byte ${String(segment.start)} on`;
  return `${file}: the line at byte ${String(offset)}`;
}

/** The same, which counts its number. Throws what `lineNumberAt` throws. */
export async function lineNameAt(
  reading: SourceReading,
  segment: SourceSegment,
  { file = segment.key, offset }: { readonly file?: string; readonly offset: number },
): Promise<string> {
  return lineName(file, await lineNumberAt(reading, segment, offset), { segment, offset });
}
