/*
 * Entries lie in their slots: length + 1 (0 where the slot is empty), hash, count, then the bytes of a short string, or
 * the place in the arena of a longer one. Most lookups touch one line of the cache.
 */
const slotWords = 8;
const lengthWord = 0;
const hashWord = 1;
const countWord = 2;
const keyWord = 3;
/** Longest string whose bytes lie in its slot. */
const inlineBytes = 4 * (slotWords - keyWord);
const initialSlots = 1 << 12;
/** What a count of 32 bits holds. */
const mostAdded = 0xffff_ffff;

/** Strings in one buffer: number i is bytes [starts[i], ends[i]), and hashes[i] is `hashBytes` of them. */
export interface Spots {
  readonly bytes: Buffer;
  readonly count: number;
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  readonly hashes: Int32Array;
}

/**
 * Counts byte strings without making a string of each: an open-addressing table over words of 32 bits. Holds a bounded
 * number of bytes; the owner empties it when `isFull`.
 */
export class CountTable {
  /** Number of entries. */
  size = 0;
  readonly #arena: Buffer;
  #arenaUsed = 0;
  #added = 0;
  readonly #maxEntries: number;
  #slots = new Int32Array(initialSlots * slotWords);
  #bytes: Buffer = Buffer.alloc(0);
  #view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.length);

  /** `arenaBytes` bounds the bytes of the distinct long strings, `maxEntries` the number of all. */
  constructor({ arenaBytes, maxEntries }: { arenaBytes: number; maxEntries: number }) {
    this.#arena = Buffer.allocUnsafeSlow(arenaBytes);
    this.#maxEntries = maxEntries;
  }

  /** Whether `add` of a string of `length` bytes may find no room. */
  isFull(length: number): boolean {
    return (
      this.size >= this.#maxEntries ||
      this.#added === mostAdded ||
      (length > inlineBytes && this.#arenaUsed + length > this.#arena.length)
    );
  }

  /** Adds 1 to the count of bytes [start, end) of `from`; `hash` must be `hashBytes` of them. */
  add(from: Buffer, start: number, end: number, hash: number): void {
    this.#look(from);
    this.#addOne(start, end - start, hash);
  }

  /** Adds 1 to the count of each string from number `from` on while there is room; answers how many it added. */
  addAll({ bytes, starts, ends, hashes, count }: Spots, from: number): number {
    this.#look(bytes);
    for (let each = from; each < count; each++) {
      const start = starts[each] ?? 0;
      const length = (ends[each] ?? 0) - start;
      if (this.isFull(length)) return each - from;
      this.#addOne(start, length, hashes[each] ?? 0);
    }
    return count - from;
  }

  /** Entries, in the same order whenever the same was added. The key is a view into the table: good until `clear`. */
  *entries(): Generator<readonly [key: Buffer, count: number, hash: number]> {
    const slots = this.#slots;
    const all = Buffer.from(slots.buffer);
    for (let at = 0; at < slots.length; at += slotWords) {
      const length = (slots[at + lengthWord] ?? 0) - 1;
      if (length < 0) continue;
      const long = slots[at + keyWord] ?? 0;
      const start = 4 * (at + keyWord);
      const key =
        length > inlineBytes
          ? this.#arena.subarray(long, long + length)
          : all.subarray(start, start + length);
      yield [key, (slots[at + countWord] ?? 0) >>> 0, slots[at + hashWord] ?? 0];
    }
  }

  /** Forgets all entries. */
  clear(): void {
    this.size = 0;
    this.#arenaUsed = 0;
    this.#added = 0;
    this.#slots.fill(0);
  }

  #look(bytes: Buffer): void {
    if (bytes === this.#bytes) return;
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  #addOne(start: number, length: number, hash: number): void {
    this.#added++;
    if (length > inlineBytes) this.#addLong(start, length, hash);
    else if (start + inlineBytes > this.#bytes.length) this.#addLast(start, length, hash);
    else this.#addShort(start, length, hash);
  }

  #addShort(start: number, length: number, hash: number): void {
    const slots = this.#slots;
    const view = this.#view;
    // Four bytes at a time, zeros after the end; shifts are by the low five bits, hence the branches.
    const key0 = length < 4 ? headOf(view.getInt32(start, true), length) : view.getInt32(start, true);
    const key1 =
      length <= 4
        ? 0
        : length < 8
          ? headOf(view.getInt32(start + 4, true), length - 4)
          : view.getInt32(start + 4, true);
    let key2 = 0;
    let key3 = 0;
    let key4 = 0;
    if (length > 8) {
      key2 =
        length < 12 ? headOf(view.getInt32(start + 8, true), length - 8) : view.getInt32(start + 8, true);
      if (length > 12)
        key3 =
          length < 16
            ? headOf(view.getInt32(start + 12, true), length - 12)
            : view.getInt32(start + 12, true);
      if (length > 16)
        key4 =
          length < 20
            ? headOf(view.getInt32(start + 16, true), length - 16)
            : view.getInt32(start + 16, true);
    }
    const last = slots.length - 1;
    // The table is at most three quarters full, so that an empty slot ends the search.
    for (let at = firstSlot(hash, last); ; at = (at + slotWords) & last) {
      const there = slots[at];
      if (there === length + 1) {
        if (
          slots[at + keyWord] === key0 &&
          slots[at + keyWord + 1] === key1 &&
          slots[at + keyWord + 2] === key2 &&
          slots[at + keyWord + 3] === key3 &&
          slots[at + keyWord + 4] === key4
        ) {
          slots[at + countWord] = (slots[at + countWord] ?? 0) + 1;
          return;
        }
      } else if (there === 0) {
        slots[at + keyWord] = key0;
        slots[at + keyWord + 1] = key1;
        slots[at + keyWord + 2] = key2;
        slots[at + keyWord + 3] = key3;
        slots[at + keyWord + 4] = key4;
        this.#fill(at, length, hash);
        return;
      }
    }
  }

  /** A short string so near the end of its buffer that no word may be read there. */
  #addLast(start: number, length: number, hash: number): void {
    const from = this.#bytes;
    const padded = Buffer.alloc(inlineBytes);
    from.copy(padded, 0, start, start + length);
    this.#look(padded);
    this.#addShort(0, length, hash);
    this.#look(from);
  }

