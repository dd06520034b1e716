import { describe, expect, it } from 'vitest';
import {
  comparePhases,
  gainOf,
  type Phase,
  weightedQuantile,
} from '../../../src/experiments/phase-comparison.ts';

const second = 1_000;
/** Seven tasks of equal input on two slots, of which the fifth takes 300 s where a new copy takes 60 s. */
const phase: Phase = {
  name: 'seven',
  slots: 2,
  inputBytes: Array.from({ length: 7 }, () => 1e6),
  attemptsMs: [60, 60, 60, 60, 300, 60, 60].map((seconds) => [seconds * second, 60 * second]),
};

describe('weighted quantiles', () => {
  const values = [
    { value: 3, weight: 1 },
    { value: 1, weight: 2 },
    { value: 2, weight: 1 },
  ];
  it.each([
    [0.25, 1],
    [0.5, 1],
    [0.6, 2],
    [0.75, 2],
    [1, 3],
  ])('at %f is %f', (p, expected) => {
    expect(weightedQuantile(values, p)).toBe(expected);
  });
  it('are 0 of nothing', () => {
    expect(weightedQuantile([], 0.5)).toBe(0);
  });
});

describe('phases under several schemes', () => {
  it('gain in time and slots by what a policy did', async () => {
    const comparison = await comparePhases([phase], ['mantri']);
    const [none] = comparison.get('none') ?? [];
    const [mantri] = comparison.get('mantri') ?? [];
    // Two slots: 60 + 60, then the outlier from 120 to 420 beside two others.
    expect(none).toMatchObject({
      completionMs: 420 * second,
      slotMs: 660 * second,
      started: 0,
      clairvoyantMs: 240 * second,
    });
    expect(mantri?.completionMs).toBeLessThan(260 * second);
    expect(mantri).toMatchObject({ started: 1, won: 1 });
    const gain = gainOf(comparison, 'mantri');
    expect(gain.p50).toBeCloseTo(1 - (mantri?.completionMs ?? 0) / 420_000, 12);
    expect(gain.resources).toBeCloseTo(1 - (mantri?.slotMs ?? 0) / 660_000, 12);
  });

  it('include ideals that have no slot time', async () => {
    const comparison = await comparePhases([phase], []);
    // Four waves of the mean, 660 / 7; without the worst quarter the mean of the rest is 60.
    expect(comparison.get('NoSkew')?.[0]?.completionMs).toBeCloseTo((4 * 660 * second) / 7, 6);
    expect(comparison.get('NoSkew + ChopTail')?.[0]?.completionMs).toBe(240 * second);
    expect(gainOf(comparison, 'NoSkew').resources).toBeUndefined();
    expect(gainOf(comparison, 'none')).toMatchObject({ p50: 0, time: 0, unchanged: 1, copiesPerTask: 0 });
  });
});
