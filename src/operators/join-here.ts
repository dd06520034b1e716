import { createReadStream } from 'node:fs';
import { invariant } from '../contracts/errors.ts';
import { CsvScanner } from '../worker/csv-scan.ts';
import type { BadRecordError, CsvRecords, TaskContext, TaskOutput } from '../worker/operator.ts';
import { byteHash, ByteTable, byteTableBytes } from './byte-table.ts';
import { CellBytes, copyBytes, copyCell, findCells } from './csv-cells.ts';
import type { TableFile } from './duckdb/joined-files.ts';
import type { JoinOutputOptions, JoinSideOptions } from './join-options.ts';
import { heldBytesOption } from './join-options.ts';
import { rightNames, strangerIn } from './join-rows.ts';
import type { FileSide } from './join-side.ts';

/*
 * Joins of CSV with CSV, written as CSV, where the right-hand side fits into memory: lines are looked up and copied as bytes, and
 * no text is made of any cell.
 */

const readBytes = 512 * 1024;
const writeBytes = 256 * 1024;
/** Records that are looked up together: their entries stay in a cache of the processor until they are written. */
const batchRecords = 1024;
const newline = 0x0a;
const comma = 0x2c;
const quote = 0x22;
const emptyCell = Buffer.from('""');

/** Records of one list of columns: which of their cells are written, -1 for one that there is not, and where the key is. */
export interface RecordForm {
  readonly fields: number;
  readonly key: number;
  readonly cells: readonly number[];
  /** Why no match of them can be written. */
  readonly wrong?: BadRecordError | undefined;
}

/** Whether the lines of a file are CSV, of no other columns than these. */
export const isCsvOf = ({ columns, form }: TableFile, known: readonly string[]): boolean =>
  form.kind === 'csv' && strangerIn(columns, known) === undefined;

const formOfFile = ({ columns, form }: TableFile, wanted: readonly string[]): RecordForm => ({
  fields: form.fields,
  key: form.key,
  cells: wanted.map((name) => form.cells[columns.indexOf(name)] ?? -1),
});

/** The right-hand side of a join by a table. */
export interface HeldSide {
  readonly files: readonly TableFile[];
  readonly columns: readonly string[];
  readonly rows: number;
  readonly textBytes: number;
}

/** The right-hand side where it can be held in a table; undefined where it cannot. */
export function planJoinHere(
  { options, engine }: TaskContext,
  form: JoinOutputOptions,
  { files, columns }: FileSide,
): HeldSide | undefined {
  if (form.output !== 'csv' || columns === undefined) return undefined;
  if (!files.every((file) => isCsvOf(file, columns))) return undefined;
  const rows = files.reduce((sum, file) => sum + file.rows, 0);
  const textBytes = files.reduce((sum, file) => sum + file.sizeBytes, 0);
  const fits = byteTableBytes(rows, textBytes) <= heldBytesOption(options, engine);
  return fits ? { files, columns, rows, textBytes } : undefined;
}

/** Writes cells of a record one after the other, with commas between them. */
class CellText {
  bytes: Buffer = Buffer.allocUnsafe(4096);
  length = 0;
  #places = new Int32Array(64);

