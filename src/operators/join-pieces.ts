import type { CsvBlock, Row } from '../worker/operator.ts';
import { partitionOf, partitionOfPlainText } from '../worker/partition-of.ts';
import { CsvRecordParser } from '../worker/csv-record.ts';
import type { JoinSideOptions } from './join-options.ts';
import { allPiecesBytes, OpenPiece, pieceBytesOf } from './open-piece.ts';

/*
 * How a join ships rows in bulk: as lines of text, many to a record, for an engine that reads files. Rows of CSV travel as the
 * lines that they were, so that no cell is ever looked at; rows of NDJSON as the JSON of their cells, between tabs, which
 * JSON never holds.
 */

/** How the lines of a piece are read. */
export interface PieceForm {
  /** `csv`: cells as CSV, which are texts. `json`: cells as JSON between tabs, without quotes around them. */
  readonly kind: 'csv' | 'json';
  /** Cells of a line. */
  readonly fields: number;
  /** Where the key is: in `csv` its text, in `json` its JSON. */
  readonly key: number;
  /** Where the cells of the row's columns are, by column. */
  readonly cells: readonly number[];
}

/** A table of pieces: rows of the same columns in the same form. */
export interface PieceTable {
  /** The columns of a row, in the order of its fields as an object. */
  readonly columns: readonly string[];
  readonly form: PieceForm;
}

/** Lines of one table for one partition. The bytes are good until the call that takes them has ended. */
export interface Piece {
  readonly table: PieceTable;
  readonly partition: number;
  readonly bytes: Buffer;
  readonly rows: number;
  /** Whether no line has a quote. */
  readonly isPlain: boolean;
}

const newline = 0x0a;
const comma = 0x2c;
const quote = 0x22;

/** Lists of columns that a task tells of rows of NDJSON. */
const mostTables = 256;
/** How JSON writes a half of a pair of surrogates, or a text that looks so. */
const halfOfPair = /\\ud[89a-f]/;

/** Names in the order in which an object has them: those that are whole numbers come first. */
export const rowOrder = (columns: readonly string[]): readonly string[] =>
  Object.keys(Object.fromEntries(columns.map((column) => [column, true])));

interface OpenTable {
  readonly table: PieceTable;
  readonly pieces: (OpenPiece | undefined)[];
  /** The cells of a line of CSV that travel; undefined where all do. */
  readonly projection: readonly number[] | undefined;
}

/** Cuts the rows of one side of a join into pieces, by the hash of their keys. */
export class PieceCutter {
  readonly #partitions: number;
  readonly #side: JoinSideOptions;
  readonly #begin: (table: PieceTable) => void;
  readonly #take: (piece: Piece) => Promise<void> | undefined;
  readonly #pieceBytes: number;
  readonly #tables = new Map<string, OpenTable>();
  #lastColumns: readonly string[] | undefined;
  #last: OpenTable | undefined;
  /** What all pieces take, however little of that is used. */
  #heldBytes = 0;

  constructor(options: {
    readonly partitions: number;
    readonly side: JoinSideOptions;
    /** Told of each table before its first piece, in the order of their first rows. */
    readonly begin: (table: PieceTable) => void;
    /** Takes a piece before anything else is done. */
    readonly take: (piece: Piece) => Promise<void> | undefined;
  }) {
    this.#partitions = options.partitions;
    this.#side = options.side;
    this.#begin = options.begin;
    this.#take = options.take;
    this.#pieceBytes = pieceBytesOf(options.partitions);
  }

  /** Takes the records of a block in which the places of the key are told. */
  async csv({ bytes, records, columns }: CsvBlock): Promise<void> {
    if (records.count === 0) return;
    const open = this.#csvTable(columns);
    const { starts, ends, keyStarts, keyEnds } = records;
    for (let record = 0; record < records.count; record++) {
      const [start, end] = [starts[record] ?? 0, (ends[record] ?? 0) + 1];
      const partition = this.#partitionOf(bytes, keyStarts[record] ?? 0, keyEnds[record] ?? 0);
      const { projection } = open;
      const line = projection === undefined ? bytes : projected(bytes.subarray(start, end), projection);
      const wait =
        line === bytes
          ? this.#add(open, partition, bytes, start, end)
          : this.#add(open, partition, line, 0, line.length);
      if (wait !== undefined) await wait;
    }
  }

