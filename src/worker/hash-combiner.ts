import type { Combine } from './operator.ts';

interface Entry {
  readonly key: Buffer;
  value: Buffer;
}

/** Longer keys seldom repeat, and cost more to look up. */
const longestKeyBytes = 64;
/** What an entry takes besides its key and value, roughly. */
const entryBytes = 200;
/** Lookups after which a table that seldom hits is given up. */
const trialLookups = 100_000;

/**
 * Combines records of frequent keys before they are sorted: most words of a text are a few thousand. The first
 * keys that come stay in the table until `drain`; others pass by. Where lookups seldom hit, it turns itself off.
 */
export class HashCombiner {
  readonly #combine: Combine;
  readonly #memoryBytes: number;
  readonly #entries = new Map<string, Entry>();
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
      entry.value = Buffer.from(combined);
      return true;
    }
    const sizeBytes = key.length + value.length + entryBytes;
    if (this.#usedBytes + sizeBytes > this.#memoryBytes) {
      if (this.#lookups > trialLookups && this.#hits < this.#lookups / 10) this.#isOff = true;
      return false;
    }
    this.#usedBytes += sizeBytes;
    this.#entries.set(name, { key: Buffer.from(key), value: Buffer.from(value) });
    return true;
  }

  /** Empties the table. */
  *drain(): Generator<Entry> {
    yield* this.#entries.values();
    this.#entries.clear();
    this.#usedBytes = 0;
  }
}

const bufferOf = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
