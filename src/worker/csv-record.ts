import { limits } from '../contracts/limits.ts';

/** What came of a line: a whole record, one that goes on in the next line, or what is wrong with it. */
export type CsvOutcome =
  | { readonly kind: 'record'; readonly fields: readonly string[] }
  | { readonly kind: 'open' }
  | { readonly kind: 'bad'; readonly what: string };

/** Pieces of a quoted field that are held before they become one. */
const maxPieces = 1_000;
const tooMany: CsvOutcome = { kind: 'bad', what: `more than ${String(limits.recordFields)} fields` };
const open: CsvOutcome = { kind: 'open' };

/**
 * Puts CSV records together, line by line (RFC 4180): fields between commas; quoted ones may hold commas, line ends
 * and doubled quotes. Lines end in "\n" or "\r\n". After `bad` the next line begins a new record, so that a stray
 * quote costs one record and not the rest of the file.
 */
export class CsvRecordParser {
  #fields: string[] = [];
  /** Pieces of the quoted field that is open, undefined outside of one. */
  #pieces: string[] | undefined;

  /** Whether a record is open at the end of the lines so far. */
  get isOpen(): boolean {
    return this.#pieces !== undefined;
  }

  /** Takes the next line, without its "\n". */
  push(line: string): CsvOutcome {
    const text = line.endsWith('\r') ? line.slice(0, -1) : line;
    if (this.#pieces === undefined && !text.includes('"')) {
      const fields = text.split(',', limits.recordFields + 1);
      return fields.length > limits.recordFields ? tooMany : { kind: 'record', fields };
    }
    const outcome = this.#scan(text, text.length < line.length ? '\r\n' : '\n');
    if (outcome.kind !== 'open') {
      this.#fields = [];
      this.#pieces = undefined;
    }
    return outcome;
  }

  #scan(text: string, lineEnd: string): CsvOutcome {
    let at = 0;
    // Each round takes one field or one piece of a quoted one, so that it ends within the line's length.
    for (;;) {
      if (this.#fields.length >= limits.recordFields) return tooMany;
      if (this.#pieces === undefined && text[at] === '"') {
        this.#pieces = [];
        at++;
      }
      if (this.#pieces === undefined) {
        const comma = text.indexOf(',', at);
        const field = comma < 0 ? text.slice(at) : text.slice(at, comma);
        if (field.includes('"'))
          return { kind: 'bad', what: 'a quote within a field that does not begin with one' };
        this.#fields.push(field);
        if (comma < 0) return { kind: 'record', fields: this.#fields };
        at = comma + 1;
        continue;
      }
      const quote = text.indexOf('"', at);
      if (quote < 0) {
        this.#pieces.push(text.slice(at), lineEnd);
        this.#compact();
        return open;
      }
      const isDoubled = text[quote + 1] === '"';
      this.#pieces.push(text.slice(at, isDoubled ? quote + 1 : quote));
      this.#compact();
      at = quote + (isDoubled ? 2 : 1);
      if (isDoubled) continue;
      this.#fields.push(this.#pieces.join(''));
      this.#pieces = undefined;
      if (at === text.length) return { kind: 'record', fields: this.#fields };
      if (text[at] !== ',') return { kind: 'bad', what: 'text after the closing quote of a field' };
      at++;
    }
  }

  /** Millions of short pieces would take many times the memory of their text. */
  #compact(): void {
    if (this.#pieces !== undefined && this.#pieces.length > maxPieces) this.#pieces = [this.#pieces.join('')];
  }
}
