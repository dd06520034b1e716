import { isUtf8 } from 'node:buffer';
import { invariant } from '../contracts/errors.ts';
import { limits } from '../contracts/limits.ts';
import type { SourceSegment } from '../contracts/plan.ts';
import { ownValue } from '../lib/own.ts';
import { CsvRecordParser } from './csv-record.ts';
import { beginOf, columnsBefore, CsvProblem, csvRows, type CsvForm } from './csv-rows.ts';
import { CsvScanner } from './csv-scan.ts';
import { csvLine, csvValue } from './csv-text.ts';
import { BadRecordError } from './operator.ts';
import type { CsvBlock, CsvRecords, Row } from './operator.ts';
import { placeOfRow } from './row-places.ts';
import { sourceBlocks } from './source-blocks.ts';
import type { SourceReading } from './object-ranges.ts';

const newline = 10;
const quote = 0x22;

export interface CsvReading extends CsvForm {
  /** The column whose cells' places are told. */
  readonly key: string | undefined;
  /** Columns that each file with records must have, besides. */
  readonly needed?: readonly string[] | undefined;
}

/**
 * The records of a CSV file as bytes: the very same records as `csvRows` gives, with the same errors and skips. Blocks
 * that are plainly well-formed are passed on as they were read. From the first record on that is not, `csvRows` reads
 * the file anew and its rows are written as CSV.
 */
export async function* csvBlocks(
  reading: SourceReading,
  segment: SourceSegment,
  options: CsvReading,
): AsyncGenerator<CsvBlock> {
  // What is wrong before the segment is told by whoever reads it, with its place: `csvRows` does.
  const before = await columnsBefore(reading, segment, options).catch((error: unknown) => {
    if (error instanceof CsvProblem) return undefined;
    throw error;
  });
  let told = 0;
  let bytesRead = 0;
  const counting = {
    ...reading,
    onBytes: (count: number) => {
      bytesRead += count;
      reading.onBytes(count);
    },
  };
  const file = new CsvFile(options);
  if (segment.start === 0 || (before !== undefined && file.takeColumns(before))) {
    for await (const { bytes } of sourceBlocks(counting, segment)) {
      const block = file.push(bytes);
      if (block === 'odd') break;
      if (block === undefined) continue;
      told += block.records.count;
      yield block;
    }
    if (file.isWhole && told === 0 && file.columns !== undefined)
      yield { ...noRecords, columns: file.columns };
    if (file.isWhole) return;
  }
  // What was counted once is not counted again.
  let known = bytesRead;
  const again = {
    ...reading,
    onBytes: (count: number) => {
      const counted = Math.max(0, count - known);
      known -= count - counted;
      if (counted > 0) reading.onBytes(counted);
    },
  };
  const rows = csvRows(again, segment, options);
  for await (const batch of rows) {
    const skipped = Math.min(told, batch.length);
    told -= skipped;
    const rest = batch.slice(skipped);
    if (rest.length === 0) continue;
    const columns = file.columns ?? Object.keys(rest[0] ?? {});
    const missing = firstMissing(columns, options);
    if (missing !== undefined) {
      const place = (await placeOfRow(batch, skipped)) ?? segment.key;
      throw new BadRecordError(
        `${place}: there is no column ${JSON.stringify(missing)}; the columns are ${columns.slice(0, 50).join(', ')}`,
      );
    }
    yield blockOfRows(rest, columns, options.key === undefined ? -1 : columns.indexOf(options.key));
  }
}

/** The first column that is asked for and is none of these. */
function firstMissing(columns: readonly string[], { key, needed = [] }: CsvReading): string | undefined {
  return [...(key === undefined ? [] : [key]), ...needed].find((column) => !columns.includes(column));
}

/** Whether each record is one line, and none is open at the end. */
function isLineEach(bytes: Buffer, scanner: CsvScanner): boolean {
  if (scanner.rest < bytes.length) return false;
  if (!bytes.includes(quote)) return true;
  for (let record = 0; record < scanner.count; record++)
    if (bytes.indexOf(newline, scanner.starts[record]) < (scanner.ends[record] ?? 0)) return false;
  return true;
}

/** What a file of a header alone gives: its columns are known. */
const noRecords = {
  bytes: Buffer.alloc(0),
  records: {
    count: 0,
    starts: new Int32Array(0),
    ends: new Int32Array(0),
    keyStarts: new Int32Array(0),
    keyEnds: new Int32Array(0),
  },
};

