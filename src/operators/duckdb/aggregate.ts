import { join } from 'node:path';
import { limits } from '../../contracts/limits.ts';
import type { CsvBlock, TaskContext, TaskInput } from '../../worker/operator.ts';
import { isAggregated, fineBits, finestBits, groupForm } from '../group-lines.ts';
import type { CountedColumn } from '../group-lines.ts';
import type { GroupbyOptions } from '../groupby-options.ts';
import type { GroupsHere } from '../groups-here.ts';
import { Engine } from './engine.ts';
import { jsonOfText } from './json-of-text.ts';
import { copyLines } from './group-file.ts';
import type { GroupFile } from './group-file.ts';
import { stageCells } from './staged-cells.ts';
import { CsvStage, columnNumber, csvTable, textTable } from './staged-csv.ts';
import type { StagedTable } from './staged-csv.ts';

/** What a number of a group takes in its line with the tab before it, at most. */
const numberBytes = 48;

const leastNumber = '1e-13';
const mostNumber = '999999999999999';
const fineFrom = 2 ** -10;

/**
 * Partial aggregates of the CSV or the NDJSON of a task by DuckDB, of the same values as row by row, as lines in a file, whose
 * path it answers. Undefined where that cannot be: the input is neither, has no such column, or holds what only the slower way
 * can judge. What `here` takes of CSV is in no file. Throws where a group lists so many values that its line were longer than
 * `mostLineBytes`, which nobody would read.
 */
export async function aggregateByEngine(
  { inputs, scratchDir, engine: size, signal }: TaskContext,
  { key, aggregates }: GroupbyOptions,
  here: GroupsHere | undefined,
  mostLineBytes: number = limits.recordBytes,
): Promise<readonly string[] | undefined> {
  const { columns } = groupForm(aggregates);
  const isJson = inputs.every((input) => input.cells !== undefined);
  const rows = isJson
    ? jsonRows(await stageCells(inputs, { key, columns }, join(scratchDir, 'rows.lines')), columns)
    : csvRows(await stageAll(inputs, scratchDir, here), key, columns);
  if (rows === undefined || rows.queries.length === 0) return rows?.queries;
  const path = join(scratchDir, 'groups');
  const engine = await Engine.open({ scratchDir, size, signal, keepsOrder: false });
  try {
    await engine.run(copyLines(groupSql(rows, columns, mostLineBytes), path));
    return [path];
  } finally {
    engine.close();
  }
}

/** Queries of rows: keys as k0, k1 and so on, texts of the columns as t0, t1. */
interface Rows {
  readonly queries: readonly string[];
  readonly keys: readonly string[];
  /** The JSON of the list of the keys. */
  readonly json: string;
}

/** Undefined where a table lacks a column. */
function csvRows(
  tables: readonly StagedTable[] | undefined,
  key: readonly string[],
  columns: readonly CountedColumn[],
): Rows | undefined {
  const wanted = [...key, ...columns.map(({ column }) => column)];
  if (tables?.every((table) => wanted.every((column) => table.columns.includes(column))) !== true)
    return undefined;
  const queries = tables.map((table) => {
    const at = (column: string): string => columnNumber(table.columns.indexOf(column));
    const keys = key.map((column, index) => `${at(column)} AS k${String(index)}`);
    const texts = columns.map(({ column }, index) => `${at(column)} AS t${String(index)}`);
    return `SELECT ${[...keys, ...texts].join(', ')} FROM ${csvTable(table)}`;
  });
  const keys = key.map((_, index) => `k${String(index)}`);
  return { queries, keys, json: `concat('[', ${keys.map(jsonOfText).join(", ',', ")}, ']')` };
}

function jsonRows(file: GroupFile, columns: readonly CountedColumn[]): Rows {
  const table = textTable({ ...file, fields: 1 + columns.length, delimiter: '\t', hasQuotes: false });
  const texts = columns.map((_, index) => `${columnNumber(1 + index)} AS t${String(index)}`);
  const query = `SELECT ${[`${columnNumber(0)} AS k0`, ...texts].join(', ')} FROM ${table}`;
  return { queries: [query], keys: ['k0'], json: 'k0' };
}

