import { describe, expect, it } from 'vitest';
import { exchangeSlices, hourS, LinkHours } from '../../../src/experiments/link-hours.ts';
import { createRng } from '../../../src/lib/rng.ts';

const hour = (shareAt: (s: number) => number): Float64Array =>
  Float64Array.from({ length: hourS }, (_, s) => shareAt(s));

describe('exchanging slices of links', () => {
  const shares = [hour((s) => s), hour((s) => 10_000 + s)];

  /** Of each second of the exchanged hour: what was recorded there. */
  const shown = (sliceS: number, isAcrossLinks: boolean): number[][] => {
    const hours = new LinkHours(shares, 1, exchangeSlices(2, { sliceS, isAcrossLinks }, createRng('slices')));
    const seconds = Array.from({ length: hourS }, (_, s) => hours.leftTo(s, s + 1));
    return [seconds.map(({ up }) => up[0] ?? -1), seconds.map(({ down }) => down[0] ?? -1)];
  };

  it('keeps what each link left in all its seconds, slices whole, and what links left together', () => {
    const [up = [], down = []] = shown(100, false);
    expect(up.toSorted((a, b) => a - b)).toEqual([...(shares[0] ?? [])]);
    expect(up).not.toEqual([...(shares[0] ?? [])]);
    for (let s = 0; s < hourS; s += 100) expect((up[s + 99] ?? 0) - (up[s] ?? 0)).toBe(99);
    expect(down).toEqual(up.map((share) => share + 10_000));
  });

  it('keeps only what all links left together where slices come from any link', () => {
    const [up = [], down = []] = shown(1, true);
    const all = shares.flatMap((own) => [...own]);
    expect([...up, ...down].toSorted((a, b) => a - b)).toEqual(all.toSorted((a, b) => a - b));
    const fromOther = up.filter((share) => share >= 10_000).length;
    expect(fromOther).toBeGreaterThan(1_650);
    expect(fromOther).toBeLessThan(1_950);
  });
});

describe('an hour of links', () => {
  it('is repeated, and told as means', () => {
    const hours = new LinkHours([hour((s) => s), hour(() => 2)], 10);
    expect(hours.leftTo(5, 7)).toEqual({ up: [55], down: [20] });
    // Seconds 3,598, 3,599, 0 and 1.
    expect(hours.leftTo(3_598, 3_602).up).toEqual([17_995]);
    expect(hours.leftTo(4 * hourS + 5, 4 * hourS + 5.5).up).toEqual([50]);
  });

  it('tells when the last link has carried its part', () => {
    const hours = new LinkHours([hour((s) => (s < 10 ? 1 : 0.5)), hour(() => 0.25)], 2);
    // 2,000 bytes a second up to second 10, then 1,000: 5 s bring 10,000, and 2.5 s the other 2,500.
    expect(hours.carriedMs(5, [12_500, 0])).toBeCloseTo(7_500, 6);
    expect(hours.carriedMs(5, [12_500, 5_000])).toBeCloseTo(10_000, 6);
    expect(hours.carriedMs(5, [0, 0])).toBe(0);
  });

  it('knows how long loads last', () => {
    // One second in two: at a lag of one nothing is alike, so that 1/e lies at 1 - (1/e + 1)/2 on the line from 1 to -1.
    const everySecond = new LinkHours([hour((s) => s % 2), hour((s) => s % 2)], 1);
    expect(everySecond.persistenceS(1_800, 1_800)).toBeCloseTo(0.31606, 3);
    // By turns of 100 s: the correlation falls on a line from 1 at no lag to -1 at one of 100, down to 1/e at 31.6.
    const byTurns = new LinkHours([hour((s) => Math.floor(s / 100) % 2), hour(() => 1)], 1);
    expect(byTurns.persistenceS(0, 1_800)).toBeGreaterThan(30);
    expect(byTurns.persistenceS(0, 1_800)).toBeLessThan(33);
    expect(new LinkHours([hour(() => 0.5), hour(() => 1)], 1).persistenceS(1_800, 1_800)).toBe(0);
  });
});
