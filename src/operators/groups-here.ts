import type { CsvBlock } from '../worker/operator.ts';
import { addValue, canonical, mergePartial, noValues } from './aggregates.ts';
import type { Partial } from './aggregates.ts';
import { CellBytes, findCells, textOfCell } from './csv-cells.ts';
import { addExactly } from './exact-sum.ts';
import type { ExactSum } from './exact-sum.ts';
import { countedColumns, isAggregated } from './group-lines.ts';
import type { CountedColumn, Group } from './group-lines.ts';
import type { GroupbyOptions } from './groupby-options.ts';
import { byteHash, ByteTable } from './byte-table.ts';

/*
 * Groups of CSV as bytes, in one pass over what was read and without a text of any cell, as long as they are few: their state
 * then stays in a cache of the processor, and no engine has to be loaded.
 */

const mostKeyBytes = 256 * 1024;
const usualKeyBytes = 32;
/** Of a number with more digits a double keeps not each. */
const mostDigits = 15;
const powers = Array.from({ length: mostDigits + 1 }, (_, digits) => 10 ** digits);

/*
 * Sums are exact: a number is its whole part and two halves of a fraction, in units of 2^-30 and 2^-60, which doubles sum
 * without rounding until they are folded into an `ExactSum`. Numbers that are smaller have finer fractions, and go there at once.
 */
const halfUnit = 2 ** 30;
const leastNumber = 2 ** -8;
const foldAbove = 2 ** 52;
/** Halves of so many numbers can be summed. */
const foldEvery = 2 ** 22;

/** What is kept of a column of a group, by place: how many values there are, the sums, the extremes, and how many are no whole numbers. */
const count = 0;
const wholes = 1;
const highs = 2;
const lows = 3;
const least = 4;
const most = 5;
const fractions = 6;
const width = 7;

/** A column that is counted, and what is known of it by group. */
interface Counted extends CountedColumn {
  readonly isNumber: boolean;
  readonly state: Float64Array;
  readonly sums: ExactSum[];
}

/** The number that bytes [start, end) plainly are, NaN where they must be looked at as a text. */
function plainNumber(bytes: Buffer, start: number, end: number): number {
  const isNegative = bytes[start] === 0x2d;
  let number = 0;
  let digits = 0;
  let behind = -1;
  for (let at = isNegative ? start + 1 : start; at < end; at++) {
    const byte = bytes[at] ?? 0;
    if (byte >= 0x30 && byte <= 0x39) {
      number = number * 10 + byte - 0x30;
      digits++;
      if (behind >= 0) behind++;
    } else if (byte === 0x2e && behind < 0) behind = 0;
    else return Number.NaN;
  }
  if (digits === 0 || digits > mostDigits) return Number.NaN;
  // Both are exact as doubles, so that it is rounded once, as it is where the text is read.
  const value = behind > 0 ? number / (powers[behind] ?? 1) : number;
  return isNegative && value !== 0 ? -value : value;
}

/** The groups of one task's CSV, as far as they are few. */
export class GroupsHere {
  readonly #options: GroupbyOptions;
  readonly #columns: readonly Counted[];
  readonly #most: number;
  readonly #table: ByteTable;
  readonly #keys: string[] = [];
  readonly #rows: Float64Array;
  /** Of what is no plain number, by aggregate. */
  readonly #odd: (Partial[] | undefined)[] = [];
  readonly #cell = new CellBytes();
  readonly #joint = new CellBytes();
  #keyBytes = 0;
  #unfolded = 0;
  #places = new Int32Array(64);
  #isFull = false;

