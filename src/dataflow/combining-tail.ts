import { getHeapStatistics } from 'node:v8';
import type { TaskOutput } from '../worker/operator.ts';
import { atPlace } from '../worker/user-code/record-place.ts';
import type { Context, Key } from './context.ts';
import { folding, type Folding } from './folding.ts';
import type { AggregateNode, ReduceNode } from './graph.ts';
import { KeyEncoder, shownKey } from './key-codec.ts';
import { copyOfLent } from './lent-records.ts';
import { ValueEncoder } from './value-codec.ts';

/** Keys that are held at once, and the share of V8's heap that may be used when they are. */
const mostKeys = 200_000;
const mostHeapShare = 0.6;
/** How often memory is looked at, in records. */
const lookEvery = 16_384;
/** Keys after which holding is given up where fewer than one in ten records met its own. */
const trialRecords = 100_000;

interface Held {
  readonly key: Key;
  sum: unknown;
}

/**
 * Combines records of one key before they are shuffled, as values and not as bytes: a record of a key that is held costs
 * a look into a map and a call. Where keys seldom repeat, records pass by. Where values cannot be put together again
 * (an aggregate without `merge`), each is emitted as it is.
 */
export class CombiningTail {
  readonly #fold: Folding;
  readonly #context: Context;
  readonly #keyFn: (record: unknown, context: Context) => Key;
  readonly #output: TaskOutput;
  readonly #keys = new KeyEncoder();
  readonly #values = new ValueEncoder();
  readonly #heapLimit = getHeapStatistics().heap_size_limit;
  #held = new Map<unknown, Held>();
  #isHolding: boolean;
  #records = 0;
  #met = 0;
  #wait: Promise<void> | undefined;

  constructor(node: ReduceNode | AggregateNode, output: TaskOutput, context: Context) {
    this.#fold = folding(node, context);
    this.#keyFn = node.keyed.key;
    this.#output = output;
    this.#context = context;
    this.#isHolding = this.#fold.merge !== undefined;
  }

  push(record: unknown, isLent = false): boolean {
    const key = this.#keyFn(record, this.#context);
    if (!this.#isHolding)
      return this.#emit(key, this.#fold.merge === undefined ? record : this.#fold.begin(record));
    // Keys of one value are found as they are; of lists the bytes are.
    const isPlain = typeof key === 'number' || (typeof key === 'string' && key.charCodeAt(0) !== 0);
    const name = isPlain ? key : this.#nameOf(key);
    const held = this.#held.get(name);
    this.#records++;
    // A sum may be the record, or have it in it.
    const own = isLent ? copyOfLent(record) : record;
    if (held !== undefined) {
      this.#met++;
      held.sum = this.#fold.add(held.sum, own);
    } else this.#hold(name, isLent ? (copyOfLent(key) as Key) : key, own);
    return this.#held.size >= mostKeys || (this.#records % lookEvery === 0 && this.#isHeapFull());
  }

  #hold(name: unknown, key: Key, record: unknown): void {
    // What is no key throws here, where its record is known.
    if (typeof key === 'string' && !key.isWellFormed()) this.#keys.encode(key, 'keyBy');
    this.#held.set(name, { key, sum: this.#fold.begin(record) });
  }

  /** Apart from keys that are numbers, or texts that do not begin with its first character. */
  #nameOf(key: Key): unknown {
    return `\0${this.#keys.encode(key, 'keyBy').toString('latin1')}`;
  }

  #isHeapFull(): boolean {
    return getHeapStatistics().used_heap_size > mostHeapShare * this.#heapLimit;
  }

  #emit(key: Key, value: unknown): boolean {
    this.#wait = this.#output.emit(this.#keys.encode(key, 'keyBy'), this.#values.encode(value));
    return this.#wait !== undefined;
  }

  /** What does not go is a key's, and not the fault of the record that happens to be at hand. */
  #emitSum(key: Key, sum: unknown): boolean {
    try {
      return this.#emit(key, sum);
    } catch (error) {
      throw atPlace(error, { kind: 'words', words: `the sum of key ${shownKey(key)}` });
    }
  }

  async #waited(): Promise<void> {
    await this.#wait;
    this.#wait = undefined;
  }

  async drain(): Promise<void> {
    await this.#waited();
    const held = this.#held;
    if (held.size === 0) return;
    this.#held = new Map();
    if (this.#records > trialRecords && this.#met < this.#records / 10) this.#isHolding = false;
    for (const { key, sum } of held.values()) {
      if (!this.#emitSum(key, sum)) continue;
      await this.#waited();
    }
  }

  finish(): Promise<void> {
    return this.drain();
  }
}
