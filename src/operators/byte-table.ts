import { copyBytes } from './csv-cells.ts';

const prime = 0x01000193;
/** Of 32 bits with a sign, as all hashes are: also that of the empty key. */
const offset = 0x811c9dc5 | 0;
/** Other than what partitions are found by: keys of one partition shall lie in all of the table. */
const spread = 0x9e3779b1;

/** Of an entry, in words of 4 bytes: the next one of its key (0: none), the length of the key, that of the text. */
const headWords = 3;
const leastRows = 8;

/** About how many bytes a table takes, of so many rows of so many bytes in all. */
export const byteTableBytes = (rows: number, textBytes: number): number =>
  textBytes + rows * (4 * headWords + 3 + 2 * 8);

/** A key: bytes [start, end). */
interface Key {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
}

/** The hash of a key. */
export function byteHash({ bytes, start, end }: Key): number {
  let hash = offset;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), prime);
  return hash;
}

/**
 * Texts by key, both bytes, many to a key: entries lie in one piece of memory and are found by open addressing, so that a row
 * costs its bytes and some 30 more, and nothing to the garbage collector.
 */
export class ByteTable {
  /** Pairs of a hash and the place of an entry in words, of which 0 means that there is none. */
  readonly #slots: Int32Array;
  readonly #shift: number;
  readonly #mask: number;
  #words: Int32Array;
  #bytes: Buffer;
  #used = 1;

  /** For up to so many rows, of about so many bytes in all. */
  constructor(rows: number, textBytes: number) {
    const bits = Math.ceil(Math.log2(2 * Math.max(leastRows, rows)));
    this.#slots = new Int32Array(2 * 2 ** bits);
    this.#shift = 32 - bits;
    this.#mask = 2 ** bits - 1;
    this.#words = new Int32Array(Math.ceil(byteTableBytes(rows, textBytes) / 4));
    this.#bytes = Buffer.from(this.#words.buffer);
  }

  /** What texts are copied from. */
  get bytes(): Buffer {
    return this.#bytes;
  }

  /** Adds a text under a key. */
  add(key: Key, text: Buffer): void {
    const { bytes, start, end } = key;
    const entry = this.#used;
    const keyBytes = end - start;
    this.#reserve(entry + headWords + ((keyBytes + text.length + 3) >> 2));
    this.#words[entry + 1] = keyBytes;
    this.#words[entry + 2] = text.length;
    const at = copyBytes(bytes, start, end, this.#bytes, 4 * (entry + headWords));
    copyBytes(text, 0, text.length, this.#bytes, at);
    this.#used = entry + headWords + ((keyBytes + text.length + 3) >> 2);
    const hash = byteHash(key);
    let slot = this.slotOf(hash);
    while (this.#slots[slot + 1] !== 0 && !this.#isAt(slot, hash, key)) slot = this.#after(slot);
    this.#words[entry] = this.#slots[slot + 1] ?? 0;
    this.#slots[slot] = hash;
    this.#slots[slot + 1] = entry;
  }

  /** The first slot that is free or of that hash. To ask for many before their entries are looked at overlaps the waits for memory. */
  slotOf(hash: number): number {
    let at = 2 * (Math.imul(hash, spread) >>> this.#shift);
    while (this.#slots[at + 1] !== 0 && this.#slots[at] !== hash) at = this.#after(at);
    return at;
  }

  /** Whether a slot has an entry. */
  hasEntry(slot: number): boolean {
    return this.#slots[slot + 1] !== 0;
  }

  /** Brings a slot's entry near, and answers 0 where it has none. */
  look(slot: number): number {
    const entry = this.#slots[slot + 1] ?? 0;
    return entry | ((this.#words[entry + 1] ?? 0) & 1);
  }

  /** The entry of a key, looked for from that slot on; 0 where there is none. */
  find(slot: number, hash: number, key: Key): number {
    let at = slot;
    while (this.#slots[at + 1] !== 0 && !this.#isAt(at, hash, key)) at = this.#after(at);
    return this.#slots[at + 1] ?? 0;
  }

  /** The next entry of the same key; 0 after the last. */
  next(entry: number): number {
    return this.#words[entry] ?? 0;
  }

  textStart(entry: number): number {
    return 4 * (entry + headWords) + (this.#words[entry + 1] ?? 0);
  }

  textBytes(entry: number): number {
    return this.#words[entry + 2] ?? 0;
  }

  #after(slot: number): number {
    return (slot + 2) & (2 * this.#mask + 1);
  }

  #isAt(slot: number, hash: number, { bytes, start, end }: Key): boolean {
    if (this.#slots[slot] !== hash) return false;
    const entry = this.#slots[slot + 1] ?? 0;
    if (this.#words[entry + 1] !== end - start) return false;
    let own = 4 * (entry + headWords);
    for (let at = start; at < end; at++) if (this.#bytes[own++] !== bytes[at]) return false;
    return true;
  }

  #reserve(words: number): void {
    if (words <= this.#words.length) return;
    const grown = new Int32Array(Math.max(words, Math.ceil(1.25 * this.#words.length)));
    grown.set(this.#words);
    this.#words = grown;
    this.#bytes = Buffer.from(grown.buffer);
  }
}