async function stageAll(
  inputs: readonly TaskInput[],
  scratchDir: string,
  here: GroupsHere | undefined,
): Promise<readonly StagedTable[] | undefined> {
  const stage = new CsvStage(scratchDir, 'rows');
  for (const input of inputs) {
    if (input.csv === undefined) return undefined;
    for await (const block of input.csv()) {
      const rest = restOf(block, here?.take(block) ?? 0);
      if (rest !== undefined && !(await stage.add(rest))) return undefined;
    }
  }
  return stage.finish();
}

/** A block without its first records; undefined where that are all. */
function restOf(
  { bytes, columns, records }: CsvBlock,
  taken: number,
): Pick<CsvBlock, 'bytes' | 'columns'> | undefined {
  return taken < records.count ? { bytes: bytes.subarray(records.starts[taken]), columns } : undefined;
}

function groupSql(
  { queries, keys, json }: Rows,
  columns: readonly CountedColumn[],
  mostLineBytes: number,
): string {
  const numbered = columns.flatMap((one, index) => (isAggregated(one) ? [String(index)] : []));
  const casts = numbered.map((at) => `TRY_CAST(t${at} AS DOUBLE) AS v${at}`);
  // DuckDB also takes "nan", which is beyond all numbers to it, "1_000" and "+-5" for numbers.
  const numbers = numbered.map(
    (at) =>
      `CASE WHEN (v${at} = 0 OR abs(v${at}) BETWEEN ${leastNumber} AND ${mostNumber}) AND NOT contains(t${at}, '_') AND NOT contains(t${at}, '+-') THEN v${at} END AS n${at}`,
  );
  const numbersOf = ['count(*)', ...columns.flatMap(fieldsOf)];
  const fields = [...numbersOf, ...columns.flatMap(listOf)];
  const named = fields.map((field, index) => `${field} AS f${String(index)}`);
  const groups = `SELECT ${[...keys, ...named].join(', ')} FROM (SELECT ${['*', ...numbers].join(', ')} FROM (SELECT ${['*', ...casts].join(', ')} FROM (${queries.join(' UNION ALL ')}))) GROUP BY ${keys.join(', ')}`;
  const all = fields.map((_, index) => `f${String(index)}`);
  const lists = all.slice(numbersOf.length).map((list) => `coalesce(strlen(${list}::VARCHAR), 0)`);
  if (lists.length === 0) return `SELECT ${[json, ...all].join(', ')} FROM (${groups})`;
  const mostBytes = mostLineBytes - numberBytes * fields.length;
  const isTooLong = [`strlen(${json})`, ...lists].join(' + ') + ` > ${String(mostBytes)}`;
  const count = `CASE WHEN ${isTooLong} THEN error('a group has too many values that are not summed') ELSE f0 END`;
  return `SELECT ${[json, count, ...all.slice(1)].join(', ')} FROM (${groups})`;
}

/** What is asked of a column, in the order of `groupForm`. */
function fieldsOf({ isSummed, isRanked }: CountedColumn, index: number): readonly string[] {
  const at = String(index);
  const isFraction = `n${at} <> trunc(n${at})`;
  const units = (when: string, bits: number): string =>
    `sum(CASE WHEN ${isFraction} AND ${when} THEN (n${at} * ${String(2 ** bits)}::DOUBLE)::HUGEINT END)`;
  return [
    `count(*) FILTER (t${at} <> '')`,
    ...(isSummed
      ? [
          `sum(CASE WHEN n${at} = trunc(n${at}) THEN n${at}::BIGINT END)`,
          units(`abs(n${at}) >= ${String(fineFrom)}`, fineBits),
          units(`abs(n${at}) < ${String(fineFrom)}`, finestBits),
        ]
      : []),
    ...(isRanked ? [`min(n${at})`, `max(n${at})`] : []),
  ];
}

/** Texts that are no such numbers, to be looked at by themselves. */
const listOf = (column: CountedColumn, index: number): readonly string[] =>
  isAggregated(column)
    ? [`to_json(list(t${String(index)}) FILTER (t${String(index)} <> '' AND n${String(index)} IS NULL))`]
    : [];