  #addLong(start: number, length: number, hash: number): void {
    const slots = this.#slots;
    const last = slots.length - 1;
    for (let at = firstSlot(hash, last); ; at = (at + slotWords) & last) {
      const there = slots[at];
      if (there === 0) {
        slots[at + keyWord] = this.#arenaUsed;
        this.#arenaUsed += this.#bytes.copy(this.#arena, this.#arenaUsed, start, start + length);
        this.#fill(at, length, hash);
        return;
      }
      if (there !== length + 1 || slots[at + hashWord] !== hash) continue;
      const own = slots[at + keyWord] ?? 0;
      if (this.#arena.compare(this.#bytes, start, start + length, own, own + length) !== 0) continue;
      slots[at + countWord] = (slots[at + countWord] ?? 0) + 1;
      return;
    }
  }

  #fill(at: number, length: number, hash: number): void {
    const slots = this.#slots;
    slots[at + lengthWord] = length + 1;
    slots[at + hashWord] = hash;
    slots[at + countWord] = 1;
    if (++this.size * 4 * slotWords > slots.length * 3) this.#grow();
  }

  #grow(): void {
    const old = this.#slots;
    const slots = new Int32Array(2 * old.length);
    const last = slots.length - 1;
    for (let from = 0; from < old.length; from += slotWords) {
      if (old[from] === 0) continue;
      let at = firstSlot(old[from + hashWord] ?? 0, last);
      while (slots[at] !== 0) at = (at + slotWords) & last;
      for (let word = 0; word < slotWords; word++) slots[at + word] = old[from + word] ?? 0;
    }
    this.#slots = slots;
  }
}

/** The first `length` bytes of a word, 1 to 3, or none. */
const headOf = (word: number, length: number): number =>
  length === 0 ? 0 : word & (-1 >>> (32 - 8 * length));

/** The first word of the slot at which the search for a hash begins; `last` is the last word of the table. */
const firstSlot = (hash: number, last: number): number =>
  ((hash ^ (hash >>> 15)) * slotWords) & last & -slotWords;

/** First value of a hash that is built byte by byte with `hashByte`. */
export const hashSeed = -2_128_831_035;

/** FNV-1a, one byte further. */
export const hashByte = (hash: number, byte: number): number => Math.imul(hash ^ byte, 16_777_619);

/** FNV-1a of bytes [start, end). */
export function hashBytes(bytes: Buffer, start: number, end: number): number {
  let hash = hashSeed;
  for (let at = start; at < end; at++) hash = hashByte(hash, bytes[at] ?? 0);
  return hash;
}
