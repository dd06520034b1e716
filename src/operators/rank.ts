import { recordsInKeyOrder } from '../worker/merged-inputs.ts';
import { BadRecordError } from '../worker/operator.ts';
import type { Operator, TaskContext } from '../worker/operator.ts';
import { encodeCount } from './counts.ts';
import { onlyOptions } from './options.ts';

/** Digits of a count in a ranked key: enough for 2^64. */
const rankDigits = 20;

/**
 * A key whose byte order is: larger count first, then the key's own order. So the shuffle's sort ranks counts,
 * and nobody has to hold them all: the nines' complement of the count in 20 digits, then the key.
 */
export function rankKey(key: Buffer, count: number | bigint): Buffer {
  const digits = count.toString().padStart(rankDigits, '0');
  if (digits.length > rankDigits) throw new BadRecordError('a count has more than 20 digits');
  const ranked = Buffer.allocUnsafe(rankDigits + key.length);
  for (let at = 0; at < rankDigits; at++) ranked[at] = 0x30 + 0x39 - digits.charCodeAt(at);
  key.copy(ranked, rankDigits);
  return ranked;
}

/** The key and count in a ranked key; throws BadRecordError where it is none. */
export function unrankKey(ranked: Buffer): { key: Buffer; count: bigint } {
  const head = ranked.toString('latin1', 0, rankDigits);
  if (!/^\d{20}$/.test(head))
    throw new BadRecordError('top-counts reads the output of sum-counts with "ranked": true');
  const digits = Array.from(head, (digit) => String(9 - Number(digit))).join('');
  return { key: ranked.subarray(rankDigits), count: BigInt(digits) };
}

/**
 * Counts in falling order, equal counts by key: (key, count). Reads sum-counts with `ranked`, all-to-all of one
 * partition, so that each input is in that order already.
 */
export const topCounts: Operator = {
  check(options) {
    onlyOptions(options, []);
  },
  async run({ inputs, output }: TaskContext) {
    for await (const batch of recordsInKeyOrder(inputs)) {
      for (const record of batch) {
        const { key, count } = unrankKey(record.key);
        const wait = output.emit(key, encodeCount(count));
        if (wait !== undefined) await wait;
      }
    }
  },
};
