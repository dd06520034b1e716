import { isUtf8 } from 'node:buffer';
import { invariant } from '../contracts/errors.ts';
import { limits } from '../contracts/limits.ts';
import type { SourceSegment } from '../contracts/plan.ts';
import { CsvRecordParser } from './csv-record.ts';
import { looksAtBegin } from './file-head.ts';
import { lineName, lineNumberAt } from './line-number.ts';
import { linesOf } from './ndjson-rows.ts';
import type { BadRecords } from './ndjson-rows.ts';
import { BadInputError, BadRecordError } from './operator.ts';
import type { LineBlock, Row } from './operator.ts';
import { rememberPlaces } from './row-places.ts';
import { sourceBlocks } from './source-blocks.ts';
import type { SourceReading } from './object-ranges.ts';

const batchRows = 1_000;
const shownColumns = 50;
const notOnOneLine =
  'a quoted field is not closed on its line; where fields of the file hold line ends, say so: "multiline": true beside the format of the input, or --multiline';

/** How a CSV file is read. */
export interface CsvForm {
  readonly header: boolean;
  readonly bad: BadRecords;
  /** Whether quoted fields may hold line ends, as they may where it is left out. */
  readonly multiline?: boolean;
  /** Of a later part of a job's output: the columns that its first part names for all. */
  readonly columns?: readonly string[] | undefined;
}

/**
 * What the first record of a later part is, beside the columns that the first part names: jobs write the header into that
 * alone, and others the same one into each. Undefined where it may be neither: another number of fields, each name once in
 * another order, or more than half of the names in their places, both without regard to case.
 */
function firstOfPart(fields: readonly string[], columns: readonly string[]): 'header' | 'row' | undefined {
  if (fields.length !== columns.length) return undefined;
  if (fields.every((field, index) => field === columns[index])) return 'header';
  const values = fields.map((field) => field.toLowerCase());
  const names = columns.map((name) => name.toLowerCase());
  // Values may be names too: all of them at once, or most in their places, are another header.
  const sortedNames = names.toSorted();
  if (values.toSorted().every((value, index) => value === sortedNames[index])) return undefined;
  // Numbers, as which empty texts pass here, say nothing: years and counts are values and names alike.
  const inPlace = values.filter((value, index) => value === names[index] && Number.isNaN(Number(value)));
  // All fields count, empty ones too: a row of choices has the name of each that was made and none of the others, a header all.
  const all = values.filter((value, index) => value !== '' || names[index] !== '');
  return inPlace.length * 2 > all.length ? undefined : 'row';
}

const noFirstOfPart = (columns: readonly string[]): string =>
  `the first line of a later part must be a row of the columns that its part-00000 names, or the same header: these columns are ${columns.slice(0, shownColumns).join(', ')}; name the file otherwise where it has a header of its own`;

/** What the first record of a file makes of it: the names of its columns, and what it is itself (`firstOfPart`). */
export function beginOf(
  fields: readonly string[],
  { header, columns }: Pick<CsvForm, 'header' | 'columns'>,
): { readonly columns: readonly string[]; readonly kind: 'header' | 'row' | undefined } {
  if (!header) return { columns: fields.map((_, index) => `c${String(index)}`), kind: 'row' };
  return columns === undefined
    ? { columns: fields, kind: 'header' }
    : { columns, kind: firstOfPart(fields, columns) };
}

/**
 * The records of a segment of a CSV file, in batches: column → text. Columns are named by the file's first record, or c0,
 * c1, … without `header`, or by `columns`, where that one is a row but for a header that is the same; every record must have as many fields as the first; empty lines are passed over; a byte order
 * mark at the begin is ignored. Throws `BadRecordError` (`file:3: …`, the line where the record begins), or skips and
 * counts; `BadInputError` where the names of columns are not distinct.
 *
 * With `multiline` the segment must be a whole file. Without, each record is a line: one that does not end with its line
 * fails with `BadRecordError`, also where bad records are skipped. Then no line of the file lies within a field, for the
 * first such field would begin on a line of its own, on which some segment would fail: what all segments give together is
 * what the whole file gives.
 */
