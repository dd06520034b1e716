const newline = 0x0a;
const quote = 0x22;
const backslash = 0x5c;
const zero = 0x30;
const nine = 0x39;
const minus = 0x2d;
const point = 0x2e;
/** Digits of which every double keeps each. */
const safeDigits = 15;

const literals = ['true', 'false', 'null'].map((text) => Buffer.from(text));
/** What may follow a backslash, but for the four digits of "u". */
const escaped = new Set(Buffer.from('"\\/bfnrtu'));

/**
 * Finds the values of some columns in lines of JSON objects, without making anything of the others. It is sure of what it finds:
 * lines that are no plain objects of strings, numbers, true, false and null it calls odd, for a parser to judge, and those in
 * which such a column is named with escapes, holds them, or holds a number that is long or has an exponent.
 */
export class JsonScanner {
  readonly #names: readonly Buffer[];
  /** Records of the last scan; the value of column c of record r is at r * columns + c, and empty where there is none. */
  count = 0;
  starts = new Int32Array(4096);
  ends = new Int32Array(4096);
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;

  constructor(columns: readonly string[]) {
    this.#names = columns.map((name) => Buffer.from(name));
  }

  /** Scans lines from `start` on; answers where the first odd one begins, else the end of the bytes. */
  scan(bytes: Buffer, start: number): number {
    this.#bytes = bytes;
    this.count = 0;
    for (let at = start; at < bytes.length;) {
      this.#begin();
      this.#at = at;
      const found = this.#line();
      if (found === undefined) return at;
      if (found) this.count++;
      at = this.#at + 1;
    }
    return bytes.length;
  }

  #begin(): void {
    const columns = this.#names.length;
    const from = this.count * columns;
    if (from + columns > this.starts.length) {
      this.starts = grown(this.starts);
      this.ends = grown(this.ends);
    }
    this.starts.fill(0, from, from + columns);
    this.ends.fill(0, from, from + columns);
  }

  /** Whether there is an object in the line, at whose end it stops; undefined where it is odd. */
  #line(): boolean | undefined {
    this.#blanks();
    if (this.#isAtEnd()) return false;
    if (this.#next() !== 0x7b) return undefined;
    this.#blanks();
    if (this.#peek() === 0x7d) this.#at++;
    else
      for (;;) {
        if (!this.#field()) return undefined;
        const after = this.#next();
        if (after === 0x7d) break;
        if (after !== 0x2c) return undefined;
        this.#blanks();
      }
    this.#blanks();
    return this.#isAtEnd() ? true : undefined;
  }

  #peek(): number {
    return this.#bytes[this.#at] ?? newline;
  }

  #next(): number {
    return this.#bytes[this.#at++] ?? newline;
  }

  #isAtEnd(): boolean {
    return this.#at >= this.#bytes.length || this.#bytes[this.#at] === newline;
  }

  #blanks(): void {
    for (let byte = this.#peek(); byte === 0x20 || byte === 0x09 || byte === 0x0d; byte = this.#peek())
      this.#at++;
  }

  /** A name, its value, and the blanks behind it. */
  #field(): boolean {
    const nameAt = this.#at + 1;
    if (this.#next() !== quote || !this.#string(false)) return false;
    const column = this.#columnOf(nameAt, this.#at - 1);
    this.#blanks();
    if (this.#next() !== 0x3a) return false;
    this.#blanks();
    const start = this.#at;
    if (!this.#value(column < 0)) return false;
    // Of two fields of one name the last one counts.
    if (column >= 0) {
      const place = this.count * this.#names.length + column;
      this.starts[place] = start;
      this.ends[place] = this.#at;
    }
    this.#blanks();
    return true;
  }

  #columnOf(start: number, end: number): number {
    for (let column = 0; column < this.#names.length; column++) {
      const name = this.#names[column];
      if (name?.length !== end - start) continue;
      let same = 0;
      while (same < name.length && name[same] === this.#bytes[start + same]) same++;
      if (same === name.length) return column;
    }
    return -1;
  }

  #value(isFree: boolean): boolean {
    const byte = this.#peek();
    if (byte === quote) {
      this.#at++;
      return this.#string(isFree);
    }
    if (byte === minus || (byte >= zero && byte <= nine)) return this.#number(isFree);
    const literal = literals.find(([first]) => first === byte);
    if (literal === undefined) return false;
    const start = this.#at;
    this.#at += literal.length;
    return literal.equals(this.#bytes.subarray(start, this.#at));
  }

  /** Behind the quote at which a string begins; with escapes only where they may be. */
  #string(mayEscape: boolean): boolean {
    const bytes = this.#bytes;
    for (let at = this.#at; at < bytes.length; at++) {
      const byte = bytes[at] ?? 0;
      if (byte === quote) {
        this.#at = at + 1;
        return true;
      }
      if (byte < 0x20) return false;
      if (byte !== backslash) continue;
      const next = bytes[++at] ?? 0;
      if (!mayEscape || !escaped.has(next)) return false;
      if (next === 0x75 && !/^[\da-fA-F]{4}$/.test(bytes.toString('latin1', at + 1, at + 5))) return false;
    }
    return false;
  }

  #number(isFree: boolean): boolean {
    if (this.#peek() === minus) this.#at++;
    const hasZero = this.#peek() === zero;
    const whole = this.#digits();
    if (whole === 0 || (hasZero && whole > 1)) return false;
    let fraction = 0;
    if (this.#peek() === point) {
      this.#at++;
      fraction = this.#digits();
      if (fraction === 0) return false;
    }
    const byte = this.#peek();
    // With an exponent, or of hundreds of digits, it may be beyond the range of doubles.
    if (byte === 0x65 || byte === 0x45) return false;
    return whole + fraction <= (isFree ? 300 : safeDigits);
  }

  #digits(): number {
    const start = this.#at;
    for (let byte = this.#peek(); byte >= zero && byte <= nine; byte = this.#peek()) this.#at++;
    return this.#at - start;
  }
}

function grown(places: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(2 * places.length + 4096);
  larger.set(places);
  return larger;
}
