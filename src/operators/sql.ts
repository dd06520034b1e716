import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { StoreUnavailableError } from '../contracts/errors.ts';
import { tableNames } from '../contracts/table-names.ts';
import { BadInputError, OutOfMemoryError } from '../worker/operator.ts';
import type { Operator, TaskContext } from '../worker/operator.ts';
import { Engine, firstLineOf, sqlName, sqlText } from './duckdb/engine.ts';
import { sendFile } from './duckdb/parquet-pieces.ts';
import { addTable, type WiderTable } from './duckdb/sql-tables.ts';
import type { ColumnTypes } from './duckdb/staged-ndjson.ts';
import { putOut } from './duckdb/written-file.ts';
import { flagOption, onlyOptions, textOption, textsOption, wrongOption } from './options.ts';
import type { Options } from './options.ts';

const formats = ['csv', 'ndjson', 'parquet'] as const;
type Format = (typeof formats)[number];

interface SqlOptions {
  readonly query: string;
  /** Names of the inputs as tables, in their order. */
  readonly tables: readonly string[] | undefined;
  /** By the names of tables that are NDJSON: columns that they have whatever a task reads of them, and their types. */
  readonly columns: Readonly<Record<string, ColumnTypes>>;
  /** Rows that are alike in these columns go to one task of the next stage. */
  readonly partitionBy: readonly string[] | undefined;
  readonly output: Format | undefined;
  readonly header: boolean;
}

