import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addValue,
  mergePartial,
  noValues,
  type Partial,
  resultOf,
} from '../../../src/operators/aggregates.ts';
import { draws } from '../../support/draws.ts';

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

  it('sums whole numbers of up to 40 digits without a wrong one', () => {
    for (const text of [
      '1329227995784915874056728564887191553',
      '-1329227995784915874056728564887191553',
      '9007199254740993',
      '9999999999999999999999999999999999999999',
    ])
      expect(resultOf(seen(text), 'sum')).toBe(text);
    expect(resultOf(seen('9999999999999999999999999999999999999999', '1'), 'sum')).toBe(
      '10000000000000000000000000000000000000000',
    );
  });

  it('sums whole numbers as integers of any length do, in one task or of several', () => {
    const arbDigits = fc
      .tuple(fc.integer({ min: 1, max: 40 }), fc.bigInt({ min: 0n, max: 10n ** 40n - 1n }), fc.boolean())
      .map(([digits, drawn, isNegative]) => (isNegative ? -1n : 1n) * (drawn % 10n ** BigInt(digits)));
    const property = fc.property(fc.array(arbDigits, { minLength: 1 }), fc.nat(), (numbers, cut) => {
      const at = cut % (numbers.length + 1);
      const partial = seen(...numbers.slice(0, at).map(String));
      mergePartial(partial, 'sum', seen(...numbers.slice(at).map(String)));
      expect(resultOf(partial, 'sum')).toBe(String(numbers.reduce((sum, number) => sum + number, 0n)));
    });
    fc.assert(property, { numRuns: draws(1_000) });
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
