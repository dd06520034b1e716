import { open } from 'node:fs/promises';
import { BadValueError } from '../../worker/operator.ts';
import type { TaskInput } from '../../worker/operator.ts';
import { forEachRow } from '../../worker/row-places.ts';
import type { Engine } from './engine.ts';
import { orBadInput, sqlName, sqlText } from './engine.ts';

/** Types of columns by their names, as SQL writes them. */
export type ColumnTypes = Readonly<Record<string, string>>;

/** Text is written to scratch files in pieces of about so many bytes. */
const writeBytes = 256 * 1024;
/** Longest line that DuckDB reads without being told, in characters. */
const usualLength = 4 * 1024 * 1024;

/** How JSON writes half of a pair of surrogates, which no parser but JavaScript's takes. */
const halfOfPair = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

/** Types that DuckDB gives texts which look like them: JSON has none of these, and whether all do differs from task to task. */
const guessedType = /"(?:[^"]|"")*"|\b(?:DATE|TIMESTAMP|TIME|UUID)(?=[,)[]|$)/g;

interface NdjsonTable {
  readonly name: string;
  /** Of the file that its rows are laid into. */
  readonly path: string;
  readonly given: ColumnTypes;
  /** What it has where neither its rows nor `given` name any column. */
  readonly otherwise?: ColumnTypes;
}

interface NdjsonQuery {
  readonly query: string;
  readonly namesColumns: boolean;
  /** Of all fields that its records have; the query may give them otherwise. */
  readonly names: ReadonlySet<string>;
}

/**
 * The rows of NDJSON as a query. Values are as JavaScript reads them: numbers are doubles, of two fields of one name the last
 * one counts. Columns and their types are those of the task's own rows, but for those that are `given`.
 */
export async function ndjsonQuery(
  engine: Engine,
  input: Pick<TaskInput, 'rows' | 'onBadValue'>,
  { name: table, path, given, otherwise = {} }: NdjsonTable,
): Promise<NdjsonQuery> {
  const { names, longest } = await stageRows(input, path);
  // In bytes, of which a character has up to four; buffers are as large, so that only long rows ask for them.
  const limit = longest > usualLength ? `, maximum_object_size = ${String(4 * longest)}` : '';
  const query = (what: string): string =>
    `SELECT * FROM read_json(${sqlText(path)}, format = 'newline_delimited'${limit}, ${what})`;
  const found = query('sample_size = -1');
  const types = await orBadInput(`the rows of ${table} make no table`, () => typesOf(engine, found, names));
  const isGiven = Object.keys(given).length > 0;
  // DuckDB gives names of its own where two differ in case alone, and one map for all where rows have little in common.
  if (types.size < names.size && !isGiven) return { query: found, namesColumns: true, names };
  const said = new Set(Object.keys(given).map((name) => name.toLowerCase()));
  const own = [...[...types].filter(([name]) => !said.has(name.toLowerCase())), ...Object.entries(given)];
  const all = own.length === 0 ? Object.entries(otherwise) : own;
  const columns = all.map(([name, type]) => `${sqlName(name)}: ${sqlText(type)}`);
  // A record without fields would be the value of an only column.
  const rows = all.length === 0 ? found : query(`columns = {${columns.join(', ')}}, records = true`);
  return { query: rows, namesColumns: own.length > 0, names };
}

/** Which of the columns of a query have one of these names, and of which types they are. */
async function typesOf(
  engine: Engine,
  query: string,
  names: ReadonlySet<string>,
): Promise<ReadonlyMap<string, string>> {
  const types = new Map<string, string>();
  for await (const rows of engine.rows(`SELECT column_name, column_type FROM (DESCRIBE ${query})`))
    for (const [name, type] of rows) {
      if (typeof name !== 'string' || typeof type !== 'string' || !names.has(name)) continue;
      const plain = type.replace(guessedType, (word) => (word.startsWith('"') ? word : 'VARCHAR'));
      types.set(name, plain);
    }
  return types;
}

/** Writes the rows to a file; answers the names of their fields, and the length of the longest line in characters. */
async function stageRows(
  input: Pick<TaskInput, 'rows' | 'onBadValue'>,
  path: string,
): Promise<{ readonly names: ReadonlySet<string>; readonly longest: number }> {
  const handle = await open(path, 'w');
  const names = new Set<string>();
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
      if (line.includes('\\ud') && halfOfPair.test(line))
        throw new BadValueError(
          'a text or name has half a character (a surrogate without its other half), which sql cannot hold',
        );
      for (const name of Object.keys(row)) names.add(name);
      lines.push(line);
      size += line.length;
      longest = Math.max(longest, line.length);
      return size < writeBytes ? undefined : flush();
    });
    await flush();
  } finally {
    await handle.close();
  }
  return { names, longest };
}