const longestQuery = 64 * 1024;
const oneSelect = 'one SELECT, of at most 65536 characters';
/** How a query begins, behind any comments: what it does is judged by DuckDB itself, before it runs. */
const queryStart = /^(?:\(|(?:select|with|from|values)\b)/i;
const partitionColumn = 'outrider partition';
const noColumn = 'outrider column';

function sqlOptions(options: Options): SqlOptions {
  onlyOptions(options, ['query', 'tables', 'columns', 'partitionBy', 'output', 'header']);
  const query = textOption(options, 'query', oneSelect);
  if (query.length > longestQuery || !queryStart.test(behindComments(query)))
    throw wrongOption('query', oneSelect);
  const given = options['output'];
  const output = formats.find((format) => format === given);
  if (given !== undefined && output === undefined)
    throw wrongOption('output', `one of ${formats.join(', ')}`);
  return {
    query: query.trim().replace(/;$/, ''),
    tables: textsOption(options, 'tables'),
    columns: columnsOption(options['columns'] ?? {}),
    partitionBy: textsOption(options, 'partitionBy'),
    output,
    header: flagOption(options, 'header', true),
  };
}

/**
 * What follows the white space and comments at the start of a query; comments in stars nest, as DuckDB's do. Character by
 * character: a regular expression that tries where a comment ends may take for ever over a long query of comments.
 */
function behindComments(query: string): string {
  let depth = 0;
  let at = 0;
  while (at < query.length) {
    const two = query.slice(at, at + 2);
    if (two === '/*' || (two === '*/' && depth > 0)) {
      depth += two === '/*' ? 1 : -1;
      at += 2;
    } else if (depth > 0 || two.trimStart().length < two.length) {
      at += 1;
    } else if (two === '--') {
      const end = query.indexOf('\n', at);
      at = end < 0 ? query.length : end + 1;
    } else break;
  }
  return query.slice(at);
}

function columnsOption(given: unknown): Readonly<Record<string, ColumnTypes>> {
  const isObject = (value: unknown): value is object =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  const isTypes = (value: unknown): value is ColumnTypes =>
    isObject(value) &&
    Object.entries(value).every(([name, type]) => name !== '' && typeof type === 'string' && type !== '');
  const isColumns = (value: unknown): value is Record<string, ColumnTypes> =>
    isObject(value) && Object.values(value).every(isTypes);
  if (isColumns(given)) return given;
  throw wrongOption('columns', 'types by names of columns, by names of tables: {"input": {"id": "BIGINT"}}');
}

/**
 * A `SELECT` over the inputs of a task, each of them a table: by the names in `tables`, else a stage by its own name and
 * files as `input`, `input2` and so on. It can read nothing else, and write nothing. Between stages rows travel as
 * Parquet, by `partitionBy`; the final stage writes `output`.
 */
export const sql: Operator = {
  check(options) {
    sqlOptions(options);
  },
  async run(context) {
    const { inputs, scratchDir: dir, engine: size, signal, tally } = context;
    const options = sqlOptions(context.options);
    const engine = await Engine.open({ scratchDir: dir, size, signal });
    try {
      const names = tablesOf(context, options.tables);
      for (const table of Object.keys(options.columns))
        if (!names.includes(table))
          throw wrongOption(`columns.${table}`, `the name of a table: ${names.join(', ')}`);
      const wider: WiderTable[] = [];
      for (const [index, input] of inputs.entries()) {
        const table = await addTable(engine, input, {
          name: names[index] ?? '',
          file: `table${String(index)}`,
          dir,
          columns: options.columns[names[index] ?? ''],
          hasOthers: context.task > 0 || (context.tasks ?? 1) > 1,
          // Other forms say with each row, or part, what its columns are.
          isOfOneTable: options.output === 'csv',
          tally,
        });
        if (table !== undefined) wider.push(table);
      }
      await asked(context, async () => {
        const { count, isSelect } = await engine.statementsOf(options.query);
        if (count !== 1 || !isSelect) throw new BadInputError(`it must be ${oneSelect}`);
      });
      if (options.output === 'csv') await narrow(engine, context, wider, options.query);
      if (context.isFinal === false && (options.output ?? 'parquet') === 'parquet')
        await sendPartitions(engine, context, options);
      else await writeText(engine, context, options);
    } finally {
      engine.close();
    }
  },
};

/**
 * Leaves out what the first file of all does not know and the query does not name: a task that read such a file would write rows
 * of other columns than the header that another task writes. Throws where the query's result had them, as by `*`.
 */
async function narrow(
  engine: Engine,
  context: TaskContext,
  wider: readonly WiderTable[],
  query: string,
): Promise<void> {
  const columns = (): Promise<string> =>
    asked(context, async () => {
      const found: unknown[] = [];
      for await (const rows of engine.rows(`SELECT column_name, column_type FROM (DESCRIBE\n${query}\n)`))
        found.push(...rows);
      return JSON.stringify(found);
    });
  if (wider.length === 0) return;
  const before = await columns();
  for (const table of wider) {
    const named = await namedStrangers(engine, table, { before, columns });
    await keepColumns(engine, table, named);
  }
}

/** Makes a table what its known columns and these others are. */
function keepColumns(
  engine: Engine,
  { name, known, query }: WiderTable,
  others: readonly string[],
): Promise<unknown> {
  const columns = [...known, ...others].map(sqlName);
  // A table has one column at least.
  const list = columns.length === 0 ? `NULL AS ${sqlName(noColumn)}` : columns.join(', ');
  return engine.run(`CREATE OR REPLACE TEMP VIEW ${sqlName(name)} AS SELECT ${list} FROM (${query})`);
}

/** What a query would do that gives the columns of a table, whatever they are, where another task's table has not these. */
function otherColumns({ name, known, isNdjson }: WiderTable, stranger: string): BadInputError {
  const column = JSON.stringify(stranger);
  if (isNdjson !== true)
    return new BadInputError(
      `the files of ${name} have different columns: ${column} is not among ${known.join(', ')}`,
    );
  const begin =
    known.length > 0
      ? `${known.join(', ')}, with which its first file begins`
      : 'those with which its first file begins, since it has none';
  return new BadInputError(
    `the records of ${name} have different fields: ${column} is not among ${begin}; name columns in options.query, or ${column} in options.columns.${name}`,
  );
}

/**
 * The columns without which the query means nothing, of those that the first file of all has not: a task that lacks one fails by
 * itself. In an order that is the same in all tasks. Throws where the result has another of them. Looks at the query at most twice
 * for each.
 *
 * @param columns - Answers what the result's columns are, `before` at first.
 */
async function namedStrangers(
  engine: Engine,
  table: WiderTable,
  { before, columns }: { readonly before: string; readonly columns: () => Promise<string> },
): Promise<readonly string[]> {
  const { strangers } = table;
  let kept = strangers.toSorted((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1));
  // Most often all are left out at once, else halves of them.
  const groups: (readonly string[])[] = [strangers];
  for (let group = groups.pop(); group !== undefined; group = groups.pop()) {
    const leftOut = new Set(group);
    const rest = kept.filter((column) => !leftOut.has(column));
    await keepColumns(engine, table, rest);
    const after = await columns().catch((error: unknown) => {
      // With all columns it was a query.
      if (error instanceof BadInputError) return undefined;
      throw error;
    });
    if (after === before) kept = rest;
    else if (after !== undefined) throw otherColumns(table, group[0] ?? '');
    else if (group.length > 1) {
      const half = Math.ceil(group.length / 2);
      groups.push(group.slice(half), group.slice(0, half));
    }
  }
  return kept;
}

function tablesOf({ inputs }: TaskContext, given: readonly string[] | undefined): readonly string[] {
  if (given !== undefined && given.length !== inputs.length)
    throw wrongOption('tables', `a list of ${String(inputs.length)} names, one for each input`);
  const stages = inputs.map(({ kind, stage = 'input' }) => (kind === 'stage' ? stage : undefined));
  return tableNames(stages, given);
}

/** A file that holds what a task has read of an input, as DuckDB names it: of no use to who wrote the query. */
const scratchTable = /file "[^"]*\/table(\d+)[^"/]*"/;

/** What goes wrong in a query is the user's to mend, but for want of memory and what the disk does. */
async function asked<T>({ inputs, signal }: TaskContext, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof OutOfMemoryError || cause instanceof StoreUnavailableError) throw cause;
    const message = firstLineOf(cause).replace(scratchTable, 'what this task reads of inputs[$1]');
    // What a binder does not find is named by the query, whatever that name says.
    const isRefused = /^(?!Binder Error).*(?:^Permission Error|has been locked|Secret|Extension)/i.test(
      message,
    );
    const what = isRefused ? 'a query can read its inputs and nothing else' : 'the query fails';
    // Another task may have found the column.
    const mayLack = inputs.some(({ format }) => format === 'ndjson') && /column.* not found/i.test(message);
    const hint = mayLack
      ? ' (of NDJSON a task knows the columns of its own records; options.columns names more)'
      : '';
    throw new BadInputError(`options.query: ${what}: ${message}${hint}`, { cause });
  }
}

