import { isUtf8 } from 'node:buffer';
import { invariant } from '../contracts/errors.ts';
import { limits } from '../contracts/limits.ts';
import type { SourceSegment } from '../contracts/plan.ts';
import { CsvRecordParser } from './csv-record.ts';
import { linesOf } from './ndjson-rows.ts';
import type { BadRecords } from './ndjson-rows.ts';
import { BadInputError, BadRecordError } from './operator.ts';
import type { Row } from './operator.ts';
import { rememberPlaces } from './row-places.ts';
import { sourceBlocks } from './source-blocks.ts';
import type { SourceReading } from './source-blocks.ts';

const batchRows = 1_000;

/**
 * The records of a CSV file, in batches: column → text. Columns are named by the first record, or c0, c1, … without
 * `header`; every record must have as many fields as the first; empty lines are passed over; a byte order mark at
 * the begin is ignored. The segment must be a whole file, for a quoted field may hold line ends. Throws
 * `BadRecordError` (`file:3: …`, the line where the record begins), or skips and counts; `BadInputError` where the
 * names of columns are not distinct.
 */
export async function* csvRows(
  reading: SourceReading,
  segment: SourceSegment,
  options: { readonly header: boolean; readonly bad: BadRecords },
): AsyncGenerator<readonly Row[]> {
  invariant(segment.start === 0 && segment.end === segment.sizeBytes, 'csv files are read whole', {
    segment,
  });
  const table = new CsvTable(segment.key, {
    ...options,
    recordBytes: reading.lineBytes ?? limits.recordBytes,
  });
  for await (const block of sourceBlocks(reading, segment)) {
    const isText = isUtf8(block.bytes);
    for (const { start, end } of linesOf(block)) {
      const row = table.push(
        block.bytes.toString('utf8', start, end),
        isText || isUtf8(block.bytes.subarray(start, end)),
      );
      if (row !== undefined) table.add(row);
      if (table.rows.length === batchRows) yield table.take();
    }
    if (table.rows.length > 0) yield table.take();
  }
  table.end();
}

/** The records of one file as they come, line by line. */
class CsvTable {
  rows: Row[] = [];
  #lines: number[] = [];
  readonly #file: string;
  readonly #header: boolean;
  readonly #bad: BadRecords;
  readonly #recordBytes: number;
  readonly #parser = new CsvRecordParser();
  #columns: readonly string[] | undefined;
  #hasProto = false;
  #line = 0;
  #recordLine = 0;
  #openChars = 0;
  #isRecordText = true;

  constructor(
    file: string,
    {
      header,
      bad,
      recordBytes,
    }: { readonly header: boolean; readonly bad: BadRecords; readonly recordBytes: number },
  ) {
    this.#recordBytes = recordBytes;
    this.#file = file;
    this.#header = header;
    this.#bad = bad;
  }

  take(): readonly Row[] {
    const { rows } = this;
    const lines = this.#lines;
    rememberPlaces(rows, (index) => `${this.#file}:${String(lines[index])}`);
    this.rows = [];
    this.#lines = [];
    return rows;
  }

  /** Adds the row that `push` has just given. */
  add(row: Row): void {
    this.rows.push(row);
    this.#lines.push(this.#recordLine);
  }

  push(line: string, isText: boolean): Row | undefined {
    this.#line++;
    if (!this.#parser.isOpen) {
      if (line === '' || line === '\r') return undefined;
      this.#recordLine = this.#line;
      this.#isRecordText = true;
      this.#openChars = 0;
    }
    this.#isRecordText &&= isText;
    // With the line's end: a file of nothing else must not grow a record for ever.
    this.#openChars += line.length + 1;
    if (this.#openChars > this.#recordBytes) {
      throw new BadInputError(
        `${this.#place()}: the record is longer than ${String(this.#recordBytes)} bytes`,
      );
    }
    const outcome = this.#parser.push(line);
    if (outcome.kind === 'open') return undefined;
    if (outcome.kind === 'record' && this.#isRecordText) return this.#rowOf(outcome.fields);
    this.#refuse(outcome.kind === 'bad' ? outcome.what : 'not valid UTF-8');
    return undefined;
  }

  end(): void {
    if (this.#parser.isOpen) this.#refuse('a quoted field is not closed');
  }

  #rowOf(fields: readonly string[]): Row | undefined {
    if (this.#columns === undefined) {
      this.#columns = this.#header ? fields : fields.map((_, index) => `c${String(index)}`);
      this.#checkColumns(this.#columns);
      if (this.#header) return undefined;
    }
    const columns = this.#columns;
    if (fields.length !== columns.length) {
      this.#refuse(`${String(fields.length)} fields where there should be ${String(columns.length)}`);
      return undefined;
    }
    // Assigning to "__proto__" would change the row's prototype instead of adding a column.
    if (this.#hasProto)
      return Object.fromEntries(columns.map((column, index) => [column, fields[index] ?? '']));
    const row: Record<string, string> = {};
    for (let index = 0; index < columns.length; index++) row[columns[index] ?? ''] = fields[index] ?? '';
    return row;
  }

  #checkColumns(columns: readonly string[]): void {
    const seen = new Set<string>();
    for (const name of columns) {
      if (seen.has(name))
        throw new BadInputError(`${this.#place()}: two columns are named ${JSON.stringify(name)}`);
      seen.add(name);
    }
    this.#hasProto = seen.has('__proto__');
  }

  #refuse(what: string): void {
    if (this.#bad.policy === 'fail') throw new BadRecordError(`${this.#place()}: ${what}`);
    this.#bad.onSkip();
  }

  #place(): string {
    return `${this.#file}:${String(this.#recordLine)}`;
  }
}
