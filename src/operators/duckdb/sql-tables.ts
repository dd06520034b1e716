import { join } from 'node:path';
import { Readable } from 'node:stream';
import { BadInputError } from '../../worker/operator.ts';
import type { SourceFile, TaskContext, TaskInput } from '../../worker/operator.ts';
import type { Engine } from './engine.ts';
import { orBadInput, sqlName, sqlText } from './engine.ts';
import { receiveFiles } from './parquet-pieces.ts';
import { parquetHead, parquetRows } from './source-parquet.ts';
import { columnNumber, CsvStage, csvTable, type StagedTable } from './staged-csv.ts';
import { ndjsonQuery } from './staged-ndjson.ts';
import type { ColumnTypes } from './staged-ndjson.ts';

/** A table with a column that the first file of all has not, which other tasks go by. */
export interface WiderTable {
  readonly name: string;
  readonly known: readonly string[];
  /** The columns that the first file has not; at least one. */
  readonly strangers: readonly string[];
  readonly isNdjson?: boolean;
  /** What gives its rows with all columns. */
  readonly query: string;
}

/** Makes an input of a task a view of that name: CSV as texts, NDJSON by what its values are, stages as they were. */
export async function addTable(
  engine: Engine,
  input: TaskInput,
  place: TablePlace,
): Promise<WiderTable | undefined> {
  const { name, columns = {} } = place;
  const isTyped = Object.keys(columns).length > 0;
  if (isTyped && input.format !== 'ndjson')
    throw new BadInputError(`options.columns.${name} is for NDJSON alone: cast the columns in the query`);
  const isCsv = input.kind !== 'stage' && input.files === undefined && input.format === 'csv';
  const first = isCsv && place.hasOthers ? await input.firstColumns?.() : undefined;
  const csv = isCsv ? await csvTables(input, place, first) : [];
  if (input.kind !== 'stage' && input.files !== undefined) return addParquet(engine, input, place);
  if (!isCsv && input.kind !== 'stage') return addNdjson(engine, input, place);
  const query = isCsv ? csvQuery(csv) : await receivedQuery(engine, input, place);
  await makeView(engine, place, query);
  return first === undefined
    ? undefined
    : widerThan(
        first,
        csv.flatMap((table) => table.columns),
        { name, query },
      );
}

/** Makes a table what this query gives. */
const makeView = (
  engine: Engine,
  { name, columns = {} }: Pick<TablePlace, 'name' | 'columns'>,
  query: string,
): Promise<unknown> =>
  orBadInput(
    Object.keys(columns).length > 0 ? `options.columns.${name}` : `the rows of ${name} make no table`,
    () => engine.run(`CREATE OR REPLACE TEMP VIEW ${sqlName(name)} AS ${query}`),
  );

/** A table of these columns beside those of the first file of all; undefined where it has no others. */
function widerThan(
  known: readonly string[],
  own: readonly string[],
  { name, query }: { readonly name: string; readonly query: string },
): WiderTable | undefined {
  // Names that differ in case alone are one to DuckDB, and files of one task may share them.
  const names = new Set(known.map((column) => column.toLowerCase()));
  const others = own.map((column) => [column.toLowerCase(), column] as const);
  const strangers = [...new Map(others.filter(([key]) => !names.has(key))).values()];
  return strangers.length === 0 ? undefined : { name, known, strangers, query };
}

/** Files of Parquet as a view: the columns of the first file of all in its order, then those that it has not. */
async function addParquet(
  engine: Engine,
  { files = [], firstFile }: TaskInput,
  place: TablePlace,
): Promise<WiderTable | undefined> {
  const { file, dir } = place;
  const own = await sourceQuery(engine, files, place);
  await makeView(engine, place, own);
  // Most often all tasks read pieces of one file.
  const isAlone = files.every(({ uri }) => uri === firstFile?.uri);
  if (firstFile === undefined || isAlone || !place.hasOthers) return undefined;
  const head = await parquetHead(engine, firstFile, join(dir, `${file}-first.parquet`));
  const first = await columnsOf(engine, head);
  return addBehind(engine, { head, first }, { place, own });
}

