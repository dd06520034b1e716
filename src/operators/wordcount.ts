import type { Operator, TaskContext } from '../worker/operator.ts';
import { hashByte, hashSeed } from './count-table.ts';
import { LocalCounts, addCounts, combineCounts, decodeCount, encodeCount } from './counts.ts';
import { flagOption, onlyOptions } from './options.ts';
import { rankKey } from './rank.ts';

/**
 * Counts words: maximal runs of bytes other than space, \t, \n, \v, \f and \r. Emits (word, count) with counts in
 * ASCII digits. A word ends with its line and with its file.
 */
export const tokenize: Operator = {
  check(options) {
    onlyOptions(options, []);
  },
  combiner: () => combineCounts,
  async run(context: TaskContext) {
    const { inputs, output } = context;
    const counts = new LocalCounts(output);
    for (const input of inputs) {
      for await (const { bytes } of input.blocks()) {
        let from = 0;
        for (;;) {
          const stop = countWords(bytes, from, counts);
          if (stop.start < 0) break;
          // No room for the word at hand: empty the table, then go on with that word, or after it if it is huge.
          await counts.flush();
          const isHuge = !counts.hasRoom(stop.end - stop.start);
          if (isHuge) await counts.addLarge(bytes.subarray(stop.start, stop.end));
          from = isHuge ? stop.end : stop.start;
        }
      }
    }
    context.count('words', counts.added);
    await counts.flush();
  },
};

/** Counts words from `from` on. `start` is −1 at the end of the block, else where the word without room begins. */
function countWords(bytes: Buffer, from: number, counts: LocalCounts): { start: number; end: number } {
  const length = bytes.length;
  let at = from;
  while (at < length) {
    let byte = bytes[at] ?? 0;
    if (isBlank(byte)) {
      at++;
      continue;
    }
    const start = at;
    let hash = hashSeed;
    do {
      hash = hashByte(hash, byte);
      at++;
      if (at === length) break;
      byte = bytes[at] ?? 0;
    } while (!isBlank(byte));
    if (!counts.hasRoom(at - start)) return { start, end: at };
    counts.add(bytes, start, at, hash);
  }
  return { start: -1, end: length };
}

/** White space of the C locale. */
const isBlank = (byte: number): boolean => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);

/**
 * Sums the counts of each key; its records must come in order of key. Emits (key, total), or with `ranked` keys
 * that sort by falling total, for top-counts. Totals are exact beyond 2^53.
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
    for (const input of inputs) {
      let current: Buffer | undefined;
      let total: number | bigint = 0;
      for await (const batch of input.records()) {
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
    }
  },
};

const empty = Buffer.alloc(0);
