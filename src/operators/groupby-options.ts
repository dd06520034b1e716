import { flagOption, onlyOptions, textsOption, wholeOption, wrongOption } from './options.ts';
import type { Options } from './options.ts';

const aggregateOps = ['count', 'sum', 'min', 'max', 'avg'] as const;
export type AggregateOp = (typeof aggregateOps)[number];

/** An aggregate as specs write it. `count` without a column counts rows; the others need a column. */
export interface AggregateSpec {
  readonly op: AggregateOp;
  readonly column?: string;
  /** Name of the result; `count`, or `<op>_<column>` where it is left out. */
  readonly as?: string;
}

/** An aggregate with its name settled. */
export interface Aggregate {
  readonly op: AggregateOp;
  readonly column: string | undefined;
  readonly name: string;
}

/** What both halves of a group-by share. */
export interface GroupbyOptions {
  readonly key: readonly string[];
  readonly aggregates: readonly Aggregate[];
}

const maxAggregates = 100;

/** Reads the options of groupby-map and groupby-reduce; throws InvalidInputError where they are wrong. */
export function groupbyOptions(options: Options, more: readonly string[] = []): GroupbyOptions {
  onlyOptions(options, ['key', 'aggregates', ...more]);
  const key = typeof options['key'] === 'string' ? [options['key']] : textsOption(options, 'key');
  if (key === undefined) throw wrongOption('key', 'a column or a list of columns');
  const list = options['aggregates'];
  if (!Array.isArray(list) || list.length === 0 || list.length > maxAggregates) {
    throw wrongOption(
      'aggregates',
      `a list of 1 to ${String(maxAggregates)} such as { "op": "sum", "column": "price" }`,
    );
  }
  const aggregates = list.map((item: unknown, at) => aggregateOf(item, `aggregates.${String(at)}`));
  const names = [...key, ...aggregates.map(({ name }) => name)];
  const twice = aggregates.findIndex(({ name }) => names.indexOf(name) !== names.lastIndexOf(name));
  if (twice >= 0)
    throw wrongOption(`aggregates.${String(twice)}.as`, 'a name that no other column of the result has');
  return { key, aggregates };
}

function aggregateOf(item: unknown, path: string): Aggregate {
  if (typeof item !== 'object' || item === null) throw wrongOption(path, 'an object with "op"');
  const { op, column, as } = item as Options;
  const known = aggregateOps.find((name) => name === op);
  if (known === undefined) throw wrongOption(`${path}.op`, `one of ${aggregateOps.join(', ')}`);
  if (column !== undefined && typeof column !== 'string')
    throw wrongOption(`${path}.column`, 'the name of a column');
  if (column === undefined && known !== 'count')
    throw wrongOption(`${path}.column`, `the column to take ${known} of`);
  if (as !== undefined && typeof as !== 'string') throw wrongOption(`${path}.as`, 'a name');
  return { op: known, column, name: as ?? (column === undefined ? known : `${known}_${column}`) };
}

/** How rows are written: format, and whether the first part of a CSV output begins with the column names. */
export interface RowOutputOptions {
  readonly output: 'csv' | 'ndjson';
  readonly header: boolean;
}

/** Names of the options that `rowOutputOptions` reads. */
export const rowOutputNames = ['output', 'header'] as const;

/** Reads `output` (ndjson where absent) and `header` (true where absent). */
export function rowOutputOptions(options: Options): RowOutputOptions {
  const output = options['output'] ?? 'ndjson';
  if (output !== 'csv' && output !== 'ndjson') throw wrongOption('output', '"csv" or "ndjson"');
  return { output, header: flagOption(options, 'header', true) };
}

/** What a map half takes besides. */
export const groupbyMapNames = ['maxHeldGroups'] as const;
/** So few that sending them one by one costs little where there are more after all. */
const mostHeldGroups = 1024;

/** Groups of CSV that a task holds itself; where there are more an engine is asked. */
export const heldGroupsOption = (options: Options): number =>
  wholeOption(options, 'maxHeldGroups', { min: 0, max: mostHeldGroups, fallback: mostHeldGroups });
