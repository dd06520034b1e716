import { BadRecordError } from '../worker/operator.ts';
import type { Row } from '../worker/operator.ts';
import { varintBytes, writeVarint } from '../worker/framing.ts';
import type { PieceForm, PieceTable } from './join-pieces.ts';

/*
 * How a join ships rows: each task says once for each list of columns what they are, under a number, and a row names
 * that number and has its cells by position. A cell is its text, or JSON where it is none; that of the key is empty,
 * since the record has the key beside it.
 */

/** Lists of columns that a task gives numbers to; rows of further ones bring their names along. */
const mostSchemas = 256;
/** The first byte of a packed row. One that brings its names along is JSON, which begins with a brace. */
const packedRow = 0;
const brace = 0x7b;
/** The header of a cell that is the record's key: JSON of no bytes, which no value has. */
const isKey = 1;

interface Schema {
  readonly number: number;
  readonly columns: readonly string[];
}

/** What a task says of a list of columns. */
interface Announcement {
  readonly task: number;
  readonly schema: number;
  readonly columns: readonly string[];
  /** Whether they are the columns of its whole side, so that CSV can be written. */
  readonly known: boolean;
  /** They are told by a task without rows, and those of the whole side only where no task has any. */
  readonly isEmpty?: true;
  /** How pieces under this number are read; absent where rows are packed one by one. */
  readonly form?: PieceForm;
}

/** The keys of pieces begin with it: no JSON does, so that they come before packed rows. */
const pieceMark = 1;
const pieceKeyBytes = 18;
const plainFlag = 1;

/** What stands in the key of a piece. */
export interface PieceKey {
  readonly task: number;
  readonly schema: number;
  readonly number: number;
  readonly rows: number;
  readonly isPlain: boolean;
}

export const isPieceKey = (key: Buffer): boolean => key[0] === pieceMark;

/** Keys of pieces are in order of task, of table and of number. */
export function pieceKey({ task, schema, number, rows, isPlain }: PieceKey): Buffer {
  const key = Buffer.alloc(pieceKeyBytes);
  key[0] = pieceMark;
  key.writeUInt32BE(task, 1);
  key.writeUInt32BE(schema, 5);
  key.writeUInt32BE(number, 9);
  key.writeUInt32BE(rows, 13);
  key[17] = isPlain ? plainFlag : 0;
  return key;
}

/** Reads what `pieceKey` wrote. */
export function readPieceKey(key: Buffer): PieceKey {
  if (key.length !== pieceKeyBytes) throw wrongInput();
  return {
    task: key.readUInt32BE(1),
    schema: key.readUInt32BE(5),
    number: key.readUInt32BE(9),
    rows: key.readUInt32BE(13),
    isPlain: key[17] === plainFlag,
  };
}

const sameColumns = (left: readonly string[], right: readonly string[]): boolean =>
  left.length === right.length && left.every((column, at) => column === right[at]);

/** Packs the rows of one task. */
export class RowPacker {
  readonly #task: number;
  readonly #keyColumn: string | undefined;
  /** Whether a key of any type stands for its cell, or only one that is a text. */
  readonly #isKeyExact: boolean;
  readonly #schemas = new Map<string, Schema>();
  #last: Schema | undefined;

  /** Without `key` each cell travels with its row. */
  constructor(options: {
    readonly task: number;
    readonly key?: string | undefined;
    readonly keysAsText?: boolean;
  }) {
    this.#task = options.task;
    this.#keyColumn = options.key;
    this.#isKeyExact = options.keysAsText !== true;
  }

