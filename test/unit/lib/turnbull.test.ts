import { describe, expect, it } from 'vitest';
import { type Bounds, type Mass, medianOf, turnbull } from '../../../src/lib/turnbull.ts';

const between = (from: number, until: number, guess = (from + until) / 2, farOff = 1): Bounds => ({
  ...{ from, until },
  ...{ guess, farOff },
});
const exactly = (value: number): Bounds => between(value, value);
const rounded = (masses: readonly Mass[]) =>
  masses.map(({ at, width, share }) => [at, width, share].map((each) => Number(each.toFixed(2))));

describe('the distribution of numbers of which bounds are known', () => {
  it('is that of the numbers where they are known exactly', () => {
    expect(rounded(turnbull([3, 1, 2, 2].map(exactly)))).toEqual([
      [1, 0, 0.25],
      [2, 0, 0.5],
      [3, 0, 0.25],
    ]);
    expect(turnbull([])).toEqual([]);
  });

  it('puts what lies anywhere to where others are known to lie', () => {
    // Two are known; the two of which nothing is known, and the one that is below 2, change nothing but the balance.
    const bounds = [exactly(1), exactly(3), between(0, 9), between(0, 9), between(0, 2)];
    // Fixed point of p = (1 + 2p + 1) / 5 for the number 1: p = 2/3.
    expect(rounded(turnbull(bounds))).toEqual([
      [1, 0, 0.67],
      [3, 0, 0.33],
    ]);
  });

  it('is the stretch that all have in common, where they have one', () => {
    expect(rounded(turnbull([between(0, 5), between(3, 9), between(1, 4)]))).toEqual([[3, 1, 1]]);
  });

  // Gentleman and Geyer (1994), Biometrika 81:618: of (0,1), (0,2), (0,2), (1,3), (1,3), (2,3) half of the mass lies in each of (0,1) and (2,3).
  it('is likelier than any other, by an example of the literature', () => {
    const cases = [
      [0, 1],
      [0, 2],
      [0, 2],
      [1, 3],
      [1, 3],
      [2, 3],
    ] as const;
    // Open on the left: what ends where another begins has nothing in common with it.
    const masses = turnbull(cases.map(([from, until]) => between(from + 0.01, until)));
    const likelihood = (shares: readonly number[]): number =>
      cases.reduce((sum, [from, until]) => {
        const inside = masses.map(({ at }, place) => (at > from && at <= until ? (shares[place] ?? 0) : 0));
        return sum + Math.log(inside.reduce((all, each) => all + each, 0));
      }, 0);
    const found = likelihood(masses.map(({ share }) => share));
    for (let first = 0; first <= 20; first++)
      for (let second = 0; first + second <= 20; second++) {
        const others = [first / 20, second / 20, 1 - (first + second) / 20].slice(0, masses.length);
        expect(found).toBeGreaterThanOrEqual(likelihood(others) - 1e-3);
      }
  });

  it('lies within a stretch where those suppose it that are near, and no farther than it goes', () => {
    const far = [2, 2.1, 2.2, 2.3, 2.4, 2.5, 2.6].map((guess) => between(0, 10, guess, 0.9));
    expect(turnbull([...far, between(0, 10, 7, 0.1)])[0]?.at).toBe(7);
    expect(turnbull([between(0, 10, 2), between(4, 12, 3)])[0]?.at).toBe(4);
  });
});

describe('the median of a distribution', () => {
  it('has as much below as above', () => {
    expect(
      medianOf([
        { at: 1, share: 0.2 },
        { at: 2, share: 0.5 },
        { at: 9, share: 0.3 },
      ]),
    ).toBe(2);
    expect(
      medianOf([
        { at: 1, share: 0.5 },
        { at: 2, share: 0.5 },
      ]),
    ).toBe(1.5);
    expect(medianOf([])).toBe(0);
  });
});
