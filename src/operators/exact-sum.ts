import { BadRecordError } from '../worker/operator.ts';

/**
 * A sum of doubles without any rounding error: numbers that do not overlap and whose sum is exact. The order in
 * which numbers are added does not matter, so that a retried or copied task never changes a last digit.
 *
 * Source: J. R. Shewchuk, Adaptive precision floating-point arithmetic (1997), as in Python's `math.fsum`.
 */
export type ExactSum = number[];

/**
 * Adds a finite number to the sum, in place.
 *
 * @throws BadRecordError where the sum leaves the range of doubles: its parts would be infinite, which JSON has no word
 *   for, so that the next stage would take them for 0.
 */
export function addExactly(sum: ExactSum, term: number): void {
  let carry = term;
  let kept = 0;
  for (const part of sum) {
    const [large, small] = Math.abs(carry) < Math.abs(part) ? [part, carry] : [carry, part];
    const high = large + small;
    if (!Number.isFinite(high)) throw new BadRecordError('a sum is beyond the range of numbers');
    const low = small - (high - large);
    if (low !== 0) sum[kept++] = low;
    carry = high;
  }
  sum.length = kept;
  if (carry !== 0 || kept === 0) sum.push(carry);
}

/** Adds a whole number of any length in units of 2^-bits, exactly: the doubles that make it up, the largest first. */
export function addWhole(sum: ExactSum, whole: bigint, bits = 0): void {
  for (let rest = whole; rest !== 0n;) {
    const term = Number(rest);
    addExactly(sum, term * 2 ** -bits);
    rest -= BigInt(term);
  }
}

/** The sum, rounded once to the nearest double; 0 for the empty sum. Infinite where it is beyond the largest double. */
export function roundSum(sum: ExactSum): number {
  let at = sum.length - 1;
  let high = sum[at] ?? 0;
  let low = 0;
  while (at > 0) {
    at--;
    const part = sum[at] ?? 0;
    const before = high;
    high = before + part;
    low = part - (high - before);
    if (low !== 0) break;
  }
  // A tie in the last step is decided by the sign of what comes after it.
  const after = at > 0 ? (sum[at - 1] ?? 0) : 0;
  if ((low < 0 && after < 0) || (low > 0 && after > 0)) {
    const doubled = low * 2;
    const nudged = high + doubled;
    if (doubled === nudged - high) high = nudged;
  }
  return high;
}

/** The sum of whole numbers, exact. */
export const wholeSum = (sum: ExactSum): bigint => sum.reduce((total, part) => total + BigInt(part), 0n);