  take(bytes: Buffer, start: number, end: number, { fields, cells }: RecordForm): void {
    if (this.#places.length <= fields) this.#places = new Int32Array(2 * fields);
    const most = end - start + cells.length + 1;
    if (this.bytes.length < most) this.bytes = Buffer.allocUnsafe(2 * most);
    const places = this.#places;
    findCells(bytes, start, end, places, fields - 1);
    let at = 0;
    for (let index = 0; index < cells.length; index++) {
      const cell = cells[index] ?? -1;
      if (index > 0) this.bytes[at++] = comma;
      if (cell >= 0) at = copyCell(bytes, places[cell] ?? 0, (places[cell + 1] ?? 0) - 1, this.bytes, at);
    }
    this.length = at;
  }
}

/** The records of a file of lines of CSV, many at once. */
async function* recordsOfFile(
  { path, start }: TableFile,
  { fields, key }: RecordForm,
): AsyncGenerator<{ readonly bytes: Buffer; readonly records: CsvRecords }> {
  const records = new CsvScanner(fields, key);
  let open: Buffer = Buffer.alloc(0);
  const chunks = createReadStream(path, { start, highWaterMark: readBytes }) as AsyncIterable<Buffer>;
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf(newline) + 1;
    if (end === 0) {
      open = Buffer.concat([open, chunk]);
      continue;
    }
    const whole = chunk.subarray(0, end);
    const bytes = open.length === 0 ? whole : Buffer.concat([open, whole]);
    invariant(records.scan(bytes), 'what a join laid into a file is well-formed');
    yield { bytes, records };
    open = Buffer.concat([bytes.subarray(records.rest), chunk.subarray(end)]);
  }
}

/** Some records of a block, and how much of each is written as it is. */
interface Batch {
  readonly bytes: Buffer;
  readonly records: CsvRecords;
  readonly form: RecordForm;
  readonly verbatim: 'all' | 'before-key' | 'none';
  readonly from: number;
}

/** Joins records with the rows of a table, and writes them. */
export class JoinHere {
  readonly #output: TaskOutput;
  readonly #signal: AbortSignal;
  /** The columns of the whole left-hand side, all of which are written. */
  readonly #lefts: readonly string[];
  readonly #hasRights: boolean;
  readonly #table: ByteTable;
  readonly #key = new CellBytes();
  readonly #text = new CellText();
  readonly #hashes = new Int32Array(batchRecords);
  readonly #slots = new Int32Array(batchRecords);
  #out = Buffer.allocUnsafe(2 * writeBytes);
  #used = 0;
  #rows = 0;

  private constructor(
    { output, signal }: TaskContext,
    lefts: readonly string[],
    { table, hasRights }: { table: ByteTable; hasRights: boolean },
  ) {
    this.#output = output;
    this.#signal = signal;
    this.#lefts = lefts;
    this.#table = table;
    this.#hasRights = hasRights;
  }

  /** With all rows of the right-hand side, and the columns of the whole left-hand side. */
  static async open(
    context: TaskContext,
    options: JoinOutputOptions,
    lefts: readonly string[],
    { files, columns, rows, textBytes }: HeldSide,
  ): Promise<JoinHere> {
    const names = rightNames(lefts, columns, options);
    const rights = columns.filter((column) => names.get(column) !== undefined);
    const table = new ByteTable(rows, textBytes);
    const [key, text] = [new CellBytes(), new CellText()];
    for (const file of files) {
      const form = formOfFile(file, rights);
      for await (const { bytes, records } of recordsOfFile(file, form)) {
        context.signal.throwIfAborted();
        for (let record = 0; record < records.count; record++) {
          key.take(bytes, records.keyStarts[record] ?? 0, records.keyEnds[record] ?? 0);
          text.take(bytes, records.starts[record] ?? 0, records.ends[record] ?? 0, form);
          table.add(key, text.bytes.subarray(0, text.length));
        }
      }
    }
    return new JoinHere(context, lefts, { table, hasRights: rights.length > 0 });
  }

