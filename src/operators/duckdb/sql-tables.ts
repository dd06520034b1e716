import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { BadInputError } from '../../worker/operator.ts';
import type { SourceFile, TaskContext, TaskInput } from '../../worker/operator.ts';
import { forEachRow } from '../../worker/row-places.ts';
import type { Engine } from './engine.ts';
import { sqlName, sqlText } from './engine.ts';
import { receiveFiles } from './parquet-pieces.ts';
import { parquetRows } from './source-parquet.ts';
import { columnNumber, CsvStage, csvTable } from './staged-csv.ts';

/** Text is written to scratch files in pieces of about so many bytes. */
const writeBytes = 256 * 1024;
/** Longest line that DuckDB reads without being told, in characters. */
const usualLength = 4 * 1024 * 1024;

/** Makes an input of a task a view of that name: CSV as texts, NDJSON by what its values are, stages as they were. */
export async function addTable(engine: Engine, input: TaskInput, place: TablePlace): Promise<void> {
  const { name, file, dir } = place;
  const query =
    input.kind === 'stage'
      ? parquetQuery(await receiveFiles(input, dir, file), input.stage ?? name)
      : input.files !== undefined
        ? await sourceQuery(engine, input.files, place)
        : input.format === 'csv'
          ? await csvQuery(input, place)
          : await ndjsonQuery(input, join(dir, `${file}.ndjson`));
  await engine.run(`CREATE TEMP VIEW ${sqlName(name)} AS ${query}`);
}

/** Where a table comes from, and what it is called. */
interface TablePlace {
  readonly name: string;
  /** Of its files in `dir`, without what follows the dot. */
  readonly file: string;
  readonly dir: string;
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

function parquetQuery(paths: readonly string[], stage: string): string {
  if (paths.length === 0) throw new BadInputError(`stage ${stage} has sent no table`);
  return `SELECT * FROM read_parquet([${paths.map(sqlText).join(', ')}], union_by_name = true, hive_partitioning = false)`;
}

async function csvQuery(input: TaskInput, { name, file, dir }: TablePlace): Promise<string> {
  const stage = new CsvStage(dir, file);
  if (input.csv === undefined) throw new BadInputError(`the input ${name} cannot be read as CSV`);
  for await (const block of input.csv())
    if (!(await stage.add(block)))
      throw new BadInputError(`the files of ${name} have too many lists of columns`);
  const tables = await stage.finish();
  if (tables.length === 0) throw new BadInputError(`the files of ${name} are empty: they name no columns`);
  return tables
    .map((table) => {
      const columns = table.columns.map((column, index) => `${columnNumber(index)} AS ${sqlName(column)}`);
      return `SELECT ${columns.join(', ')} FROM ${csvTable(table)}`;
    })
    .join(' UNION ALL BY NAME ');
}

/** The values of rows as JavaScript reads them: numbers are doubles, of two fields of one name the last one counts. */
async function ndjsonQuery(input: TaskInput, path: string): Promise<string> {
  const handle = await open(path, 'w');
  let lines: string[] = [];
  let size = 0;
  let longest = 0;
  const flush = async (): Promise<void> => {
    await handle.appendFile(lines.join(''));
    lines = [];
    size = 0;
  };
  try {
    await forEachRow(input, (row) => {
      const line = `${JSON.stringify(row)}\n`;
      lines.push(line);
      size += line.length;
      longest = Math.max(longest, line.length);
      return size < writeBytes ? undefined : flush();
    });
    await flush();
  } finally {
    await handle.close();
  }
  // In bytes, of which a character has up to four; buffers are as large, so that only long rows ask for them.
  const limit = longest > usualLength ? `, maximum_object_size = ${String(4 * longest)}` : '';
  return `SELECT * FROM read_json(${sqlText(path)}, format = 'newline_delimited', sample_size = -1${limit})`;
}
