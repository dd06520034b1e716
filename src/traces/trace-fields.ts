import { badLine, traceLines } from './trace-lines.ts';
import type { TraceLine } from './trace-lines.ts';

/** A number as traces write it; no blanks, no `Infinity`, no hexadecimal. */
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

/** The number that `text` is; throws naming line and field if it is none, or is below `least`. */
export function numberField(
  line: TraceLine,
  field: { name: string; text: string | undefined; least?: number },
): number {
  const text = field.text ?? '';
  const value = NUMBER.test(text) ? Number(text) : Number.NaN;
  if (!Number.isFinite(value)) throw badLine(line, `${field.name} is ${quoted(text)}; expected a number`);
  if (field.least !== undefined && value < field.least) {
    throw badLine(line, `${field.name} is ${text}; expected at least ${field.least}`);
  }
  return value;
}

/** The whole number that `text` is; throws as `numberField`. */
export function wholeField(
  line: TraceLine,
  field: { name: string; text: string | undefined; least?: number },
): number {
  const value = numberField(line, field);
  if (!Number.isSafeInteger(value))
    throw badLine(line, `${field.name} is ${field.text ?? ''}; expected a whole number`);
  return value;
}

const quoted = (text: string): string => JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);

/** A row of a table with a header. */
export interface TraceRow {
  readonly line: TraceLine;
  /** Text of a column; empty if the field is blank. */
  text(column: string): string;
  /** Number in a column of at least `least`; throws naming the line if it is none. */
  number(column: string, least?: number): number;
  /** As `number`, but undefined for a blank field. */
  optionalNumber(column: string, least?: number): number | undefined;
}

/** Columns of a header; throws naming those that are missing. */
function columnsOf(header: TraceLine, needed: readonly string[]): ReadonlyMap<string, number> {
  const columns = new Map(header.text.split(',').map((name, index) => [name.trim(), index]));
  const missing = needed.filter((name) => !columns.has(name));
  if (missing.length > 0)
    throw badLine(header, `header lacks ${missing.join(', ')}; expected ${needed.join(',')}`);
  return columns;
}

/**
 * Rows of a comma-separated file with a header line; extra columns are ignored. Fields cannot hold commas or
 * quotes: none of the traces needs it. Throws `InvalidInputError` for an empty file, a header that lacks one of
 * `columns`, and a row with more or fewer fields than the header.
 */
export async function* traceRows(
  path: string,
  columns: readonly string[],
): AsyncGenerator<TraceRow, void, void> {
  let header: ReadonlyMap<string, number> | undefined;
  for await (const line of traceLines(path)) {
    if (header === undefined) header = columnsOf(line, columns);
    else yield rowOf(line, header);
  }
  if (header === undefined)
    throw badLine({ path, number: 1, text: '' }, `file is empty; expected ${columns.join(',')}`);
}

function rowOf(line: TraceLine, columns: ReadonlyMap<string, number>): TraceRow {
  const fields = line.text.split(',');
  if (fields.length !== columns.size) {
    throw badLine(line, `row has ${fields.length} fields; the header has ${columns.size}`);
  }
  const text = (column: string): string => fields[columns.get(column) ?? -1] ?? '';
  const number = (column: string, least?: number): number =>
    numberField(line, { name: column, text: text(column), ...(least === undefined ? {} : { least }) });
  return {
    line,
    text,
    number,
    optionalNumber: (column, least) => (text(column) === '' ? undefined : number(column, least)),
  };
}
