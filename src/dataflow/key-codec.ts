import { UserCodeError } from '../worker/operator.ts';
import type { Key } from './context.ts';

/*
 * Keys as bytes whose order is that of the keys: null, false, true, numbers, texts by code point, lists item by item. A
 * tag, then what it needs; within lists texts are ended, and the bytes that end them escaped.
 */
const Tag = { end: 0, null: 1, false: 2, true: 3, number: 4, text: 5, list: 6 } as const;
const escaped = 0xff;
const deepestKey = 16;

const double = new DataView(new ArrayBuffer(8));

/** Writes keys into memory of its own, which the next key uses again. */
export class KeyEncoder {
  #bytes = Buffer.allocUnsafeSlow(256);
  #used = 0;

  /** The bytes of a key, good until the next call. Throws `UserCodeError` for what is no key; `what` is whose it is. */
  encode(key: Key, what: string): Buffer {
    this.#used = 0;
    if (typeof key === 'string') this.#text(key, what);
    else this.#write(key, what, 0);
    return this.#bytes.subarray(0, this.#used);
  }

  /** The same with every bit turned over, so that the greatest key is the first. */
  encodeDescending(key: Key, what: string): Buffer {
    this.#used = 0;
    // As an item of a list: a text that begins another one must come after it, so its end has to count.
    this.#write(key, what, 1);
    this.#byte(Tag.end);
    for (let at = 0; at < this.#used; at++) this.#bytes[at] = ~(this.#bytes[at] ?? 0);
    return this.#bytes.subarray(0, this.#used);
  }

  #room(size: number): void {
    if (this.#used + size <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(2 * (this.#used + size));
    larger.set(this.#bytes.subarray(0, this.#used));
    this.#bytes = larger;
  }

  #byte(value: number): void {
    this.#room(1);
    this.#bytes[this.#used++] = value;
  }

  #write(key: unknown, what: string, depth: number): void {
    if (key === null) this.#byte(Tag.null);
    else if (typeof key === 'boolean') this.#byte(key ? Tag.true : Tag.false);
    else if (typeof key === 'number') this.#number(key);
    else if (typeof key === 'string') {
      if (depth === 0) this.#text(key, what);
      else this.#item(key, what);
    } else if (Array.isArray(key) && depth < deepestKey) {
      this.#byte(Tag.list);
      for (const item of key as readonly unknown[]) this.#write(item, what, depth + 1);
      this.#byte(Tag.end);
    } else throw noKey(what, key);
  }

  #number(value: number): void {
    this.#room(9);
    this.#bytes[this.#used++] = Tag.number;
    // 0 and -0 are one key, and all that is not a number another.
    double.setFloat64(0, value === 0 ? 0 : Number.isNaN(value) ? NaN : value);
    const isNegative = double.getUint8(0) >= 0x80;
    for (let at = 0; at < 8; at++) {
      const byte = double.getUint8(at);
      this.#bytes[this.#used++] = isNegative ? ~byte : at === 0 ? byte | 0x80 : byte;
    }
  }

  #text(text: string, what: string): void {
    if (!text.isWellFormed()) throw halfText(what);
    this.#room(1 + 3 * text.length);
    this.#bytes[this.#used++] = Tag.text;
    this.#used += this.#bytes.write(text, this.#used, 'utf8');
  }

  #item(text: string, what: string): void {
    if (!text.isWellFormed()) throw halfText(what);
    this.#byte(Tag.text);
    for (const byte of Buffer.from(text)) {
      this.#byte(byte);
      if (byte === Tag.end) this.#byte(escaped);
    }
    this.#byte(Tag.end);
  }
}

const halfText = (what: string): UserCodeError =>
  new UserCodeError(`${what} gave a key with half a character (a surrogate without its other half)`);

function noKey(what: string, key: unknown): UserCodeError {
  const isDeep = Array.isArray(key);
  const given = isDeep ? `a list in more than ${String(deepestKey)} lists` : nameOf(key);
  return new UserCodeError(
    `${what} gave ${given} as a key: a key is a text, a number, true, false, null or a list of these`,
  );
}

/** What a value is, for messages. */
export function nameOf(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  if (typeof value === 'function') return 'a function';
  if (typeof value !== 'object') return `a ${typeof value}`;
  if (Array.isArray(value)) return 'a list';
  const { constructor } = value as { constructor?: unknown };
  return typeof constructor === 'function' && constructor !== Object ? `a ${constructor.name}` : 'an object';
}

const longestShown = 100;

/** A key for messages. */
export function shownKey(key: Key): string {
  const text = JSON.stringify(key);
  return text.length > longestShown ? `${text.slice(0, longestShown)}…` : text;
}

/** The key behind the bytes of `KeyEncoder.encode`. */
export function decodeKey(bytes: Buffer): Key {
  if (bytes[0] === Tag.text) return bytes.toString('utf8', 1);
  return new KeyDecoder(bytes).next();
}

class KeyDecoder {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  next(): Key {
    const tag = this.#bytes[this.#at++];
    switch (tag) {
      case Tag.null:
        return null;
      case Tag.false:
        return false;
      case Tag.true:
        return true;
      case Tag.number:
        return this.#number();
      case Tag.text:
        return this.#text();
      case Tag.list:
        return this.#list();
      default:
        throw new Error('bytes that are no key');
    }
  }

  #number(): number {
    const isNegative = (this.#bytes[this.#at] ?? 0) < 0x80;
    for (let at = 0; at < 8; at++) {
      const byte = this.#bytes[this.#at++] ?? 0;
      double.setUint8(at, isNegative ? ~byte : at === 0 ? byte & 0x7f : byte);
    }
    return double.getFloat64(0);
  }

  #text(): string {
    const text: number[] = [];
    for (;;) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw new Error('bytes that are no key');
      if (byte === Tag.end) {
        if (this.#bytes[this.#at] !== escaped) break;
        this.#at++;
      }
      text.push(byte);
    }
    return Buffer.from(text).toString();
  }

  #list(): Key {
    const items: Key[] = [];
    while (this.#bytes[this.#at] !== Tag.end) items.push(this.next());
    this.#at++;
    return items;
  }
}