  /**
   * Whether a row can travel as `json`: not where it has a text that is no Unicode, which could not be written as the text
   * that it is, or where there were too many lists of columns.
   */
  row(row: Row, key: string): Promise<void> | undefined | 'refused' {
    const cells = Object.values(row).map((value) => JSON.stringify(value));
    const line = `${[key, ...cells].join('\t')}\n`;
    if (halfOfPair.test(line)) return 'refused';
    const open = this.#jsonTable(Object.keys(row));
    if (open === undefined) return 'refused';
    const bytes = Buffer.from(line);
    return this.#add(open, partitionOf(Buffer.from(key), this.#partitions), bytes, 0, bytes.length);
  }

  /** Hands over what is left. */
  async flush(): Promise<void> {
    for (const { table, pieces } of this.#tables.values()) {
      for (const [partition, piece] of pieces.entries()) {
        const wait = piece === undefined ? undefined : this.#hand(table, partition, piece);
        if (wait !== undefined) await wait;
      }
      // Their memory, too: it is that of the largest pieces there were.
      pieces.length = 0;
    }
    this.#heldBytes = 0;
  }

  #csvTable(columns: readonly string[]): OpenTable {
    if (this.#last !== undefined && this.#lastColumns === columns) return this.#last;
    this.#lastColumns = columns;
    return this.#table(`csv ${JSON.stringify(columns)}`, () => csvTable(columns, this.#side));
  }

  #jsonTable(columns: readonly string[]): OpenTable | undefined {
    const name = `json ${JSON.stringify(columns)}`;
    if (!this.#tables.has(name) && this.#tables.size >= mostTables) return undefined;
    return this.#table(name, () => ({ table: jsonTable(columns), projection: undefined }));
  }

  #table(name: string, make: () => Pick<OpenTable, 'table' | 'projection'>): OpenTable {
    let open = this.#tables.get(name);
    if (open === undefined) {
      open = { ...make(), pieces: [] };
      this.#tables.set(name, open);
      this.#begin(open.table);
    }
    this.#last = open;
    return open;
  }

  #partitionOf(bytes: Buffer, start: number, end: number): number {
    const plain = partitionOfPlainText(bytes, start, end, this.#partitions);
    if (plain >= 0) return plain;
    return partitionOf(Buffer.from(JSON.stringify(textOf(bytes, start, end))), this.#partitions);
  }

  #add(
    open: OpenTable,
    partition: number,
    bytes: Buffer,
    start: number,
    end: number,
  ): Promise<void> | undefined {
    const piece = (open.pieces[partition] ??= this.#newPiece());
    if (piece.used > 0 && piece.used + end - start > this.#pieceBytes) {
      const wait = this.#hand(open.table, partition, piece);
      if (wait !== undefined) return wait.then(() => this.#add(open, partition, bytes, start, end));
    }
    const before = piece.bytes.length;
    piece.add(bytes, start, end);
    this.#heldBytes += piece.bytes.length - before;
    // Of many tables each has its own pieces.
    return this.#heldBytes > 2 * allPiecesBytes ? this.flush() : undefined;
  }

  #newPiece(): OpenPiece {
    const piece = new OpenPiece();
    this.#heldBytes += piece.bytes.length;
    return piece;
  }

  #hand(table: PieceTable, partition: number, piece: OpenPiece): Promise<void> | undefined {
    if (piece.used === 0) return undefined;
    const bytes = piece.bytes.subarray(0, piece.used);
    const { rows } = piece;
    const isPlain = table.form.kind === 'json' || !bytes.includes(quote);
    const before = piece.bytes.length;
    piece.empty(this.#pieceBytes);
    this.#heldBytes += piece.bytes.length - before;
    return this.#take({ table, partition, bytes, rows, isPlain });
  }
}

