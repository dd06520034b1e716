import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  atRank,
  atRankOfBoth,
  countBelow,
  emptySorted,
  insertSorted,
  quantileIn,
  quantileOf,
  type SortedNumbers,
} from '../../../src/lib/sorted-numbers.ts';

const arbNumbers = fc.array(fc.integer({ min: -50, max: 50 }), { maxLength: 1_500 });

function sortedOf(numbers: readonly number[]): SortedNumbers {
  const list = emptySorted();
  for (const number of numbers) insertSorted(list, number);
  return list;
}

const inOrder = (numbers: readonly number[]): number[] => numbers.toSorted((a, b) => a - b);

it('keeps numbers as sorting would, over many buckets', () => {
  fc.assert(
    fc.property(arbNumbers, fc.integer({ min: -51, max: 51 }), (numbers, value) => {
      const list = sortedOf(numbers);
      expect(list.buckets.flat()).toEqual(inOrder(numbers));
      expect(list.size).toBe(numbers.length);
      expect(countBelow(list, value)).toBe(numbers.filter((each) => each < value).length);
      expect(atRank(list, numbers.length)).toBeUndefined();
    }),
    { numRuns: 50 },
  );
});

it('ranks two lists as if they were one', () => {
  fc.assert(
    fc.property(
      arbNumbers,
      fc.array(fc.integer({ min: -50, max: 50 }), { maxLength: 40 }),
      (numbers, others) => {
        const list = sortedOf(numbers);
        const both = inOrder([...numbers, ...others]);
        const ranks = Array.from({ length: Math.min(both.length + 1, 60) }, (_, n) =>
          Math.floor((n * (both.length + 1)) / 60),
        );
        for (const rank of ranks) expect(atRankOfBoth(list, inOrder(others), rank)).toBe(both[rank]);
      },
    ),
    { numRuns: 50 },
  );
});

it('interpolates quantiles', () => {
  expect(quantileIn([1, 2, 3, 4], 0.25)).toBe(1.75);
  expect(quantileOf(sortedOf([4, 2, 1, 3]), 0.5)).toBe(2.5);
  expect([quantileIn([7], 0.9), quantileIn([1, 9], 0), quantileIn([1, 9], 1), quantileIn([], 0.5)]).toEqual([
    7,
    1,
    9,
    undefined,
  ]);
});
