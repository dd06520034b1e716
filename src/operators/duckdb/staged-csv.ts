import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { CsvBlock } from '../../worker/operator.ts';
import { sqlText } from './engine.ts';

/** CSV of one list of columns, in a file that an engine reads. */
export interface StagedTable {
  readonly columns: readonly string[];
  readonly path: string;
  /** No record is longer. */
  readonly longestBytes: number;
}

interface OpenTable extends StagedTable {
  longestBytes: number;
  readonly handle: FileHandle;
}

/** Lists of columns that the files of one input may have. */
const mostTables = 256;
/** Longest record that DuckDB reads without being told. */
const usualRecordBytes = 1024 * 1024;
/** Of what it reads it holds several such buffers, of 32 MB each where it is told nothing: a fifth of a small worker's memory. */
const leastBufferBytes = 4 * 1024 * 1024;

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Appends to a file of text that an engine reads. DuckDB leaves out a byte order mark at the begin of a file, also where it
 * is that of the first value: such a file begins with another. Answers how many bytes stand before the text.
 */
export async function appendText(handle: FileHandle, bytes: Buffer, isFirst: boolean): Promise<number> {
  const needsMark = isFirst && byteOrderMark.equals(bytes.subarray(0, 3));
  if (needsMark) await handle.appendFile(byteOrderMark);
  await handle.appendFile(bytes);
  return needsMark ? byteOrderMark.length : 0;
}

/** Writes CSV to scratch files, one for each list of columns. */
export class CsvStage {
  readonly #dir: string;
  readonly #name: string;
  readonly #tables = new Map<string, OpenTable>();
  #last: OpenTable | undefined;

  constructor(dir: string, name: string) {
    this.#dir = dir;
    this.#name = name;
  }

  /** Adds whole records; false where there are too many lists of columns. */
  async add({ bytes, columns }: Pick<CsvBlock, 'bytes' | 'columns'>): Promise<boolean> {
    const table = await this.#tableOf(columns);
    if (table === undefined) return false;
    await appendText(table.handle, bytes, table.longestBytes === 0);
    table.longestBytes = Math.max(table.longestBytes, bytes.length);
    return true;
  }

  /** Ends the files; answers them in the order of their first records. */
  async finish(): Promise<readonly StagedTable[]> {
    const tables = [...this.#tables.values()];
    for (const { handle } of tables) await handle.close();
    return tables;
  }

  async #tableOf(columns: readonly string[]): Promise<OpenTable | undefined> {
    if (this.#last?.columns === columns) return this.#last;
    const name = JSON.stringify(columns);
    const known = this.#tables.get(name);
    this.#last = known;
    if (known !== undefined || this.#tables.size === mostTables) return known;
    const path = join(this.#dir, `${this.#name}-${String(this.#tables.size)}.csv`);
    this.#last = { columns, path, longestBytes: 0, handle: await open(path, 'w') };
    this.#tables.set(name, this.#last);
    return this.#last;
  }
}

/** The name that DuckDB knows a column by: names of files may differ in case alone, which are one to it. */
export const columnNumber = (index: number): string => `c${String(index)}`;

/** The table as SQL; all columns are texts, of which none is NULL, named by `columnNumber`. */
export const csvTable = ({ columns, path, longestBytes }: StagedTable): string =>
  textTable({ fields: columns.length, path, longestBytes, delimiter: ',', hasQuotes: true });

const text = 'VARCHAR';

/** Lines of texts between delimiters as SQL, named by `columnNumber`; none is NULL. */
export function textTable(file: {
  readonly fields: number;
  readonly path: string;
  readonly longestBytes: number;
  readonly delimiter: string;
  /** Whether a quote at the begin of a text means that it ends at the next, as in CSV. */
  readonly hasQuotes: boolean;
  /** Types of the fields where they are not all texts; an empty field of another type is NULL. */
  readonly types?: readonly string[];
}): string {
  const names = Array.from({ length: file.fields }, (_, index) => columnNumber(index));
  const types = names.map((name, at) => `'${name}': '${file.types?.[at] ?? text}'`).join(', ');
  const texts = names.filter((_, at) => (file.types?.[at] ?? text) === text);
  const quote = file.hasQuotes ? '"' : '';
  const options = [
    `auto_detect = false, header = false, delim = ${sqlText(file.delimiter)}, quote = '${quote}', escape = '${quote}', new_line = '\\n'`,
    `columns = {${types}}`,
    `force_not_null = [${texts.map(sqlText).join(', ')}]`,
    `buffer_size = ${String(Math.max(leastBufferBytes, 4 * file.longestBytes))}`,
    ...(file.longestBytes > usualRecordBytes ? [`max_line_size = ${String(2 * file.longestBytes)}`] : []),
  ];
  return `read_csv(${sqlText(file.path)}, ${options.join(', ')})`;
}