  /** What must be told of these columns before a row of them is read; undefined where it was, or never will be. */
  announce(columns: readonly string[], known: boolean): Buffer | undefined {
    if (this.#last !== undefined && sameColumns(this.#last.columns, columns)) return undefined;
    const name = JSON.stringify(columns);
    const told = this.#schemas.get(name);
    if (told !== undefined || this.#schemas.size >= mostSchemas) {
      this.#last = told;
      return undefined;
    }
    this.#last = { number: this.#schemas.size, columns };
    this.#schemas.set(name, this.#last);
    const said: Announcement = { task: this.#task, schema: this.#last.number, columns, known };
    return Buffer.from(JSON.stringify(said));
  }

  /** What a task without rows tells of the columns that they would have. */
  announceEmpty(columns: readonly string[]): Buffer {
    const said: Announcement = {
      ...{ task: this.#task, schema: this.#schemas.size, columns },
      ...{ known: false, isEmpty: true },
    };
    return Buffer.from(JSON.stringify(said));
  }

  /** What must be told of a table of pieces, under the number that its pieces name. */
  announceTable(
    { columns, form }: PieceTable,
    known: boolean,
  ): { readonly schema: number; readonly said: Buffer } {
    const schema = this.#schemas.size;
    this.#schemas.set(`table ${String(schema)}`, { number: schema, columns });
    const said: Announcement = { task: this.#task, schema, columns, known, form };
    return { schema, said: Buffer.from(JSON.stringify(said)) };
  }

  /** The row as bytes; of the columns that `announce` was called with last. */
  pack(row: Row): Buffer {
    const schema = this.#last;
    if (schema === undefined) return Buffer.from(JSON.stringify(row));
    const cells = Object.values(row).map((value, at) => this.#cellOf(schema.columns[at], value));
    const headBytes = 1 + varintBytes(this.#task) + varintBytes(schema.number);
    const size = cells.reduce((sum, { header, text }) => sum + varintBytes(header) + text.length, headBytes);
    const bytes = Buffer.allocUnsafe(size);
    bytes[0] = packedRow;
    let at = writeVarint(bytes, writeVarint(bytes, 1, this.#task), schema.number);
    for (const { header, text } of cells) {
      at = writeVarint(bytes, at, header);
      at += text.copy(bytes, at);
    }
    return bytes;
  }

  #cellOf(column: string | undefined, value: unknown): { header: number; text: Buffer } {
    if (column === this.#keyColumn && (this.#isKeyExact || typeof value === 'string'))
      return { header: isKey, text: nothing };
    // Halves of surrogate pairs are no UTF-8; JSON writes them as escapes.
    const isText = typeof value === 'string' && value.isWellFormed();
    const text = Buffer.from(isText ? value : JSON.stringify(value));
    return { header: text.length * 2 + (isText ? 0 : 1), text };
  }
}

const nothing = Buffer.alloc(0);
const wrongInput = (): BadRecordError => new BadRecordError('a join reads the output of join-map');

/** Reads rows that tasks packed, once it was told of their columns. */
export class RowUnpacker {
  /** Columns by task and number. */
  readonly #schemas = new Map<string, readonly string[]>();
  readonly #tables = new Map<string, PieceTable>();
  #known: readonly string[] | undefined;
  #ofEmpty: readonly string[] | undefined;
  #key: Buffer | undefined;
  #keyValue: unknown;

  /** The columns of the whole side, where a task has said so: the first that has records, else the first. */
  get columns(): readonly string[] | undefined {
    return this.#known ?? this.#ofEmpty;
  }

  /** Whether a task that has records has said so. */
  get knowsColumns(): boolean {
    return this.#known !== undefined;
  }

  /** Takes over what a task says of columns. */
  learn(said: Buffer): void {
    const { task, schema, columns, known, isEmpty, form } = JSON.parse(
      said.toString(),
    ) as Partial<Announcement>;
    if (!Array.isArray(columns)) throw wrongInput();
    const names = columns.map(String);
    if (isEmpty === true) {
      this.#ofEmpty ??= names;
      return;
    }
    const name = `${String(task)}/${String(schema)}`;
    if (form === undefined) this.#schemas.set(name, names);
    else this.#tables.set(name, { columns: names, form });
    if (known === true) this.#known ??= names;
  }

  /** The table of a piece. */
  tableOf({ task, schema }: PieceKey): PieceTable {
    const table = this.#tables.get(`${String(task)}/${String(schema)}`);
    if (table === undefined) throw wrongInput();
    return table;
  }

  /** The row in a record's value, whose key is `key`. */
  unpack(bytes: Buffer, key: Buffer): Row {
    if (bytes[0] === brace) return JSON.parse(bytes.toString()) as Row;
    const place = { at: 1 };
    const task = readVarint(bytes, place);
    const columns = this.#schemas.get(`${String(task)}/${String(readVarint(bytes, place))}`);
    if (bytes[0] !== packedRow || columns === undefined) throw wrongInput();
    const cells = columns.map((column) => [column, this.#cellAt(bytes, place, key)] as const);
    if (place.at !== bytes.length) throw wrongInput();
    // Not by assignment, which a column named "__proto__" would take for something else.
    return Object.fromEntries(cells);
  }

  #cellAt(bytes: Buffer, place: { at: number }, key: Buffer): unknown {
    const header = readVarint(bytes, place);
    if (header === isKey) return this.#valueOf(key);
    const end = place.at + (header >>> 1);
    if (end > bytes.length) throw wrongInput();
    const text = bytes.toString('utf8', place.at, end);
    place.at = end;
    return header % 2 === 0 ? text : JSON.parse(text);
  }

  /** Rows of one key come one after the other. */
  #valueOf(key: Buffer): unknown {
    if (this.#key?.equals(key) !== true) {
      this.#key = Buffer.from(key);
      this.#keyValue = JSON.parse(key.toString());
    }
    return this.#keyValue;
  }
}

function readVarint(bytes: Buffer, place: { at: number }): number {
  let value = 0;
  for (let shift = 0; shift < 35; shift += 7) {
    const byte = bytes[place.at++];
    if (byte === undefined) throw wrongInput();
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value >>> 0;
  }
  throw wrongInput();
}
