import { recordsInKeyOrder } from '../worker/merged-inputs.ts';
import type { Operator, TaskContext } from '../worker/operator.ts';
import { hashByte, hashSeed, type Spots } from './count-table.ts';
import { LocalCounts, addCounts, combineCounts, decodeCount, encodeCount } from './counts.ts';
import { flagOption, onlyOptions } from './options.ts';
import { rankKey } from './rank.ts';

/**
 * Counts words: maximal runs of bytes other than space, \t, \n, \v, \f and \r. Emits (word, count) with counts in
 * ASCII digits. A word ends with its line and with its file.
 */
export const tokenize: Operator = {
  resumes: true,
  check(options) {
    onlyOptions(options, []);
  },
  combiner: () => combineCounts,
  async run(context: TaskContext) {
    const counts = new LocalCounts(context);
    const words = new WordFinder();
    for (const input of context.inputs) {
      for await (const { bytes } of input.blocks()) {
        for (let from = 0; from < bytes.length;) {
          from = words.find(bytes, from);
          const counted = counts.addAll(words);
          if (counted !== undefined) await counted;
        }
      }
    }
    context.count('words', counts.added);
    await counts.flush();
  },
};

const empty = Buffer.alloc(0);

/** Words that are found before they are counted: so many lookups at once need not wait for memory one by one. */
const batchWords = 4_096;

/** White space of the C locale: 1. */
const blanks = Uint8Array.from({ length: 256 }, (_, byte) =>
  Number(byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)),
);

/** Finds words, many at once. */
class WordFinder implements Spots {
  bytes: Buffer = empty;
  count = 0;
  readonly starts = new Int32Array(batchWords);
  readonly ends = new Int32Array(batchWords);
  readonly hashes = new Int32Array(batchWords);

  /** Finds words from `from` on, as many as there is room for; answers where to go on. */
  find(bytes: Buffer, from: number): number {
    const { starts, ends, hashes } = this;
    const { length } = bytes;
    let count = 0;
    let at = from;
    while (at < length && count < batchWords) {
      let byte = bytes[at] ?? 0;
      if (blanks[byte] === 1) {
        at++;
        continue;
      }
      starts[count] = at;
      let hash = hashSeed;
      do {
        hash = hashByte(hash, byte);
        at++;
        if (at === length) break;
        byte = bytes[at] ?? 0;
      } while (blanks[byte] === 0);
      ends[count] = at;
      hashes[count++] = hash;
    }
    this.bytes = bytes;
    this.count = count;
    return at;
  }
}

/**
 * Sums the counts of each key, over all inputs; the records of each must come in order of key. Emits (key, total), or with
 * `ranked` keys that sort by falling total, for top-counts. Totals are exact beyond 2^53.
 */
export const sumCounts: Operator = {
  check(options) {
    onlyOptions(options, ['ranked']);
    flagOption(options, 'ranked');
  },
  async run({ inputs, output, options }: TaskContext) {
    const isRanked = flagOption(options, 'ranked');
    const emit = (key: Buffer, total: number | bigint): Promise<void> | undefined =>
      isRanked ? output.emit(rankKey(key, total), empty) : output.emit(key, encodeCount(total));
    let current: Buffer | undefined;
    let total: number | bigint = 0;
    for await (const batch of recordsInKeyOrder(inputs)) {
      for (const { key, value } of batch) {
        if (current?.equals(key) === true) {
          total = addCounts(total, decodeCount(value));
          continue;
        }
        const wait = current === undefined ? undefined : emit(current, total);
        if (wait !== undefined) await wait;
        current = key;
        total = decodeCount(value);
      }
      // The batch's memory may be used again once the next one is asked for.
      if (current !== undefined) current = Buffer.from(current);
    }
    if (current !== undefined) await emit(current, total);
  },
};