/** The table of CSV lines, and which of their cells travel: the key comes last where it is not kept. */
function csvTable(
  columns: readonly string[],
  { key, columns: kept }: JoinSideOptions,
): Pick<OpenTable, 'table' | 'projection'> {
  if (kept === undefined) {
    const names = rowOrder(columns);
    const cells = names.map((name) => columns.indexOf(name));
    const form = { kind: 'csv', fields: columns.length, key: columns.indexOf(key), cells } as const;
    return { table: { columns: names, form }, projection: undefined };
  }
  const sent = kept.includes(key) ? kept : [...kept, key];
  const names = rowOrder(kept);
  const cells = names.map((name) => sent.indexOf(name));
  return {
    table: {
      columns: names,
      form: { kind: 'csv', fields: sent.length, key: sent.indexOf(key), cells },
    },
    projection: sent.map((name) => columns.indexOf(name)),
  };
}

/** The key comes first, then all cells. */
const jsonTable = (columns: readonly string[]): PieceTable => ({
  columns,
  form: { kind: 'json', fields: columns.length + 1, key: 0, cells: columns.map((_, index) => index + 1) },
});

/** The text of a cell of well-formed CSV. */
function textOf(bytes: Buffer, start: number, end: number): string {
  const cell = bytes.toString('utf8', start, end);
  return cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell;
}

/** Some cells of a well-formed record, as they are, as a record. */
function projected(record: Buffer, fields: readonly number[]): Buffer {
  const starts: number[] = [0];
  for (let at = 0; at < record.length; at++) {
    const byte = record[at];
    if (byte === comma) starts.push(at + 1);
    // Doubled quotes end a quoted stretch and begin another.
    else if (byte === quote) at = record.indexOf(quote, at + 1);
  }
  starts.push(record.length);
  const cells = fields.map((field) => record.subarray(starts[field], (starts[field + 1] ?? 1) - 1));
  if (cells.length === 1 && cells[0]?.length === 0) return Buffer.from('""\n');
  const line = Buffer.allocUnsafe(cells.reduce((size, cell) => size + cell.length + 1, 0));
  let at = 0;
  for (const cell of cells) {
    at += cell.copy(line, at);
    line[at++] = comma;
  }
  line[at - 1] = newline;
  return line;
}

/** A row with the JSON of its key. */
export interface KeyedRow {
  readonly row: Row;
  readonly key: string;
}

/** The rows of a table, from its lines in chunks of any size. */
export async function* rowsOfLines(
  chunks: AsyncIterable<Buffer>,
  table: PieceTable,
): AsyncGenerator<readonly KeyedRow[]> {
  const rowOfLine = table.form.kind === 'csv' ? csvReader(table) : jsonReader(table);
  let open: Buffer[] = [];
  for await (const chunk of chunks) {
    const rows: KeyedRow[] = [];
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      const piece = chunk.subarray(start, end);
      const line = open.length === 0 ? piece : Buffer.concat([...open, piece]);
      open = [];
      start = end + 1;
      const row = rowOfLine(line.toString());
      if (row !== undefined) rows.push(row);
    }
    if (start < chunk.length) open.push(Buffer.from(chunk.subarray(start)));
    yield rows;
  }
}

function jsonReader({ columns, form }: PieceTable): (line: string) => KeyedRow {
  return (line) => {
    const cells = line.split('\t');
    const values = form.cells.map((at): unknown => JSON.parse(cells[at] ?? 'null'));
    return { row: rowOf(columns, values), key: cells[form.key] ?? 'null' };
  };
}

function csvReader({ columns, form }: PieceTable): (line: string) => KeyedRow | undefined {
  const parser = new CsvRecordParser();
  return (line) => {
    const outcome = parser.push(line);
    if (outcome.kind !== 'record') return undefined;
    const { fields } = outcome;
    const values = form.cells.map((at) => fields[at] ?? '');
    return { row: rowOf(columns, values), key: JSON.stringify(fields[form.key] ?? '') };
  };
}

const rowOf = (columns: readonly string[], values: readonly unknown[]): Row =>
  // Not by assignment, which a column named "__proto__" would take for something else.
  Object.fromEntries(columns.map((column, at) => [column, values[at]]));
