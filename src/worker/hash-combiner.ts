import type { Combine } from './operator.ts';

interface Entry {
  /** Its memory, some of it to spare; of it, the value is `value`. */
  slot: Buffer;
  value: Buffer;
}

/** Longer keys seldom repeat, and cost more to look up. */
const longestKeyBytes = 64;
/** What an entry takes besides its key and value, roughly. */
const entryBytes = 200;
/** Memory of which values have their slots. */
const slabBytes = 64 * 1024;
/** What the slot of a new value has to spare: a count grows by a digit now and then. */
const spareBytes = 8;
/** Lookups after which a table that seldom hits is given up. */
const trialLookups = 100_000;

/**
 * Combines records of frequent keys before they are sorted: most words of a text are a few thousand. The first
 * keys that come stay in the table until `drain`; others pass by. Where lookups seldom hit, it turns itself off. What it
 * holds lies in memory of its own: a small buffer of Node's is a piece of 64 KB, all of which lives as long as it does.
 */
export class HashCombiner {
  readonly #combine: Combine;
  readonly #memoryBytes: number;
  readonly #entries = new Map<string, Entry>();
  #slab = Buffer.alloc(0);
  #slabUsed = 0;
  #usedBytes = 0;
  #lookups = 0;
  #hits = 0;
  #isOff = false;

  constructor(combine: Combine, memoryBytes: number) {
    this.#combine = combine;
    this.#memoryBytes = memoryBytes;
  }

  /** Whether the record was taken in; else it goes the usual way. */
  take(key: Uint8Array, value: Uint8Array): boolean {
    if (this.#isOff || key.length > longestKeyBytes) return false;
    const name = bufferOf(key).toString('latin1');
    const entry = this.#entries.get(name);
    this.#lookups++;
    if (entry !== undefined) {
      this.#hits++;
      const combined = this.#combine(entry.value, bufferOf(value));
      // The combiner may answer the caller's bytes, which are only lent.
      this.#put(entry, combined);
      return true;
    }
    const sizeBytes = key.length + value.length + spareBytes + entryBytes;
    if (this.#usedBytes + sizeBytes > this.#memoryBytes) {
      if (this.#lookups > trialLookups && this.#hits < this.#lookups / 10) this.#isOff = true;
      return false;
    }
    this.#usedBytes += key.length + entryBytes;
    const slot = this.#slotOf(value.length + spareBytes);
    slot.set(value);
    this.#entries.set(name, { slot, value: slot.subarray(0, value.length) });
    return true;
  }

  /** Empties the table. */
  *drain(): Generator<{ readonly key: Buffer; readonly value: Buffer }> {
    for (const [name, { value }] of this.#entries) yield { key: Buffer.from(name, 'latin1'), value };
    this.#entries.clear();
    this.#slab = Buffer.alloc(0);
    this.#slabUsed = 0;
    this.#usedBytes = 0;
  }

  /** Writes a value, which may lie in the entry's own slot, over the one before. */
  #put(entry: Entry, value: Uint8Array): void {
    // Twice what is needed, so that what a value that grows leaves behind is no more than it takes in the end.
    if (value.length > entry.slot.length) entry.slot = this.#slotOf(2 * value.length);
    else if (value.length === entry.value.length) {
      entry.value.set(value);
      return;
    }
    entry.slot.set(value);
    entry.value = entry.slot.subarray(0, value.length);
  }

  #slotOf(sizeBytes: number): Buffer {
    this.#usedBytes += sizeBytes;
    if (sizeBytes > slabBytes / 8) return Buffer.allocUnsafeSlow(sizeBytes);
    if (this.#slabUsed + sizeBytes > this.#slab.length) {
      this.#slab = Buffer.allocUnsafeSlow(slabBytes);
      this.#slabUsed = 0;
    }
    const start = this.#slabUsed;
    this.#slabUsed += sizeBytes;
    return this.#slab.subarray(start, this.#slabUsed);
  }
}

const bufferOf = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
