import { expect, it } from 'vitest';
import { stageForecast } from '../../../../src/core/forecast/stage-forecast.ts';
import { steady, times } from './profiles.ts';

const stage = stageForecast(
  steady(0, 9, [], { runs: [{ slots: 1, times: times({ cold: [60], later: [10, 20] }) }], queueMs: [1, 3] }),
);

it('tells of all tasks of a stage, whatever their slots had run', () => {
  expect(stage).toMatchObject({ tasks: 9, meanMs: 30, queueMs: 2 });
  // √((20² + 10² + 30²) / 3) / 30
  expect(stage.variation).toBeCloseTo(0.72, 2);
});

it('tells how long those wait that wait, and all', () => {
  const riding = stageForecast(steady(5, 9, [], { queueMs: [1, 3], queuedShare: 0.25 }));
  expect([riding.queueMs, riding.waitMs]).toEqual([2, 0.5]);
});

it.each([
  [0, 0, 1],
  [5, 5, 1],
  [10, 10, 2 / 3],
  [15, (10 + 15 + 15) / 3, 2 / 3],
  [40, (10 + 20 + 40) / 3, 1 / 3],
  [60, 30, 0],
  [999, 30, 0],
])('by %i ms a task has run for a mean of %f, and a share of %f runs still', (ms, withinMs, share) => {
  expect(stage.within(ms).withinMs).toBeCloseTo(withinMs, 9);
  expect(stage.within(ms).share).toBeCloseTo(share, 9);
});