export async function* csvRows(
  reading: SourceReading,
  segment: SourceSegment,
  form: CsvForm,
): AsyncGenerator<readonly Row[]> {
  const isWhole = segment.start === 0 && segment.end === segment.sizeBytes;
  invariant(isWhole || form.multiline === false, 'csv files of several lines a record are read whole', {
    segment,
  });
  const table = new CsvTable({ ...form, recordBytes: reading.lineBytes ?? limits.recordBytes });
  let begin: number | undefined;
  const blame = async (error: unknown): Promise<unknown> => {
    if (!(error instanceof CsvProblem)) return error;
    // Before the segment's first line it was read from the file's begin.
    return error.at(segment, begin === undefined ? 0 : await linesBefore(reading, segment, begin));
  };
  try {
    const columns = await columnsBefore(reading, segment, form);
    if (columns !== undefined) table.nameColumns(columns);
    for await (const block of sourceBlocks(reading, segment)) {
      begin ??= block.offset;
      for (const row of table.rowsOf(block)) {
        table.add(row);
        if (table.rows.length === batchRows) yield table.take(segment.key, placesIn(reading, segment, begin));
      }
      if (table.rows.length > 0) yield table.take(segment.key, placesIn(reading, segment, begin));
    }
    table.end();
  } catch (error) {
    throw await blame(error);
  }
}

/** A line by its number within the segment, and by its offset in the file. */
interface LinePlace {
  readonly line: number;
  readonly offset: number;
}

/** Tells the place of a line of the segment, whose first line begins at byte `begin`. */
const placesIn =
  (reading: SourceReading, segment: SourceSegment, begin: number) =>
  async (place: LinePlace): Promise<string> =>
    nameOf(segment, await linesBefore(reading, segment, begin), place);

/** Lines of the file before a segment, whose first line begins at byte `begin`; undefined where they are too many to be counted. */
async function linesBefore(
  reading: SourceReading,
  segment: SourceSegment,
  begin: number,
): Promise<number | undefined> {
  if (segment.start === 0) return 0;
  const first = await lineNumberAt(reading, segment, begin);
  return first === undefined ? undefined : first - 1;
}

const nameOf = (segment: SourceSegment, before: number | undefined, { line, offset }: LinePlace): string =>
  lineName(segment.key, before === undefined ? undefined : before + line, { segment, offset });

/**
 * Reads a file from its begin to its first record, which names the columns; no further than the segment. Undefined where
 * there is none before it, so that its own first one names them. Throws as `csvRows`, but for what is wrong with a place.
 */
export async function columnsBefore(
  reading: SourceReading,
  segment: SourceSegment,
  form: CsvForm,
): Promise<readonly string[] | undefined> {
  // Whoever reads the first segment counts what is bad in it, and its bytes.
  const head = new CsvTable({
    ...form,
    bad: { policy: 'skip', onSkip: () => undefined },
    recordBytes: reading.lineBytes ?? limits.recordBytes,
  });
  for (const blocks of looksAtBegin(reading, segment, segment.start)) {
    for await (const block of blocks) {
      head.rowsOf(block).next();
      if (head.columns !== undefined) return head.columns;
    }
  }
  return undefined;
}

/** Something wrong with a line of a segment, whose own number is not known yet. */
export class CsvProblem extends Error {
  readonly #kind: 'record' | 'input';
  readonly #place: LinePlace;

  constructor(kind: 'record' | 'input', place: LinePlace, what: string) {
    super(what);
    this.#kind = kind;
    this.#place = place;
  }

  /** With its place, after so many lines that come before the segment. */
  at(segment: SourceSegment, before: number | undefined): Error {
    const message = `${nameOf(segment, before, this.#place)}: ${this.message}`;
    return this.#kind === 'record' ? new BadRecordError(message) : new BadInputError(message);
  }
}

