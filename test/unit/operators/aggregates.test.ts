import { describe, expect, it } from 'vitest';
import {
  addValue,
  mergePartial,
  noValues,
  type Partial,
  resultOf,
} from '../../../src/operators/aggregates.ts';

/** What an aggregate has seen of some values, as it travels between stages. */
function seen(...values: readonly unknown[]): Partial {
  const partial = noValues();
  for (const value of values) addValue(partial, 'sum', value, 'v');
  return JSON.parse(JSON.stringify(partial)) as Partial;
}

const beyond = 'a sum is beyond the range of numbers';

describe('an aggregate', () => {
  it('sums the largest numbers that there are, as long as the sum is one', () => {
    expect(resultOf(seen('1.5e308', '-1e308', '2e307', 0.5), 'sum')).toBe('7e+307');
    const merged = seen('1e308');
    mergePartial(merged, 'sum', seen('7e307'));
    expect(resultOf(merged, 'sum')).toBe('1.7e+308');
  });

  it('fails where a sum is beyond the range of numbers, in one task or of several, and is never 0 for it', () => {
    expect(() => seen('1e308', '1e308')).toThrow(beyond);
    expect(() => seen('-1e308', 3, '-1e308')).toThrow(beyond);
    const merged = seen('1e308');
    expect(() => {
      mergePartial(merged, 'sum', seen('1e308'));
    }).toThrow(beyond);
  });
});
