import { describe, expect, it } from 'vitest';
import { remainingStatistics } from '../../../../src/contracts/forecast.ts';
import { remainingMs } from '../../../../src/core/forecast/completion-table.ts';
import { allocationGrid, forecastTable, indicatorOf } from '../../../../src/core/forecast/forecast-table.ts';
import type { JobProfile } from '../../../../src/core/forecast/job-profile.ts';
import { createRng } from '../../../../src/lib/rng.ts';

/** A stage of `maps` tasks of 1 s each and one of 2 tasks of 3 s that waits for all of it. */
const steady = (maps: number): JobProfile => ({
  stages: [
    {
      name: 'map',
      tasks: maps,
      inputs: [],
      runs: [{ slots: 4, times: { cold: [], first: [], later: [1_000] } }],
      queueMs: [],
      failureShare: 0,
    },
    {
      name: 'reduce',
      tasks: 2,
      inputs: [{ stage: 0, isBarrier: true }],
      runs: [{ slots: 4, times: { cold: [], first: [], later: [3_000] } }],
      queueMs: [],
      failureShare: 0,
    },
  ],
});

const tableOf = (profile: JobProfile, totalSlots: number) =>
  forecastTable({ profile, runs: 3 }, { totalSlots, rng: createRng('a') });

describe('the allocations that a job is simulated on', () => {
  it.each([
    [0, [1]],
    [1, [1]],
    [3.7, [1, 2, 3]],
    [20, Array.from({ length: 20 }, (_, index) => index + 1)],
  ])('are all up to %s', (most, slots) => {
    expect(allocationGrid(most)).toEqual(slots);
  });

  it.each([21, 22, 25, 40, 100, 900, 8_496, 1_000_000])(
    'of %s are twenty, each above the one before',
    (most) => {
      const slots = allocationGrid(most);
      expect([slots.length, slots[0], slots.at(-1)]).toEqual([20, 1, most]);
      expect(slots.every((count, at) => Number.isInteger(count) && count > (slots[at - 1] ?? 0))).toBe(true);
    },
  );

  it('grow by steady factors once they are apart', () => {
    const slots = allocationGrid(8_496);
    const factors = slots.slice(6).map((count, at) => count / (slots[at + 5] ?? 1));
    expect(Math.max(...factors) / Math.min(...factors)).toBeLessThan(1.25);
  });
});

describe('the table of a job whose tasks never vary', () => {
  it('holds what arithmetic gives, at its begin, between its stages and at its end', () => {
    const profile = steady(12);
    const table = tableOf(profile, 100);
    expect(table.ofRuns).toBe(3);
    expect(table.slots).toEqual(Array.from({ length: 14 }, (_, index) => index + 1));
    expect(table.remainingMs).toHaveLength(14 * 101 * remainingStatistics.length);
    const indicator = indicatorOf(profile, table);
    const left = (slots: number, fractions: readonly number[]) =>
      remainingMs(table, { progress: indicator(fractions), slots, statistic: 'worst' });
    // 12 tasks of 1 s in waves, then 2 of 3 s.
    for (const [slots, wholeMs] of [
      [1, 18_000],
      [2, 9_000],
      [4, 6_000],
      [12, 4_000],
      [14, 4_000],
    ] as const)
      expect(left(slots, [0, 0])).toBeCloseTo(wholeMs, -1.5);
    // Where the first stage has just ended: the look before an end, half a bucket of time apart.
    expect(left(2, [1, 0])).toBeGreaterThanOrEqual(2_900);
    expect(left(2, [1, 0])).toBeLessThanOrEqual(3_100);
    expect(left(2, [1, 1])).toBe(0);
  });

  it('has no more allocations than slots, and is the same each time', () => {
    const [one, other] = [tableOf(steady(5_000), 30), tableOf(steady(5_000), 30)];
    expect([one.slots.length, one.slots.at(-1)]).toEqual([20, 30]);
    expect(one).toEqual(other);
  });

  it('takes a job of a hundred thousand tasks, by fewer runs', () => {
    const table = forecastTable(
      { profile: steady(100_000), runs: 1 },
      { totalSlots: 3, rng: createRng('a') },
    );
    expect(remainingMs(table, { progress: 0, slots: 2, statistic: 'worst' })).toBe(50_003_000);
  });
});
