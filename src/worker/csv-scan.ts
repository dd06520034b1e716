const comma = 0x2c;
const newline = 0x0a;
const carriageReturn = 0x0d;
const quote = 0x22;

/**
 * Finds the records of well-formed CSV in bytes, without making a text of any field. What is not plainly well-formed (a
 * quote within a field, a lone "\r", too few or too many fields) it calls odd, for a slower reader to judge.
 */
export class CsvScanner {
  readonly #fields: number;
  readonly #keyField: number;
  /** Records of the last scan; the places of record i are at i. An end is that of the last cell. */
  count = 0;
  starts = new Int32Array(4096);
  ends = new Int32Array(4096);
  keyStarts = new Int32Array(4096);
  keyEnds = new Int32Array(4096);
  /** Where the first record begins that is not whole: a quoted field is open at the end. */
  rest = 0;
  /** Whether the records lie one after the other with "\n" between: no "\r\n", no empty lines. */
  isPlain = true;

  /** Of records with so many fields; `keyField` is the index of the one whose places are told, -1 for none. */
  constructor(fields: number, keyField: number) {
    this.#fields = fields;
    this.#keyField = keyField;
  }

  /** Scans `bytes`, which end after "\n". False where something is odd, from record `count` on. */
  scan(bytes: Uint8Array): boolean {
    this.count = 0;
    this.isPlain = true;
    this.rest = 0;
    while (this.rest < bytes.length) {
      const next = this.#record(bytes, this.rest);
      if (next < 0) return false;
      if (next === 0) return true;
      this.rest = next;
    }
    return true;
  }

  /** Where the next record begins; 0 where this one is open at the end; -1 where it is odd. */
  #record(bytes: Uint8Array, start: number): number {
    const { length } = bytes;
    let field = 0;
    let cell = start;
    let keyStart = start;
    let keyEnd = start;
    let at = start;
    for (;;) {
      if (at >= length) return 0;
      const byte = bytes[at] ?? 0;
      if (byte > comma) at++;
      else if (byte === comma) {
        if (field === this.#keyField) {
          keyStart = cell;
          keyEnd = at;
        }
        field++;
        cell = ++at;
      } else if (byte === newline) {
        const hasReturn = at > cell && bytes[at - 1] === carriageReturn;
        return this.#end({
          start,
          end: hasReturn ? at - 1 : at,
          next: at + 1,
          field,
          cell,
          keyStart,
          keyEnd,
        });
      } else if (byte === quote) {
        if (at !== cell) return -1;
        at = closingQuote(bytes, at + 1);
        if (at < 0) return 0;
        const after = bytes[at];
        if (after !== comma && after !== newline && after !== carriageReturn) return -1;
      } else if (byte === carriageReturn && bytes[at + 1] !== newline) return -1;
      else at++;
    }
  }

  #end(found: {
    readonly start: number;
    readonly end: number;
    readonly next: number;
    readonly field: number;
    readonly cell: number;
    readonly keyStart: number;
    readonly keyEnd: number;
  }): number {
    const { start, end, next, field, cell } = found;
    if (end + 1 !== next) this.isPlain = false;
    if (field === 0 && end === start) {
      this.isPlain = false;
      return next;
    }
    if (field + 1 !== this.#fields) return -1;
    if (this.count === this.starts.length) this.#grow();
    this.starts[this.count] = start;
    this.ends[this.count] = end;
    const isLast = field === this.#keyField;
    this.keyStarts[this.count] = isLast ? cell : found.keyStart;
    this.keyEnds[this.count] = isLast ? end : found.keyEnd;
    this.count++;
    return next;
  }

  #grow(): void {
    const larger = (places: Int32Array): Int32Array<ArrayBuffer> => {
      const grown = new Int32Array(2 * places.length);
      grown.set(places);
      return grown;
    };
    this.starts = larger(this.starts);
    this.ends = larger(this.ends);
    this.keyStarts = larger(this.keyStarts);
    this.keyEnds = larger(this.keyEnds);
  }
}

/** Behind the quote that closes a field, -1 where none does. */
function closingQuote(bytes: Uint8Array, from: number): number {
  for (let at = from; ; at += 2) {
    at = bytes.indexOf(quote, at);
    if (at < 0) return -1;
    if (bytes[at + 1] !== quote) return at + 1;
  }
}
