import { isUtf8 } from 'node:buffer';
import { isDeeperThan } from '../contracts/json-text.ts';
import { limits } from '../contracts/limits.ts';
import type { SourceSegment } from '../contracts/plan.ts';
import { headBytes, looksAtBegin } from './file-head.ts';
import { JsonScanner } from './json-scan.ts';
import { BadRecordError } from './operator.ts';
import type { JsonCells, LineBlock, Row } from './operator.ts';
import { ownValue } from '../lib/own.ts';
import { rememberPlaces } from './row-places.ts';
import { lineNameAt } from './line-number.ts';
import { sourceBlocks } from './source-blocks.ts';
import type { SourceReading } from './object-ranges.ts';

const newline = 10;
const batchRows = 1_000;

/** What to do with a record that cannot be read. */
export interface BadRecords {
  readonly policy: 'fail' | 'skip';
  /** Called for each record that is skipped. */
  onSkip(): void;
}

/**
 * The records of a segment of NDJSON, in batches. Each line must be a JSON object in UTF-8; lines of nothing but
 * white space are passed over; a byte order mark at the file's begin is ignored. Throws `BadRecordError` with file
 * and line (`file:3: …`, see `lineName`), or skips and counts.
 */
export async function* ndjsonRows(
  reading: SourceReading,
  segment: SourceSegment,
  bad: BadRecords,
): AsyncGenerator<readonly Row[]> {
  for await (const block of sourceBlocks(reading, segment)) {
    const isText = isUtf8(block.bytes);
    let batch: Row[] = [];
    let offsets: number[] = [];
    const take = (): readonly Row[] => {
      const [rows, starts] = [batch, offsets];
      rememberPlaces(rows, {
        placeOf: (index) => lineNameAt(reading, segment, { offset: starts[index] ?? 0 }),
        file: segment.key,
        offsets: starts,
      });
      batch = [];
      offsets = [];
      return rows;
    };
    for (const { start, end } of linesOf(block)) {
      const line = block.bytes.subarray(start, end);
      const row = isText || isUtf8(line) ? parseRow(line.toString('utf8')) : 'not valid UTF-8';
      if (row === undefined) continue;
      if (typeof row !== 'string') {
        batch.push(row);
        offsets.push(block.offset + start);
      } else if (bad.policy === 'skip') bad.onSkip();
      else throw await badRecord(reading, segment, block.offset + start, row);
      if (batch.length === batchRows) yield take();
    }
    if (batch.length > 0) yield take();
  }
}

/**
 * The records that begin in the first 64 KB of a file, or else its first one; of a compressed file the 64 KB are of its text. What is
 * bad in it is left to whoever reads the file, and its bytes count there.
 */
export async function ndjsonHead(reading: SourceReading, first: SourceSegment): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const blocks of looksAtBegin(reading, first, first.sizeBytes)) {
    for await (const block of blocks) {
      for (const place of linesOf(block)) {
        if (rows.length > 0 && block.offset + place.start >= headBytes) return rows;
        const line = block.bytes.subarray(place.start, place.end);
        const row = isUtf8(line) ? parseRow(line.toString('utf8')) : undefined;
        if (typeof row === 'object') rows.push(row);
      }
    }
    if (rows.length > 0) return rows;
  }
  return rows;
}

/**
 * The values of some columns of the same records, as JSON: as it was read where that is plain, else as JavaScript writes it. In
 * the order of the records, with the same errors and skips.
 */
export async function* ndjsonCells(
  reading: SourceReading,
  segment: SourceSegment,
  { bad, columns }: { readonly bad: BadRecords; readonly columns: readonly string[] },
): AsyncGenerator<JsonCells> {
  const scanner = new JsonScanner(columns);
  for await (const block of sourceBlocks(reading, segment)) {
    const { bytes, offset } = block;
    const isText = isUtf8(bytes);
    let start = beginOf(block);
    while (start < bytes.length) {
      const odd = isText ? scanner.scan(bytes, start) : start;
      if (isText && scanner.count > 0) yield { bytes, ...placesOf(scanner) };
      if (odd >= bytes.length) break;
      const found = bytes.indexOf(newline, odd);
      start = found < 0 ? bytes.length : found + 1;
      const line = bytes.subarray(odd, found < 0 ? start : found);
      const row = isText || isUtf8(line) ? parseRow(line.toString('utf8')) : 'not valid UTF-8';
      if (row === undefined) continue;
      if (typeof row !== 'string') yield cellsOfRow(row, columns);
      else if (bad.policy === 'skip') bad.onSkip();
      else throw await badRecord(reading, segment, offset + odd, row);
    }
  }
}

const placesOf = ({ count, starts, ends }: JsonScanner): Omit<JsonCells, 'bytes'> => ({
  count,
  starts,
  ends,
});

function cellsOfRow(row: Row, columns: readonly string[]): JsonCells {
  const starts = new Int32Array(columns.length);
  const ends = new Int32Array(columns.length);
  const cells: Buffer[] = [];
  let at = 0;
  columns.forEach((column, index) => {
    const value = ownValue(row, column);
    const cell = Buffer.from(value === undefined ? '' : JSON.stringify(value));
    cells.push(cell);
    starts[index] = at;
    at += cell.length;
    ends[index] = at;
  });
  return { bytes: Buffer.concat(cells), count: 1, starts, ends };
}

/** The lines of a block, without their "\n" and without a byte order mark at the begin of the file. */
export function* linesOf(block: LineBlock): Generator<{ start: number; end: number }> {
  const { bytes } = block;
  let start = beginOf(block);
  while (start < bytes.length) {
    const found = bytes.indexOf(newline, start);
    const end = found < 0 ? bytes.length : found;
    yield { start, end };
    start = end + 1;
  }
}

/** Behind a byte order mark. */
const beginOf = ({ bytes, offset }: LineBlock): number =>
  offset === 0 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;

/** The row, undefined for white space, or what is wrong. */
function parseRow(text: string): Row | string | undefined {
  if (text.trim() === '') return undefined;
  if (isDeeperThan(text, limits.recordDepth)) {
    return `nested deeper than ${String(limits.recordDepth)} levels`;
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `not valid JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
  if (!isRow(value)) return 'not a JSON object';
  return mayOverflow.test(text) && hasInfinity(value) ? 'a number beyond the range of doubles' : value;
}

/** What a number must have to be beyond range: an exponent of more than one digit, or, with at most one, hundreds of digits. */
const mayOverflow = /\d[eE]\+?\d{2}|\d{300}/;

/** Whether a number was too large for a double: it would be written as null. */
function hasInfinity(row: Row): boolean {
  const open: unknown[] = [row];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (value === Infinity || value === -Infinity) return true;
    if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) open.push(item);
  }
  return false;
}

const isRow = (value: unknown): value is Row =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

async function badRecord(
  reading: SourceReading,
  segment: SourceSegment,
  offset: number,
  what: string,
): Promise<BadRecordError> {
  const place = await lineNameAt(reading, segment, { offset });
  return new BadRecordError(`${place}: ${what} (byte ${String(offset)})`);
}
