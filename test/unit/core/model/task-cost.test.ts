import { describe, expect, it } from 'vitest';
import { costOf, fitCost } from '../../../../src/core/model/task-cost.ts';

/** So many finished tasks alike. */
const tasks = (count: number, bytes: number, ms: number) =>
  Array.from({ length: count }, () => ({ bytes, ms }));

describe('what a task costs by its input', () => {
  it('is so much each and so much a byte, where the tasks lie on such a line', () => {
    const cost = fitCost([...tasks(6, 1_000, 300), ...tasks(6, 2_000, 500)], 1_500);
    expect(cost).toMatchObject({ isLearnt: true, fixed: 100 });
    expect([1_000, 1_500, 2_000, 4_000].map((bytes) => costOf(cost, bytes))).toEqual([300, 400, 500, 900]);
  });

  it('is in proportion to input where the larger tasks were slower than that, as in a cold first wave', () => {
    const cost = fitCost([...tasks(9, 1_000, 100), ...tasks(6, 1_500, 900)], 1_200);
    expect(cost).toMatchObject({ isLearnt: true, fixed: 0 });
    // The usual task costs what it takes, and one half as large again half as much again.
    expect(costOf(cost, 1_000)).toBeCloseTo(100, 6);
    expect(costOf(cost, 1_500)).toBeCloseTo(150, 6);
  });

  it('is the same for all where input makes no difference', () => {
    const cost = fitCost([...tasks(6, 1_000, 300), ...tasks(6, 2_000, 200)], 1_500);
    expect(cost.perByte).toBe(0);
    expect(costOf(cost, 9_000)).toBe(250);
  });

  it('is supposed where sizes are too much alike, or tasks too few, to tell', () => {
    expect(fitCost(tasks(12, 1_000, 300), 1_000).isLearnt).toBe(false);
    expect(fitCost([...tasks(2, 1_000, 300), ...tasks(3, 2_000, 500)], 1_500).isLearnt).toBe(false);
  });
});