/** The records of one file as they come, line by line. */
class CsvTable {
  rows: Row[] = [];
  #lines: number[] = [];
  #offsets: number[] = [];
  readonly #header: boolean;
  readonly #bad: BadRecords;
  readonly #recordBytes: number;
  readonly #isMultiline: boolean;
  readonly #parser = new CsvRecordParser();
  readonly #given: readonly string[] | undefined;
  #columns: readonly string[] | undefined;
  #hasProto = false;
  #line = 0;
  #recordLine = 0;
  #recordOffset = 0;
  #openChars = 0;
  #isRecordText = true;

  constructor(form: CsvForm & { readonly recordBytes: number }) {
    const { header, bad, multiline = true, columns, recordBytes } = form;
    this.#given = columns;
    this.#isMultiline = multiline;
    this.#recordBytes = recordBytes;
    this.#header = header;
    this.#bad = bad;
  }

  /** Undefined until the first record is read. */
  get columns(): readonly string[] | undefined {
    return this.#columns;
  }

  /** Throws where two are alike. */
  nameColumns(columns: readonly string[]): void {
    this.#columns = columns;
    this.#checkColumns(columns);
  }

  /** The rows that were added since. */
  take(file: string, placeOf: (place: LinePlace) => Promise<string>): readonly Row[] {
    const { rows } = this;
    const lines = this.#lines;
    const offsets = this.#offsets;
    rememberPlaces(rows, {
      placeOf: (index) => placeOf({ line: lines[index] ?? 0, offset: offsets[index] ?? 0 }),
      file,
      offsets,
    });
    this.rows = [];
    this.#lines = [];
    this.#offsets = [];
    return rows;
  }

  /** Adds the row that `push` has just given. */
  add(row: Row): void {
    this.rows.push(row);
    this.#lines.push(this.#recordLine);
    this.#offsets.push(this.#recordOffset);
  }

  /** The rows whose last line is in a block. */
  *rowsOf(block: LineBlock): Generator<Row> {
    const isText = isUtf8(block.bytes);
    for (const { start, end } of linesOf(block)) {
      const row = this.push(
        block.bytes.toString('utf8', start, end),
        isText || isUtf8(block.bytes.subarray(start, end)),
        block.offset + start,
      );
      if (row !== undefined) yield row;
    }
  }

  push(line: string, isText: boolean, offset: number): Row | undefined {
    this.#line++;
    if (!this.#parser.isOpen) {
      if (line === '' || line === '\r') return undefined;
      this.#recordLine = this.#line;
      this.#recordOffset = offset;
      this.#isRecordText = true;
      this.#openChars = 0;
    }
    this.#isRecordText &&= isText;
    // With the line's end: a file of nothing else must not grow a record for ever.
    this.#openChars += line.length + 1;
    if (this.#openChars > this.#recordBytes) {
      throw this.#problem('input', `the record is longer than ${String(this.#recordBytes)} bytes`);
    }
    const outcome = this.#parser.push(line);
    if (outcome.kind === 'open') {
      if (this.#isMultiline) return undefined;
      throw this.#problem('record', notOnOneLine);
    }
    if (outcome.kind === 'record' && this.#isRecordText) return this.#rowOf(outcome.fields);
    this.#refuse(outcome.kind === 'bad' ? outcome.what : 'not valid UTF-8');
    return undefined;
  }

  end(): void {
    if (this.#parser.isOpen) this.#refuse('a quoted field is not closed');
  }

  #rowOf(fields: readonly string[]): Row | undefined {
    if (this.#columns === undefined) {
      const { columns, kind } = beginOf(fields, { header: this.#header, columns: this.#given });
      if (kind === undefined) throw this.#problem('input', noFirstOfPart(columns));
      this.nameColumns(columns);
      if (kind === 'header') return undefined;
    }
    const columns = this.#columns ?? [];
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
      if (seen.has(name)) throw this.#problem('input', `two columns are named ${JSON.stringify(name)}`);
      seen.add(name);
    }
    this.#hasProto = seen.has('__proto__');
  }

  #refuse(what: string): void {
    if (this.#bad.policy === 'fail') throw this.#problem('record', what);
    this.#bad.onSkip();
  }

  #problem(kind: 'record' | 'input', what: string): CsvProblem {
    return new CsvProblem(kind, { line: this.#recordLine, offset: this.#recordOffset }, what);
  }
}
