import { createReadStream } from 'node:fs';
import { limits } from '../contracts/limits.ts';
import { LineCutter } from '../worker/line-cutter.ts';
import { addValue, noValues } from './aggregates.ts';
import type { Partial } from './aggregates.ts';
import { addExactly, addWhole } from './exact-sum.ts';
import type { ExactSum } from './exact-sum.ts';
import type { Aggregate } from './groupby-options.ts';

/*
 * Groups in bulk, as lines that an engine writes and reads: fields between tabs, none of which a field ever holds. First the
 * JSON of the key, then the number of rows; of each column that is aggregated the number of its values, their sum in units
 * of 1, of 2^-62 and of 2^-96 where it is summed (a whole number each, or nothing), the least and the largest where those are
 * asked for; at the end, of each of these columns, the texts of the values that are in none of that, as a JSON list.
 */

/**
 * Sums must be exact, and a sum of doubles is not. So each number is counted in units of a power of two of which it is a
 * whole multiple, and these are summed as integers of 128 bits. Doubles have 53 bits, so that those of at least 10^-13 and
 * less than 10^15 are: whole ones of 1; others of 2^-62 where they are at least 2^-10, else of 2^-96. What is outside of
 * that is listed.
 */
export const fineBits = 62;
export const finestBits = 96;

/** Which columns are counted, each once, and how many of whose fields stand in a line. */
export interface CountedColumn {
  readonly column: string;
  /** Whether the number of its values is asked for. */
  readonly isCounted: boolean;
  readonly isSummed: boolean;
  readonly isRanked: boolean;
}

/** The columns that aggregates look at, each once. */
export function countedColumns(aggregates: readonly Aggregate[]): readonly CountedColumn[] {
  const columns = new Set(aggregates.flatMap(({ column }) => (column === undefined ? [] : [column])));
  return [...columns].map((column) => {
    const has = (...ops: readonly string[]): boolean =>
      aggregates.some((one) => one.column === column && ops.includes(one.op));
    return { column, isCounted: has('count'), isSummed: has('sum', 'avg'), isRanked: has('min', 'max') };
  });
}

/** Whether more than the number of a column's values is asked for. */
export const isAggregated = ({ isSummed, isRanked }: CountedColumn): boolean => isSummed || isRanked;

/** Where in a line the fields of a column are. */
interface ColumnPlaces {
  readonly count: number;
  readonly sums: number;
  readonly min: number;
  readonly listed: number;
}

/** How the lines of a group-by are read. */
export interface GroupForm {
  readonly columns: readonly CountedColumn[];
  readonly aggregates: readonly (Aggregate & { readonly places: ColumnPlaces | undefined })[];
  readonly fields: number;
  /** How many lists of texts there are at the end of a line. */
  readonly lists: number;
}

const rowsField = 1;

/** The form of the lines of these aggregates. */
export function groupForm(aggregates: readonly Aggregate[]): GroupForm {
  const columns = countedColumns(aggregates);
  const places = new Map<string, ColumnPlaces>();
  let next = rowsField + 1;
  for (const { column, isSummed, isRanked } of columns) {
    const count = next;
    const sums = count + 1;
    const min = sums + (isSummed ? 3 : 0);
    places.set(column, { count, sums, min, listed: 0 });
    next = min + (isRanked ? 2 : 0);
  }
  const first = next;
  for (const one of columns) {
    const known = places.get(one.column);
    if (known !== undefined && isAggregated(one)) places.set(one.column, { ...known, listed: next++ });
  }
  return {
    columns,
    aggregates: aggregates.map((one) => ({ ...one, places: places.get(one.column ?? '') })),
    fields: next,
    lists: next - first,
  };
}

/** A group: the JSON of its key, and what is known of its aggregates. */
export interface Group {
  readonly key: string;
  readonly partials: Partial[];
}

/** The group of a line without its end. */
export function groupOfLine(line: string, { aggregates }: GroupForm): Group {
  const fields = line.split('\t');
  const partials = aggregates.map(({ op, column, places }) => {
    const partial = noValues();
    if (column === undefined || places === undefined) partial.count = Number(fields[rowsField]);
    else if (op === 'count') partial.count = Number(fields[places.count]);
    else addColumn(partial, { op, column, places, fields });
    return partial;
  });
  return { key: fields[0] ?? '', partials };
}

function addColumn(
  partial: Partial,
  of: {
    readonly op: Aggregate['op'];
    readonly column: string;
    readonly places: ColumnPlaces;
    readonly fields: readonly string[];
  },
): void {
  const { op, column, places, fields } = of;
  const listed = fields[places.listed] ?? '';
  if (listed !== '') for (const text of JSON.parse(listed) as unknown[]) addValue(partial, op, text, column);
  if (op === 'min' || op === 'max') {
    const extreme = fields[op === 'min' ? places.min : places.min + 1] ?? '';
    if (extreme !== '') addValue(partial, op, Number(extreme), column);
  } else {
    const fine = fields[places.sums + 1] ?? '';
    const finest = fields[places.sums + 2] ?? '';
    addUnits(partial.parts, fields[places.sums] ?? '', 0);
    addUnits(partial.parts, fine, fineBits);
    addUnits(partial.parts, finest, finestBits);
    partial.isWhole &&= fine === '' && finest === '';
  }
  partial.count = Number(fields[places.count]);
}

/** Digits of whole numbers that doubles hold, whatever they are. */
const safeDigits = 15;

/** Adds a whole number of units of 2^-bits, exactly. */
function addUnits(sum: ExactSum, units: string, bits: number): void {
  if (units === '') return;
  if (units.length <= safeDigits) addExactly(sum, Number(units) * 2 ** -bits);
  else addWhole(sum, BigInt(units), bits);
}

const readBytes = 256 * 1024;

/** The lines of files, in blocks of whole lines, each of which ends with "\n". */
export async function* wholeLines(paths: readonly string[]): AsyncGenerator<Buffer> {
  for (const path of paths) {
    const cutter = new LineCutter(path, limits.recordBytes, 0);
    const chunks = createReadStream(path, { highWaterMark: readBytes }) as AsyncIterable<Buffer>;
    for await (const chunk of chunks) {
      for (const { bytes } of cutter.push(chunk)) yield bytes;
    }
    const rest = cutter.rest();
    if (rest !== undefined) yield rest.bytes;
  }
}

/** The groups of files, in batches. */
export async function* groupsOf(paths: readonly string[], form: GroupForm): AsyncGenerator<readonly Group[]> {
  for await (const bytes of wholeLines(paths)) {
    const lines = bytes.toString().split('\n');
    lines.pop();
    yield lines.map((line) => groupOfLine(line, form));
  }
}
