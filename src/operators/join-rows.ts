import { BadRecordError } from '../worker/operator.ts';
import type { Row, TaskOutput } from '../worker/operator.ts';
import { ownValue } from '../lib/own.ts';
import { csvLine, csvValue } from '../worker/csv-text.ts';
import type { JoinOutputOptions, JoinSideOptions } from './join-options.ts';
import { cellOf } from './rows.ts';

/** The key under which a side announces its columns; no row has it, since the JSON of a key is never empty. */
export const schemaKey = Buffer.alloc(0);

/** The key of a row as bytes that are equal where keys are; undefined for NULL, which equals nothing. */
export function joinKeyOf(
  row: Row,
  { key, keysAsText }: JoinSideOptions,
  format: string,
): string | undefined {
  const value = cellOf(row, key, format);
  if (value === null || value === undefined) return undefined;
  if (!keysAsText || typeof value === 'string') return JSON.stringify(value);
  return JSON.stringify(JSON.stringify(value));
}

/** The columns of a row that are kept. */
export function keptOf(row: Row, { columns }: JoinSideOptions, format: string): Row {
  if (columns === undefined) return row;
  return Object.fromEntries(columns.map((column) => [column, cellOf(row, column, format) ?? null]));
}

/** Names of the right-hand columns in the result, by their own names; undefined for the key that left has too. */
export function rightNames(
  left: readonly string[],
  right: readonly string[],
  { leftKey, rightKey }: JoinOutputOptions,
): Map<string, string | undefined> {
  const taken = new Set(left);
  const names = new Map<string, string | undefined>();
  for (const column of right) {
    if (column === rightKey && rightKey === leftKey && taken.has(leftKey)) {
      names.set(column, undefined);
      continue;
    }
    let name = column;
    // Ends: each turn makes the name longer, and there are no more names than columns.
    while (taken.has(name)) name += '_right';
    taken.add(name);
    names.set(column, name);
  }
  return names;
}

/**
 * Writes pairs of rows as one row: the columns of the left, then those of the right. A right-hand column whose
 * name is taken gets `_right` after it; the right-hand key is left out where both keys have one name. As NDJSON, a name is taken
 * only where this very left-hand row has it: a task does not know the fields of rows that other tasks read. Where the left-hand side
 * names its `columns`, every row has them, and names are the same throughout.
 */
export class JoinedRows {
  private left: readonly string[] | undefined;
  private right: readonly string[] | undefined;
  private names = new Map<string, string | undefined>();
  private namesOf = '';
  private readonly output: TaskOutput;
  private readonly options: JoinOutputOptions;

  constructor(output: TaskOutput, options: JoinOutputOptions) {
    this.output = output;
    this.options = options;
  }

  /** Tells the columns of both sides, undefined where a side has no rows; writes the header if `isFirst` part. */
  async begin(
    sides: { left: readonly string[] | undefined; right: readonly string[] | undefined },
    isFirst: boolean,
  ) {
    ({ left: this.left, right: this.right } = sides);
    const { output, header } = this.options;
    if (output !== 'csv' || !header || !isFirst || this.left === undefined || this.right === undefined)
      return;
    const names = [...rightNames(this.left, this.right, this.options).values()];
    const all = [...this.left, ...names.filter((name) => name !== undefined)];
    await this.output.write(Buffer.from(csvLine(all)), 0);
  }

  /** Writes one pair. */
  pair(left: Row, right: Row): Promise<void> | undefined {
    const line = this.options.output === 'csv' ? this.csv(left, right) : this.json(left, right);
    return this.output.write(Buffer.from(line), 1);
  }

  private json(left: Row, right: Row): string {
    const names = this.namesFor(Object.keys(left), Object.keys(right));
    const entries = Object.entries(right).flatMap(([column, value]) => {
      const name = names.get(column);
      return name === undefined ? [] : [[name, value] as const];
    });
    return `${JSON.stringify({ ...left, ...Object.fromEntries(entries) })}\n`;
  }

  private csv(left: Row, right: Row): string {
    if (this.left === undefined || this.right === undefined) throw unknownColumns();
    const names = this.namesFor(this.left, this.right);
    const rightColumns = this.right.filter((column) => names.get(column) !== undefined);
    return csvLine([...cellsOf(left, this.left, this.left), ...cellsOf(right, this.right, rightColumns)]);
  }

  /** Rows of one file have the same columns, so the names of the last pair are nearly always right. */
  private namesFor(left: readonly string[], right: readonly string[]): Map<string, string | undefined> {
    const columns = JSON.stringify([left, right]);
    if (columns !== this.namesOf) {
      this.names = rightNames(left, right, this.options);
      this.namesOf = columns;
    }
    return this.names;
  }
}

/** Why rows cannot be written as CSV before the columns of both sides are known. */
export const unknownColumns = (): BadRecordError =>
  new BadRecordError('rows of a join can be written as CSV only if the columns of both sides are known');

/** Why a row of these columns cannot be written as CSV of the known ones; undefined where it can. */
export function strangerIn(columns: readonly string[], known: readonly string[]): BadRecordError | undefined {
  const stranger = columns.find((column) => !known.includes(column));
  if (stranger === undefined) return undefined;
  return new BadRecordError(
    `the files of one side of a join have different columns: ${JSON.stringify(stranger)} is not among ${known.join(', ')}`,
  );
}

function cellsOf(row: Row, known: readonly string[], wanted: readonly string[]): string[] {
  const wrong = strangerIn(Object.keys(row), known);
  if (wrong !== undefined) throw wrong;
  return wanted.map((column) => csvValue(ownValue(row, column)));
}