  /** Joins the lines of a left-hand file. */
  async joinFile(file: TableFile): Promise<void> {
    const form = formOfFile(file, this.#lefts);
    for await (const { bytes, records } of recordsOfFile(file, form)) await this.join(bytes, records, form);
  }

  /** The form of records of these columns; where only some are kept, they are those of the whole side. */
  formOf(columns: readonly string[], { key, columns: kept }: JoinSideOptions): RecordForm {
    return {
      fields: columns.length,
      key: columns.indexOf(key),
      cells: this.#lefts.map((column) => columns.indexOf(column)),
      wrong: strangerIn(kept ?? columns, this.#lefts),
    };
  }

  /** Joins records of the left-hand side, in their order. */
  async join(bytes: Buffer, records: CsvRecords, form: RecordForm): Promise<void> {
    this.#signal.throwIfAborted();
    const isPlain = !bytes.includes(quote);
    const verbatim = isPlain ? verbatimPart(form) : 'none';
    for (let from = 0; from < records.count; from += batchRecords)
      await this.#joinSome({ bytes, records, form, verbatim, from });
  }

  /** Writes what is held; needed at the end. */
  async flush(): Promise<void> {
    if (this.#used > 0) await this.#output.write(this.#out.subarray(0, this.#used), this.#rows);
    this.#used = 0;
    this.#rows = 0;
  }

  async #joinSome({ bytes, records, form, verbatim, from }: Batch): Promise<void> {
    const { starts, ends, keyStarts, keyEnds } = records;
    const to = Math.min(records.count, from + batchRecords);
    if (this.#lookUp(bytes, records, from, to) === 0) return;
    const table = this.#table;
    const key = this.#key;
    for (let record = from; record < to; record++) {
      const slot = this.#slots[record - from] ?? 0;
      if (!table.hasEntry(slot)) continue;
      const [keyStart, keyEnd] = [keyStarts[record] ?? 0, keyEnds[record] ?? 0];
      key.take(bytes, keyStart, keyEnd);
      let entry = table.find(slot, this.#hashes[record - from] ?? 0, key);
      if (entry === 0) continue;
      if (form.wrong !== undefined) throw form.wrong;
      let text = bytes;
      let start = starts[record] ?? 0;
      let end = verbatim === 'before-key' ? keyStart - 1 : (ends[record] ?? 0);
      if (verbatim === 'none') {
        this.#text.take(bytes, start, end, form);
        text = this.#text.bytes;
        start = 0;
        end = this.#text.length;
      }
      for (; entry !== 0; entry = table.next(entry)) {
        const size = end - start + table.textBytes(entry) + emptyCell.length + 2;
        if (this.#used + size > this.#out.length) await this.#room(size);
        this.#pair(text, start, end, entry);
      }
    }
  }

  /**
   * All hashes, then all slots, then a look at all entries, which answers 0 where there are none: what must come from memory is
   * waited for together.
   */
  #lookUp(bytes: Buffer, { keyStarts, keyEnds }: CsvRecords, from: number, to: number): number {
    const key = this.#key;
    const hashes = this.#hashes;
    const slots = this.#slots;
    for (let record = from; record < to; record++) {
      key.take(bytes, keyStarts[record] ?? 0, keyEnds[record] ?? 0);
      hashes[record - from] = byteHash(key);
    }
    for (let at = 0; at < to - from; at++) slots[at] = this.#table.slotOf(hashes[at] ?? 0);
    let seen = 0;
    for (let at = 0; at < to - from; at++) seen |= this.#table.look(slots[at] ?? 0);
    return seen;
  }

  #pair(text: Buffer, start: number, end: number, entry: number): void {
    const out = this.#out;
    let at = copyBytes(text, start, end, out, this.#used);
    if (this.#hasRights) {
      const from = this.#table.textStart(entry);
      out[at++] = comma;
      at = copyBytes(this.#table.bytes, from, from + this.#table.textBytes(entry), out, at);
    } else if (start === end && this.#lefts.length === 1) {
      // Readers skip empty lines, so that a lone empty field must be told from one.
      at += emptyCell.copy(out, at);
    }
    out[at++] = newline;
    this.#used = at;
    this.#rows++;
  }

  async #room(size: number): Promise<void> {
    await this.flush();
    if (size > this.#out.length) this.#out = Buffer.allocUnsafe(2 * size);
  }
}

/** How much of a record without quotes is written as it is: all of it, what is before its key, or not even that. */
function verbatimPart({ fields, key, cells }: RecordForm): Batch['verbatim'] {
  if (cells.some((cell, index) => cell !== index)) return 'none';
  if (cells.length === fields) return 'all';
  return cells.length === key && key > 0 ? 'before-key' : 'none';
}
