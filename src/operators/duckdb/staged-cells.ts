import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { BadValueError } from '../../worker/operator.ts';
import type { JsonCells, TaskInput } from '../../worker/operator.ts';
import { canonical } from '../aggregates.ts';
import { isAggregated } from '../group-lines.ts';
import type { CountedColumn } from '../group-lines.ts';
import type { GroupFile } from './group-file.ts';

const writeBytes = 256 * 1024;
const quote = 0x22;
const backslash = 0x5c;
const tab = 0x09;
const newline = 0x0a;
/** Longest number that is surely of digits of which doubles keep each. */
const shortNumber = 16;
/** Whole numbers that are written so by JavaScript, too. */
const isBrief = /^(?:0|-?[1-9]\d{0,14})$/;

/**
 * Writes rows of NDJSON as lines between tabs: the JSON of the key's values as a list, then the values of columns as texts. Null is an
 * empty cell; so is an empty text where a column is not counted. Throws `BadValueError`, without saying which, where a value cannot be
 * aggregated, and for an empty text in a column that is both counted and aggregated: one cell cannot say both.
 */
export async function stageCells(
  inputs: readonly TaskInput[],
  { key, columns }: { readonly key: readonly string[]; readonly columns: readonly CountedColumn[] },
  path: string,
): Promise<GroupFile> {
  const names = [...new Set([...key, ...columns.map(({ column }) => column)])];
  const handle = await open(path, 'w');
  try {
    const lines = new CellLines(handle, {
      width: names.length,
      keys: key.map((name) => names.indexOf(name)),
      values: columns.map((one) => ({
        place: names.indexOf(one.column),
        isNumber: isAggregated(one),
        isCounted: one.isCounted,
      })),
    });
    for (const input of inputs)
      for await (const cells of input.cells?.(names) ?? []) {
        const wait = lines.add(cells);
        if (wait !== undefined) await wait;
      }
    await lines.flush();
    return { path, longestBytes: lines.longestBytes };
  } finally {
    await handle.close();
  }
}

/** Which cells of a record stand in a line. */
interface LineForm {
  /** Cells of a record. */
  readonly width: number;
  readonly keys: readonly number[];
  readonly values: readonly ValueForm[];
}

interface ValueForm {
  readonly place: number;
  readonly isNumber: boolean;
  readonly isCounted: boolean;
}

class CellLines {
  longestBytes = 0;
  readonly #handle: FileHandle;
  readonly #form: LineForm;
  #buffer = Buffer.allocUnsafe(2 * writeBytes);
  #used = 0;

  constructor(handle: FileHandle, form: LineForm) {
    this.#handle = handle;
    this.#form = form;
  }

  /** Await what is returned. */
  add(cells: JsonCells, from = 0): Promise<void> | undefined {
    for (let record = from; record < cells.count; record++) {
      const before = this.#used;
      this.#line(cells, record * this.#form.width);
      this.longestBytes = Math.max(this.longestBytes, this.#used - before);
      if (this.#used >= writeBytes) return this.flush().then(() => this.add(cells, record + 1));
    }
    return undefined;
  }

  async flush(): Promise<void> {
    await this.#handle.appendFile(this.#buffer.subarray(0, this.#used));
    this.#used = 0;
  }

  #line(cells: JsonCells, first: number): void {
    const { keys, values } = this.#form;
    let between = 0x5b;
    for (const place of keys) {
      this.#byte(between);
      this.#key(cells, first + place);
      between = 0x2c;
    }
    this.#byte(0x5d);
    for (const form of values) {
      this.#byte(tab);
      this.#value(cells, first + form.place, form);
    }
    this.#byte(newline);
  }

  #key({ bytes, starts, ends }: JsonCells, index: number): void {
    const [start, end] = [starts[index] ?? 0, ends[index] ?? 0];
    const byte = bytes[start] ?? 0;
    if (start === end) this.#text('null');
    else if (isDigit(byte) || byte === 0x2d) {
      const text = bytes.toString('latin1', start, end);
      this.#text(isBrief.test(text) ? text : JSON.stringify(Number(text)));
    } else this.#bytes(bytes, start, end);
  }

  #value({ bytes, starts, ends }: JsonCells, index: number, { isNumber, isCounted }: ValueForm): void {
    const [start, end] = [starts[index] ?? 0, ends[index] ?? 0];
    const byte = bytes[start] ?? 0;
    // Null, as what is not there, counts for nothing.
    if (start === end || byte === 0x6e) return;
    if (byte === quote && end - start === 2 && isCounted) {
      // An empty text is a value, but no number.
      if (isNumber) throw new BadValueError('an empty text counts, but is no number');
      this.#text('1');
    } else if (byte === quote) {
      const slash = bytes.indexOf(backslash, start);
      if (slash < 0 || slash >= end) this.#bytes(bytes, start + 1, end - 1);
      else this.#text(isNumber ? plainText(bytes.toString('utf8', start, end)) : '1');
    } else if (isDigit(byte) || byte === 0x2d) {
      if (end - start <= shortNumber) this.#bytes(bytes, start, end);
      else this.#text(canonical(Number(bytes.toString('latin1', start, end))));
    } else if (isNumber) throw new BadValueError('a value is no number');
    else this.#text('1');
  }

  #byte(byte: number): void {
    if (this.#used === this.#buffer.length) this.#grow(1);
    this.#buffer[this.#used++] = byte;
  }

  #text(text: string): void {
    const bytes = Buffer.from(text);
    this.#bytes(bytes, 0, bytes.length);
  }

  #bytes(source: Buffer, start: number, end: number): void {
    const size = end - start;
    if (this.#used + size > this.#buffer.length) this.#grow(size);
    // A call into native code costs more than a short text.
    if (size > 40) source.copy(this.#buffer, this.#used, start, end);
    else for (let at = 0; at < size; at++) this.#buffer[this.#used + at] = source[start + at] ?? 0;
    this.#used += size;
  }

  #grow(size: number): void {
    const larger = Buffer.allocUnsafe(Math.max(2 * this.#buffer.length, this.#used + size));
    this.#buffer.copy(larger, 0, 0, this.#used);
    this.#buffer = larger;
  }
}

const isDigit = (byte: number): boolean => byte >= 0x30 && byte <= 0x39;

/** The text of a JSON string that may be a number, without white space around it, which may be a tab. */
function plainText(json: string): string {
  const text: unknown = JSON.parse(json);
  const trimmed = typeof text === 'string' ? text.trim() : '';
  if (trimmed === '' || /[\0-\x1f]/.test(trimmed)) throw new BadValueError('a value is no number');
  return trimmed;
}
