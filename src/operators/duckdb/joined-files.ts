import { open, writeFile } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { JoinOutputOptions } from '../join-options.ts';
import type { Piece, PieceTable } from '../join-pieces.ts';
import { rowOrder } from '../join-pieces.ts';
import { rightNames, strangerIn, unknownColumns } from '../join-rows.ts';
import type { BadRecordError } from '../../worker/operator.ts';
import { sqlText } from './engine.ts';
import type { Engine } from './engine.ts';
import { jsonOfText } from './json-of-text.ts';
import { appendText, columnNumber, textTable } from './staged-csv.ts';

/** Lines of one table in a file. */
export interface TableFile extends PieceTable {
  readonly path: string;
  /** Where its first line begins. */
  readonly start: number;
  readonly rows: number;
  readonly sizeBytes: number;
  /** Whether no line has a quote. */
  readonly isPlain: boolean;
  /** No line is longer. */
  readonly longestBytes: number;
}

interface OpenFile extends TableFile {
  start: number;
  rows: number;
  sizeBytes: number;
  isPlain: boolean;
  longestBytes: number;
}

/** Files of a side that are open at once: there are as many as lists of columns, and a process may have a thousand. */
const mostOpen = 64;

/** Writes the pieces of one side to scratch files, one for each table. */
export class SideFiles {
  readonly #dir: string;
  readonly #name: string;
  readonly #files = new Map<string, OpenFile>();
  readonly #ofTable = new Map<PieceTable, OpenFile>();
  /** By path, those that were used last at the end. */
  readonly #handles = new Map<string, FileHandle>();

  constructor(dir: string, name: string) {
    this.#dir = dir;
    this.#name = name;
  }

