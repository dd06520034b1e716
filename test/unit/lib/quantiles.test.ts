import { describe, expect, it } from 'vitest';
import {
  ascending,
  mean,
  meanInterval,
  median,
  quantile,
  standardDeviation,
  studentTQuantile,
} from '../../../src/lib/quantiles.ts';

describe('quantile', () => {
  it('interpolates between neighbours', () => {
    expect(quantile([10, 20, 30, 40], 0.5)).toBe(25);
    expect(quantile([10, 20, 30, 40], 0.9)).toBeCloseTo(37, 12);
    expect(quantile([10, 20, 30, 40, 50], 0.25)).toBe(20);
  });

  it('is the least value at 0, the greatest at 1 and beyond', () => {
    expect([-1, 0, 1, 2].map((p) => quantile([3, 5, 8], p))).toEqual([3, 3, 8, 8]);
  });

  it('knows none for no values, and the only one for one', () => {
    expect(quantile([], 0.5)).toBeUndefined();
    expect(quantile([7], 0.3)).toBe(7);
  });
});

it('orders as numbers, and leaves its input as it was', () => {
  const values = [10, 9, 1];
  expect(ascending(values)).toEqual([1, 9, 10]);
  expect(values).toEqual([10, 9, 1]);
  expect(median(values)).toBe(9);
});

it('takes mean and deviation of the sample, none of nothing', () => {
  expect(mean([2, 4, 4, 4, 5, 5, 7, 9])).toBe(5);
  expect(standardDeviation([2, 4, 4, 4, 5, 5, 7, 9])).toBeCloseTo(2.138089935299395, 12);
  expect(standardDeviation([3])).toBe(0);
  expect(mean([])).toBeUndefined();
  expect(standardDeviation([])).toBeUndefined();
});

// Printed tables of Student's t.
it.each([
  [0.975, 1, 12.7062],
  [0.975, 2, 4.30265],
  [0.975, 4, 2.77645],
  [0.975, 9, 2.26216],
  [0.975, 29, 2.04523],
  [0.995, 5, 4.03214],
  [0.95, 10, 1.81246],
  [0.9995, 3, 12.924],
  [0.975, 1000, 1.96234],
])('has the tabulated t at %d with %d degrees of freedom', (p, degrees, t) => {
  expect(studentTQuantile(p, degrees) / t).toBeCloseTo(1, 5);
});

it('is symmetric, 0 in the middle, endless at the ends', () => {
  expect(studentTQuantile(0.5, 3)).toBeCloseTo(0, 12);
  expect(studentTQuantile(0.025, 4)).toBeCloseTo(-2.77645, 5);
  expect([studentTQuantile(0, 3), studentTQuantile(1, 3)]).toEqual([-Infinity, Infinity]);
});

it('gives the t interval of a mean', () => {
  // Mean 5, deviation √2.5: half width 2.77645 × 1.581139 / √5.
  const interval = meanInterval([3, 4, 5, 6, 7]);
  expect(interval?.mean).toBe(5);
  expect(interval?.low).toBeCloseTo(3.03676, 4);
  expect(interval?.high).toBeCloseTo(6.96324, 4);
});

it('gives no interval for no value, and no width for one', () => {
  expect(meanInterval([])).toBeUndefined();
  expect(meanInterval([4])).toEqual({ mean: 4, low: 4, high: 4 });
});