async function writeText(engine: Engine, context: TaskContext, options: SqlOptions): Promise<void> {
  const { output, scratchDir, task } = context;
  const format = options.output ?? 'ndjson';
  const path = join(scratchDir, 'result');
  const header = options.header && task === 0 && context.isFinal !== false;
  const form = {
    csv: `FORMAT csv, HEADER ${String(header)}`,
    ndjson: 'FORMAT json',
    parquet: 'FORMAT parquet, COMPRESSION zstd',
  }[format];
  const rows = await asked(context, () =>
    engine.run(`COPY (\n${options.query}\n) TO ${sqlText(path)} (${form})`),
  );
  await putOut(path, rows, output);
}

/**
 * What decides where a row goes by a column: the same for values that `=` of SQL finds equal, whatever their types. DuckDB's
 * hash of a 5 is another for each of INTEGER, DECIMAL and DOUBLE, and two stages, or two tasks of one over NDJSON, may differ in
 * that: then rows of one key would not meet. Values that differ may come out alike, which only makes them neighbours.
 */
function placeKey(column: string): string {
  const text = `${sqlName(column)}::VARCHAR`;
  // Most texts are no numbers, and to try costs more than to look.
  const looksNumeric = `ascii(ltrim(${text})) BETWEEN ascii('+') AND ascii('9')`;
  const number = `(TRY_CAST(${text} AS DOUBLE) + 0)::VARCHAR`;
  const time = `TRY_CAST(${text} AS TIMESTAMP)::VARCHAR`;
  return `CASE WHEN ${looksNumeric} THEN coalesce(${number}, ${time}, lower(${text})) ELSE lower(${text}) END`;
}

async function sendPartitions(engine: Engine, context: TaskContext, options: SqlOptions): Promise<void> {
  const { output, scratchDir, partitions, task, tally } = context;
  const { query, partitionBy } = options;
  if (partitions > 1 && partitionBy === undefined)
    throw new BadInputError('options.partitionBy must name the columns by which rows go to the next stage');
  const keys = (partitionBy ?? []).map(placeKey).join(', ');
  const place = keys === '' ? '0' : `hash(${keys}) % ${String(partitions)}`;
  const dir = join(scratchDir, 'partitions');
  const empty = join(scratchDir, 'empty.parquet');
  const form = 'FORMAT parquet, COMPRESSION lz4';
  const rows = await asked(context, async () => {
    const copied = await engine.run(
      `COPY (SELECT *, (${place})::INTEGER AS ${sqlName(partitionColumn)} FROM (\n${query}\n)) TO ${sqlText(dir)} (${form}, PARTITION_BY (${sqlName(partitionColumn)}))`,
    );
    // Whoever gets no rows must know the columns all the same.
    await engine.run(`COPY (SELECT * FROM (\n${query}\n) LIMIT 0) TO ${sqlText(empty)} (${form})`);
    return copied;
  });
  let pieces = 0;
  for (let partition = 0; partition < partitions; partition++) {
    pieces += await sendFile(output, empty, { task, file: 0, partition });
    let file = 1;
    const place = join(dir, `${encodeURIComponent(partitionColumn)}=${String(partition)}`);
    const names = existsSync(place) ? (await readdir(place)).toSorted() : [];
    for (const name of names)
      pieces += await sendFile(output, join(place, name), { task, file: file++, partition });
  }
  tally?.({ out: rows - pieces });
}