/**
 * NDJSON as a view: of a task's own records. Where others write rows of one table with it, the columns with which the first file of
 * all begins come first, in its order, then those that it has not.
 */
async function addNdjson(
  engine: Engine,
  input: TaskInput,
  place: TablePlace,
): Promise<WiderTable | undefined> {
  const { name, file, dir, columns: given = {} } = place;
  const firstRows = place.hasOthers && place.isOfOneTable ? await input.firstRows?.() : undefined;
  const path = join(dir, `${file}.ndjson`);
  if (firstRows === undefined) {
    const { query } = await ndjsonQuery(engine, input, { name, path, given });
    await makeView(engine, place, query);
    return undefined;
  }
  // What is bad in it is for the task to tell that reads it.
  const begin = { rows: () => Readable.from([firstRows]), onBadValue: () => undefined };
  const headPath = join(dir, `${file}-first.ndjson`);
  const head = await ndjsonQuery(engine, begin, { name, path: headPath, given });
  const first = head.namesColumns ? await columnsOf(engine, head.query) : [];
  const own = await ndjsonQuery(engine, input, { name, path, given, otherwise: Object.fromEntries(first) });
  await makeView(engine, place, own.query);
  if (!own.namesColumns && first.length === 0) return undefined;
  const none = `SELECT * FROM (${head.query}) LIMIT 0`;
  const there = await columnsOf(engine, own.query);
  const nameThere = new Set(there.map(([column]) => column.toLowerCase()));
  // Where DuckDB makes one map of its records: null would stand for values that they have.
  const isHidden = (column: string): boolean => own.names.has(column) && !nameThere.has(column.toLowerCase());
  const shown = first.filter(([column]) => !isHidden(column));
  const wider = await addBehind(engine, { head: none, first: shown }, { place, own: own.query });
  return wider === undefined ? undefined : { ...wider, isNdjson: true };
}

interface FirstFile {
  /** Gives no row. */
  readonly head: string;
  readonly first: readonly Column[];
}

/** Makes a view, which is there as what `own` gives, one with the columns of the first file before its others. */
async function addBehind(
  engine: Engine,
  { head, first }: FirstFile,
  { place, own }: { readonly place: TablePlace; readonly own: string },
): Promise<WiderTable | undefined> {
  const { name } = place;
  const there = await columnsOf(engine, `SELECT * FROM ${sqlName(name)}`);
  const nameThere = new Map(there.map(([column]) => [column.toLowerCase(), column]));
  const known = first.map(([column]) => column);
  const told = new Set(known.map((column) => column.toLowerCase()));
  const columns = [
    // Its own type, where it has the column: rows are written as they were without a look at that file.
    ...first.map(([column, type]) => {
      const mine = nameThere.get(column.toLowerCase());
      if (mine !== undefined) return `${sqlName(mine)} AS ${sqlName(column)}`;
      // The text of a struct whose fields have no names, as DuckDB writes a UNION, is no type that can be given.
      const none = type.includes('STRUCT(') ? `(SELECT ${sqlName(column)} FROM (${head}))` : `NULL::${type}`;
      return `${none} AS ${sqlName(column)}`;
    }),
    ...there.flatMap(([column]) => (told.has(column.toLowerCase()) ? [] : [sqlName(column)])),
  ];
  const query = `SELECT ${columns.join(', ')} FROM (${own})`;
  await makeView(engine, place, query);
  return widerThan(
    known,
    there.map(([column]) => column),
    { name, query },
  );
}

type Column = readonly [name: string, type: string];

/** Names and types of what a query gives. */
async function columnsOf(engine: Engine, query: string): Promise<readonly Column[]> {
  const found: Column[] = [];
  for await (const rows of engine.rows(`SELECT column_name, column_type FROM (DESCRIBE ${query})`))
    found.push(...rows.map(([name, type]) => [String(name), String(type)] as const));
  return found;
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
  /** Whether what tasks write is one table only where all have the same columns, in one order. */
  readonly isOfOneTable: boolean;
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