/** One file, as long as it is plainly well-formed. */
class CsvFile {
  columns: readonly string[] | undefined;
  readonly #options: CsvReading;
  #scanner: CsvScanner | undefined;
  /** A record whose quoted field goes on in the next block. */
  #open: Buffer = Buffer.alloc(0);
  #isFirst = true;
  #isOdd = false;

  constructor(options: CsvReading) {
    this.#options = options;
  }

  /** Whether all of it was well-formed, and no record is open. */
  get isWhole(): boolean {
    return !this.#isOdd && this.#open.length === 0;
  }

  /** Takes the columns that the file's first record has named; false where one that is asked for is none of them. */
  takeColumns(columns: readonly string[]): boolean {
    const { key } = this.#options;
    if (firstMissing(columns, this.#options) !== undefined) return false;
    this.columns = columns;
    this.#scanner = new CsvScanner(columns.length, key === undefined ? -1 : columns.indexOf(key));
    return true;
  }

  /** Whole lines; "odd" where they must be looked at record by record, undefined where they hold no whole record. */
  push(lines: Buffer): CsvBlock | 'odd' | undefined {
    const block = this.#read(lines);
    this.#isOdd = block === 'odd';
    return block;
  }

  #read(lines: Buffer): CsvBlock | 'odd' | undefined {
    if (!isUtf8(lines) || lines.includes(0)) return 'odd';
    let bytes = this.#open.length === 0 ? lines : Buffer.concat([this.#open, lines]);
    // Only the last line of a file may lack its end.
    if (bytes[bytes.length - 1] !== newline) bytes = Buffer.concat([bytes, Buffer.from('\n')]);
    if (bytes.length > limits.recordBytes) return 'odd';
    const start = this.#scanner === undefined ? this.#begin(bytes) : 0;
    const scanner = this.#scanner;
    bytes = bytes.subarray(Math.max(0, start));
    if (start < 0 || scanner?.scan(bytes) !== true) return 'odd';
    if (this.#options.multiline === false && !isLineEach(bytes, scanner)) return 'odd';
    this.#open = Buffer.from(bytes.subarray(scanner.rest));
    if (scanner.count === 0) return undefined;
    return {
      ...(scanner.isPlain
        ? { bytes: bytes.subarray(0, scanner.rest), records: scanner }
        : packed(bytes, scanner)),
      columns: this.columns ?? [],
    };
  }

  /** Reads the names of the columns; answers where the records begin, or -1 where that is not plain. */
  #begin(bytes: Buffer): number {
    if (!this.#isFirst) return -1;
    this.#isFirst = false;
    const from = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
    const end = bytes.indexOf(newline, from);
    const line = bytes.toString('utf8', from, end);
    const first = new CsvRecordParser().push(line);
    if (line === '' || line === '\r' || first.kind !== 'record') return -1;
    const { columns, kind } = beginOf(first.fields, this.#options);
    if (kind === undefined || new Set(columns).size !== columns.length || !this.takeColumns(columns))
      return -1;
    return kind === 'header' ? end + 1 : from;
  }
}

/** The records with "\n" at their ends and nothing between them. */
function packed(bytes: Buffer, records: CsvRecords): { bytes: Buffer; records: CsvRecords } {
  const result = Buffer.allocUnsafe(bytes.length);
  const { count } = records;
  const moved = {
    count,
    starts: new Int32Array(count),
    ends: new Int32Array(count),
    keyStarts: new Int32Array(count),
    keyEnds: new Int32Array(count),
  };
  let at = 0;
  for (let record = 0; record < count; record++) {
    const start = records.starts[record] ?? 0;
    const end = records.ends[record] ?? 0;
    moved.starts[record] = at;
    moved.keyStarts[record] = (records.keyStarts[record] ?? 0) - start + at;
    moved.keyEnds[record] = (records.keyEnds[record] ?? 0) - start + at;
    at += bytes.copy(result, at, start, end);
    moved.ends[record] = at;
    result[at++] = newline;
  }
  return { bytes: result.subarray(0, at), records: moved };
}

/** Rows written as CSV, as if they had been read so. */
function blockOfRows(rows: readonly Row[], columns: readonly string[], keyField: number): CsvBlock {
  const lines = rows.map((row) => csvLine(columns.map((column) => csvValue(ownValue(row, column)))));
  const bytes = Buffer.from(lines.join(''));
  const records = new CsvScanner(columns.length, keyField);
  invariant(records.scan(bytes), 'what is written as CSV is well-formed');
  return { bytes, columns, records };
}