  async add({ table, bytes, rows, isPlain }: Omit<Piece, 'partition'>): Promise<void> {
    const file = this.#ofTable.get(table) ?? this.#begin(table);
    file.sizeBytes += bytes.length;
    file.isPlain &&= isPlain;
    // A piece of several rows is short.
    file.longestBytes = Math.max(file.longestBytes, bytes.length);
    const before = await appendText(await this.#handleOf(file), bytes, file.rows === 0);
    if (file.rows === 0) file.start = before;
    file.rows += rows;
  }

  /** The files in the order of their first pieces; read them after `finish`. */
  get all(): readonly TableFile[] {
    return [...this.#files.values()];
  }

  /** Ends the files. */
  async finish(): Promise<void> {
    for (const handle of this.#handles.values()) await handle.close();
    this.#handles.clear();
  }

  /** Tables of several tasks may be alike. */
  #begin(table: PieceTable): OpenFile {
    const name = JSON.stringify(table);
    let file = this.#files.get(name);
    if (file === undefined) {
      const path = join(this.#dir, `${this.#name}-${String(this.#files.size)}.lines`);
      file = { ...table, path, start: 0, rows: 0, sizeBytes: 0, isPlain: true, longestBytes: 0 };
      this.#files.set(name, file);
    }
    this.#ofTable.set(table, file);
    return file;
  }

  /** Makes the file where it is not there, and closes the one that was not used for longest where too many are open. */
  async #handleOf({ path }: OpenFile): Promise<FileHandle> {
    let handle = this.#handles.get(path);
    this.#handles.delete(path);
    const [oldest] = this.#handles;
    if (handle === undefined && oldest !== undefined && this.#handles.size >= mostOpen) {
      this.#handles.delete(oldest[0]);
      await oldest[1].close();
    }
    handle ??= await open(path, 'a');
    this.#handles.set(path, handle);
    return handle;
  }
}

/** Both sides of a join, and what is known of their columns. */
export interface JoinedSides {
  readonly left: readonly TableFile[];
  readonly right: readonly TableFile[];
  readonly known: {
    readonly left: readonly string[] | undefined;
    readonly right: readonly string[] | undefined;
  };
}

/** Pairs of tables, each of which is a query of its own. */
const mostPairs = 64;

interface Pair {
  readonly left: TableFile;
  readonly right: TableFile;
}

/**
 * Joins files and writes the joined rows as lines to `path`, as `JoinedRows` would write them; answers how many there
 * are, undefined where that takes rows one by one. Throws `BadRecordError` where rows that match cannot be written.
 */
export async function joinFiles(
  engine: Engine,
  { left, right, known }: JoinedSides,
  options: JoinOutputOptions,
  path: string,
): Promise<number | undefined> {
  const pairs = left.flatMap((one) => right.map((other): Pair => ({ left: one, right: other })));
  if (pairs.length > mostPairs) return undefined;
  const queries: string[] = [];
  for (const pair of pairs) {
    const wrong = options.output === 'csv' ? whyNoCsv(pair, known) : undefined;
    if (wrong !== undefined) {
      for await (const rows of engine.rows(`${pairQuery(pair, { l: "''", r: "''", line: '1' })} LIMIT 1`))
        if (rows.length > 0) throw wrong;
      continue;
    }
    const texts = options.output === 'csv' ? csvTexts(pair, known, options) : jsonTexts(pair, options);
    if (texts === undefined) return undefined;
    queries.push(pairQuery(pair, texts));
  }
  if (queries.length === 0) {
    await writeFile(path, '');
    return 0;
  }
  // Without quotes a line, which is the only column, is written as it is.
  const form = "FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\x01'";
  return engine.run(`COPY (${queries.join(' UNION ALL ')}) TO ${sqlText(path)} (${form})`);
}

/** What of a pair is written: the text of each side's row, and the line that both make. */
interface PairTexts {
  readonly l: string;
  readonly r: string;
  readonly line: string;
}

/** Texts are made before rows are joined: a hash table of two columns is smaller than one of many. */
function pairQuery({ left, right }: Pair, { l, r, line }: PairTexts): string {
  const isMixed = left.form.kind !== right.form.kind;
  const side = (file: TableFile, text: string): string => {
    const key = columnNumber(file.form.key);
    const shown = isMixed && file.form.kind === 'csv' ? jsonOfText(key) : key;
    return `(SELECT ${shown} AS k, ${text} AS t FROM ${linesOf(file)})`;
  };
  return `SELECT ${line} AS line FROM ${side(left, l)} AS l JOIN ${side(right, r)} AS r ON l.k = r.k`;
}

function linesOf({ form, path, isPlain, longestBytes }: TableFile): string {
  return textTable({
    fields: form.fields,
    path,
    longestBytes,
    delimiter: form.kind === 'csv' ? ',' : '\t',
    hasQuotes: !isPlain,
  });
}

/** Why a match of such rows cannot be written as CSV; undefined where it can. */
function whyNoCsv({ left, right }: Pair, known: JoinedSides['known']): BadRecordError | undefined {
  if (known.left === undefined || known.right === undefined) return unknownColumns();
  return strangerIn(left.columns, known.left) ?? strangerIn(right.columns, known.right);
}

function csvTexts({ left, right }: Pair, known: JoinedSides['known'], options: JoinOutputOptions): PairTexts {
  const names = rightNames(known.left ?? [], known.right ?? [], options);
  const text = (file: TableFile, wanted: readonly string[]): string =>
    concatenated(
      wanted.map((column) => csvCell(file, file.columns.indexOf(column))),
      ',',
    );
  const lefts = known.left ?? [];
  const rights = (known.right ?? []).filter((column) => names.get(column) !== undefined);
  const isLone = lefts.length + rights.length === 1;
  return {
    l: text(left, lefts),
    r: text(right, rights),
    line: isLone
      ? // Readers skip empty lines, so that a lone empty field must be told from one.
        `CASE WHEN l.t = '' THEN '""' ELSE l.t END`
      : rights.length === 0
        ? 'l.t'
        : `concat(l.t, ',', r.t)`,
  };
}

/** Undefined where an object would have its fields in another order than left, then right. */
function jsonTexts({ left, right }: Pair, options: JoinOutputOptions): PairTexts | undefined {
  const names = rightNames(left.columns, right.columns, options);
  const fields = (
    file: TableFile,
    nameOf: (column: string) => string | undefined,
  ): readonly (readonly [string, string])[] =>
    file.columns.flatMap((column, at) => {
      const name = nameOf(column);
      return name === undefined ? [] : [[name, jsonCell(file, at)] as const];
    });
  const lefts = fields(left, (column) => column);
  const rights = fields(right, (column) => names.get(column));
  const all = [...lefts, ...rights].map(([name]) => name);
  if (rowOrder(all).some((name, at) => name !== all[at])) return undefined;
  const text = (of: readonly (readonly [string, string])[]): string =>
    concatenated(
      of.map(([name, cell]) => `${sqlText(`${JSON.stringify(name)}:`)}, ${cell}`),
      ',',
    );
  const between = lefts.length === 0 || rights.length === 0 ? '' : ',';
  return { l: text(lefts), r: text(rights), line: `concat('{', l.t, ${sqlText(between)}, r.t, '}')` };
}

/** One text of several, none of which is NULL. */
const concatenated = (cells: readonly string[], between: string): string =>
  cells.length === 0 ? "''" : `concat(${cells.join(`, ${sqlText(between)}, `)})`;

/** A cell as a field of CSV. */
function csvCell({ form, isPlain }: TableFile, at: number): string {
  if (at < 0) return "''";
  const cell = columnNumber(form.cells[at] ?? 0);
  if (form.kind === 'csv') return isPlain ? cell : csvField(cell);
  const text = `json_extract_string(${cell}, '$')`;
  return `CASE WHEN ${cell} = 'null' THEN '' WHEN starts_with(${cell}, '"') THEN ${csvField(text)} ELSE ${csvField(cell)} END`;
}

const csvField = (text: string): string =>
  `CASE WHEN regexp_matches(${text}, '[",\\r\\n]') THEN concat('"', replace(${text}, '"', '""'), '"') ELSE ${text} END`;

/** A cell as JSON. */
function jsonCell({ form }: TableFile, at: number): string {
  const cell = columnNumber(form.cells[at] ?? 0);
  return form.kind === 'csv' ? jsonOfText(cell) : cell;
}