  /** Takes up to `mostGroups` groups. */
  constructor(options: GroupbyOptions, mostGroups: number) {
    this.#options = options;
    this.#most = mostGroups;
    this.#table = new ByteTable(mostGroups, mostGroups * usualKeyBytes);
    this.#rows = new Float64Array(mostGroups);
    this.#columns = countedColumns(options.aggregates).map((one) => {
      const state = new Float64Array(width * mostGroups);
      for (let group = 0; group < mostGroups; group++) {
        state[width * group + least] = Infinity;
        state[width * group + most] = -Infinity;
      }
      return { ...one, isNumber: isAggregated(one), state, sums: [] };
    });
  }

  /** Takes the first records of a block and answers how many; fewer than all where groups become many, and then no more. */
  take({ bytes, records, columns }: CsvBlock): number {
    const keys = this.#options.key.map((column) => columns.indexOf(column));
    const values = this.#columns.map(({ column }) => columns.indexOf(column));
    if (this.#isFull || keys.includes(-1) || values.includes(-1)) return 0;
    if (this.#places.length <= columns.length) this.#places = new Int32Array(2 * columns.length);
    const last = Math.max(...keys, ...values);
    for (let record = 0; record < records.count; record++) {
      findCells(bytes, records.starts[record] ?? 0, records.ends[record] ?? 0, this.#places, last);
      const group = this.#groupOf(bytes, keys);
      if (group < 0) {
        this.#isFull = true;
        return record;
      }
      this.#rows[group] = (this.#rows[group] ?? 0) + 1;
      for (let index = 0; index < values.length; index++)
        this.#addCell(this.#columns[index], group, bytes, values[index] ?? 0);
      if (++this.#unfolded === foldEvery) this.#foldAll();
    }
    return records.count;
  }

  /** All groups, each once. */
  groups(): readonly Group[] {
    this.#foldAll();
    return this.#keys.map((key, group) => ({ key, partials: this.#partialsOf(group) }));
  }

  /** The number of the record's group; -1 where there is no room for another. */
  #groupOf(bytes: Buffer, keys: readonly number[]): number {
    const key =
      keys.length === 1 ? this.#takeCell(this.#cell, bytes, keys[0] ?? 0) : this.#jointKey(bytes, keys);
    const hash = byteHash(key);
    const table = this.#table;
    const entry = table.find(table.slotOf(hash), hash, key);
    if (entry !== 0) return table.bytes.readInt32LE(table.textStart(entry));
    const size = key.end - key.start;
    if (this.#keys.length === this.#most || this.#keyBytes + size > mostKeyBytes) return -1;
    this.#keyBytes += size;
    const number = Buffer.alloc(4);
    number.writeInt32LE(this.#keys.length);
    table.add(key, number);
    const texts = keys.map((cell) => {
      const [start, end] = [this.#places[cell] ?? 0, (this.#places[cell + 1] ?? 0) - 1];
      return textOfCell(bytes, start, end);
    });
    return this.#keys.push(JSON.stringify(texts)) - 1;
  }

  /** Several cells as one key: each behind its length. */
  #jointKey(bytes: Buffer, keys: readonly number[]): CellBytes {
    const joint = this.#joint;
    let at = 0;
    for (const key of keys) {
      const cell = this.#takeCell(this.#cell, bytes, key);
      const size = cell.end - cell.start;
      if (joint.bytes.length < at + size + 4) joint.grow(at + size + 4);
      at = joint.bytes.writeInt32LE(size, at);
      at += cell.bytes.copy(joint.bytes, at, cell.start, cell.end);
    }
    joint.end = at;
    return joint;
  }

  #takeCell(cell: CellBytes, bytes: Buffer, index: number): CellBytes {
    cell.take(bytes, this.#places[index] ?? 0, (this.#places[index + 1] ?? 0) - 1);
    return cell;
  }

  #addCell(column: Counted | undefined, group: number, bytes: Buffer, index: number): void {
    if (column === undefined) return;
    const cell = this.#takeCell(this.#cell, bytes, index);
    if (cell.start === cell.end) return;
    const { state, isNumber, isSummed } = column;
    const at = width * group;
    if (isNumber) {
      const value = plainNumber(cell.bytes, cell.start, cell.end);
      if (Number.isNaN(value)) {
        this.#addOdd(column.column, group, cell.bytes.toString('utf8', cell.start, cell.end));
        return;
      }
      if (value < (state[at + least] ?? 0)) state[at + least] = value;
      if (value > (state[at + most] ?? 0)) state[at + most] = value;
      if (isSummed) this.#addNumber(column, group, value);
    }
    state[at + count] = (state[at + count] ?? 0) + 1;
  }

  #addNumber(column: Counted, group: number, value: number): void {
    const { state } = column;
    const at = width * group;
    const whole = Math.trunc(value);
    if (whole === value) {
      state[at + wholes] = (state[at + wholes] ?? 0) + value;
      if (Math.abs(state[at + wholes] ?? 0) > foldAbove) fold(column, group);
      return;
    }
    state[at + fractions] = (state[at + fractions] ?? 0) + 1;
    if (Math.abs(value) < leastNumber) {
      addExactly((column.sums[group] ??= []), value);
      return;
    }
    const fraction = (value - whole) * halfUnit;
    const high = Math.trunc(fraction);
    state[at + wholes] = (state[at + wholes] ?? 0) + whole;
    state[at + highs] = (state[at + highs] ?? 0) + high;
    state[at + lows] = (state[at + lows] ?? 0) + (fraction - high) * halfUnit;
    if (Math.abs(state[at + wholes] ?? 0) > foldAbove) fold(column, group);
  }

  /** Throws `BadValueError` where a text is no number. */
  #addOdd(column: string, group: number, text: string): void {
    const { aggregates } = this.#options;
    const partials = (this.#odd[group] ??= aggregates.map(noValues));
    for (const [index, one] of aggregates.entries()) {
      const partial = partials[index];
      if (one.column === column && partial !== undefined) addValue(partial, one.op, text, column);
    }
  }

  #foldAll(): void {
    this.#unfolded = 0;
    for (const column of this.#columns)
      for (let group = 0; group < this.#keys.length; group++) fold(column, group);
  }

  #partialsOf(group: number): Partial[] {
    return this.#options.aggregates.map(({ op, column }, index) => {
      const partial = this.#odd[group]?.[index] ?? noValues();
      const counted = this.#columns.find((one) => one.column === column);
      if (counted === undefined) partial.count += this.#rows[group] ?? 0;
      else mergePartial(partial, op, plainPartial(counted, group, op));
      return partial;
    });
  }
}

/** Takes the sums of a group, as doubles hold them, into its exact sum. */
function fold({ state, sums }: Counted, group: number): void {
  const sum = (sums[group] ??= []);
  for (const [place, unit] of [
    [wholes, 1],
    [highs, 1 / halfUnit],
    [lows, 1 / halfUnit / halfUnit],
  ] as const) {
    const value = state[width * group + place] ?? 0;
    if (value !== 0) addExactly(sum, value * unit);
    state[width * group + place] = 0;
  }
}

/** What the plain numbers of a group are to one aggregate. */
function plainPartial({ state, sums }: Counted, group: number, op: string): Partial {
  const at = width * group;
  const seen = { ...noValues(), count: state[at + count] ?? 0 };
  if (op === 'sum' || op === 'avg')
    return { ...seen, parts: sums[group] ?? [], isWhole: state[at + fractions] === 0 };
  const extreme = op === 'min' ? state[at + least] : op === 'max' ? state[at + most] : undefined;
  return extreme === undefined || !Number.isFinite(extreme) ? seen : { ...seen, extreme: canonical(extreme) };
}
