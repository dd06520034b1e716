import { join } from 'node:path';
import { BadInputError } from '../../worker/operator.ts';
import type { SourceFile, TaskContext, TaskInput } from '../../worker/operator.ts';
import type { Engine } from './engine.ts';
import { orBadInput, sqlName, sqlText } from './engine.ts';
import { receiveFiles } from './parquet-pieces.ts';
import { parquetRows } from './source-parquet.ts';
import { columnNumber, CsvStage, csvTable, type StagedTable } from './staged-csv.ts';
import { ndjsonQuery } from './staged-ndjson.ts';
import type { ColumnTypes } from './staged-ndjson.ts';

/** A table with a column that the first file of all has not, which other tasks go by. */
export interface WiderTable {
  readonly name: string;
  readonly stranger: string;
  readonly known: readonly string[];
  /** What it is with the known columns alone. */
  readonly narrowQuery: string;
}

/** Makes an input of a task a view of that name: CSV as texts, NDJSON by what its values are, stages as they were. */
export async function addTable(
  engine: Engine,
  input: TaskInput,
  place: TablePlace,
): Promise<WiderTable | undefined> {
  const { name, file, dir, columns = {} } = place;
  const isTyped = Object.keys(columns).length > 0;
  if (isTyped && input.format !== 'ndjson')
    throw new BadInputError(`options.columns.${name} is for NDJSON alone: cast the columns in the query`);
  const isCsv = input.kind !== 'stage' && input.files === undefined && input.format === 'csv';
  const first = isCsv && place.hasOthers ? await input.firstColumns?.() : undefined;
  const csv = isCsv ? await csvTables(input, place, first) : [];
  const query = isCsv
    ? csvQuery(csv)
    : input.kind === 'stage'
      ? await receivedQuery(engine, input, place)
      : input.files !== undefined
        ? await sourceQuery(engine, input.files, place)
        : await ndjsonQuery(engine, input, { name, path: join(dir, `${file}.ndjson`), given: columns });
  await orBadInput(isTyped ? `options.columns.${name}` : `the rows of ${name} make no table`, () =>
    engine.run(`CREATE TEMP VIEW ${sqlName(name)} AS ${query}`),
  );
  const stranger = first === undefined ? undefined : strangerOf(csv, first);
  if (first === undefined || stranger === undefined) return undefined;
  const narrowQuery = `SELECT ${first.map(sqlName).join(', ')} FROM (${query})`;
  return { name, stranger, known: first, narrowQuery };
}

/** A column that these do not know; names that differ in case alone are one to DuckDB. */
function strangerOf(tables: readonly StagedTable[], known: readonly string[]): string | undefined {
  const names = new Set(known.map((name) => name.toLowerCase()));
  return tables.flatMap(({ columns }) => columns).find((name) => !names.has(name.toLowerCase()));
}

/** Where a table comes from, and what it is called. */
interface TablePlace {
  readonly name: string;
  /** Of its files in `dir`, without what follows the dot. */
  readonly file: string;
  readonly dir: string;
  /** Of NDJSON: columns that it has at all events, of these types. */
  readonly columns: ColumnTypes | undefined;
  /** Whether other tasks read other files of it. */
  readonly hasOthers: boolean;
  readonly tally: TaskContext['tally'];
}

function sourceQuery(
  engine: Engine,
  files: readonly SourceFile[],
  { name, file, dir, tally }: TablePlace,
): Promise<string> {
  if (files.length === 0) throw new BadInputError(`the files of ${name} are empty: they name no columns`);
  return parquetRows(engine, files, { name: file, dir, tally });
}

async function receivedQuery(engine: Engine, input: TaskInput, place: TablePlace): Promise<string> {
  const { name, file, dir, tally } = place;
  const { paths, pieces } = await receiveFiles(input, dir, file);
  if (paths.length === 0) throw new BadInputError(`stage ${input.stage ?? name} has sent no table`);
  const list = `[${paths.map(sqlText).join(', ')}]`;
  if (tally !== undefined) {
    const counted = engine.rows(`SELECT sum(num_rows)::DOUBLE FROM parquet_file_metadata(${list})`);
    for await (const [[rows] = []] of counted) tally({ in: Number(rows) - pieces });
  }
  return `SELECT * FROM read_parquet(${list}, union_by_name = true, hive_partitioning = false)`;
}

async function csvTables(
  input: TaskInput,
  { name, file, dir }: TablePlace,
  first: readonly string[] | undefined,
): Promise<readonly StagedTable[]> {
  const stage = new CsvStage(dir, file);
  if (input.csv === undefined) throw new BadInputError(`the input ${name} cannot be read as CSV`);
  // Another task may have the first file: without its columns each task's `*` would be those of its own files, in their order.
  if (first !== undefined) await stage.add({ bytes: Buffer.alloc(0), columns: first });
  for await (const block of input.csv())
    if (!(await stage.add(block)))
      throw new BadInputError(`the files of ${name} have too many lists of columns`);
  const tables = await stage.finish();
  if (tables.length === 0) throw new BadInputError(`the files of ${name} are empty: they name no columns`);
  return tables;
}

function csvQuery(tables: readonly StagedTable[]): string {
  return tables
    .map((table) => {
      const columns = table.columns.map((column, index) => `${columnNumber(index)} AS ${sqlName(column)}`);
      return `SELECT ${columns.join(', ')} FROM ${csvTable(table)}`;
    })
    .join(' UNION ALL BY NAME ');
}
