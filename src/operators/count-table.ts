const initialSlots = 1 << 12;

/**
 * Counts byte strings without making a string of each: an open-addressing table over one arena of bytes. Holds a
 * bounded number of bytes; the owner empties it when `isFull`.
 */
export class CountTable {
  private readonly arena: Buffer;
  private used = 0;
  /** Number of entries. */
  size = 0;
  private slots = new Int32Array(initialSlots).fill(-1);
  private readonly maxEntries: number;
  private readonly hashes: Int32Array;
  private readonly starts: Int32Array;
  private readonly lengths: Int32Array;
  private readonly counts: Float64Array;

  /** `arenaBytes` bounds the bytes of the distinct strings, `maxEntries` their number. */
  constructor({ arenaBytes, maxEntries }: { arenaBytes: number; maxEntries: number }) {
    this.arena = Buffer.allocUnsafe(arenaBytes);
    this.maxEntries = maxEntries;
    this.hashes = new Int32Array(maxEntries);
    this.starts = new Int32Array(maxEntries);
    this.lengths = new Int32Array(maxEntries);
    this.counts = new Float64Array(maxEntries);
  }

  /** Whether `add` of a string of `length` bytes may find no room. */
  isFull(length: number): boolean {
    return this.size === this.maxEntries || this.used + length > this.arena.length;
  }

  /** Adds 1 to the count of bytes [start, end) of `from`; `hash` must be `hashBytes` of them. */
  add(from: Buffer, start: number, end: number, hash: number): void {
    const length = end - start;
    const mask = this.slots.length - 1;
    let slot = (hash ^ (hash >>> 15)) & mask;
    for (;;) {
      // The table is at most half full, so that an empty slot ends the search.
      const entry = this.slots[slot] ?? -1;
      if (entry < 0) {
        this.insert(slot, from, start, end, hash);
        return;
      }
      if (
        this.hashes[entry] === hash &&
        this.lengths[entry] === length &&
        this.holds(entry, from, start, length)
      ) {
        this.counts[entry] = (this.counts[entry] ?? 0) + 1;
        return;
      }
      slot = (slot + 1) & mask;
    }
  }

  /** Entries in order of first sight. The key is a view into the table: good until `clear`. */
  *entries(): Generator<readonly [key: Buffer, count: number]> {
    for (let entry = 0; entry < this.size; entry++) {
      const start = this.starts[entry] ?? 0;
      yield [this.arena.subarray(start, start + (this.lengths[entry] ?? 0)), this.counts[entry] ?? 0];
    }
  }

  /** Forgets all entries. */
  clear(): void {
    this.size = 0;
    this.used = 0;
    this.slots.fill(-1);
  }

  private holds(entry: number, from: Buffer, start: number, length: number): boolean {
    const own = this.starts[entry] ?? 0;
    for (let at = 0; at < length; at++) {
      if (this.arena[own + at] !== from[start + at]) return false;
    }
    return true;
  }

  private insert(slot: number, from: Buffer, start: number, end: number, hash: number): void {
    const entry = this.size++;
    this.slots[slot] = entry;
    this.hashes[entry] = hash;
    this.starts[entry] = this.used;
    this.lengths[entry] = end - start;
    this.counts[entry] = 1;
    this.used += from.copy(this.arena, this.used, start, end);
    if (this.size * 2 > this.slots.length) this.grow();
  }

  private grow(): void {
    const mask = this.slots.length * 2 - 1;
    this.slots = new Int32Array(mask + 1).fill(-1);
    for (let entry = 0; entry < this.size; entry++) {
      const hash = this.hashes[entry] ?? 0;
      let slot = (hash ^ (hash >>> 15)) & mask;
      while ((this.slots[slot] ?? -1) >= 0) slot = (slot + 1) & mask;
      this.slots[slot] = entry;
    }
  }
}

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
