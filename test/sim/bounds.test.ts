import { expect, it } from 'vitest';
import { clairvoyantTimesOf, idealTimes, listScheduleMs, wavesMs } from '../../src/sim/bounds.ts';
import type { StageOutcome } from '../../src/sim/outcome.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { atOnce, scenarioOf } from './scenarios.ts';

const stageOf = (taskMs: number[], upstream: number[] = []): StageOutcome => ({
  name: 'stage',
  tasks: taskMs.length,
  upstream,
  clones: undefined,
  openedAtMs: 0,
  doneAtMs: 0,
  taskMs,
});

it('counts whole waves', () => {
  expect(wavesMs(0, 4, 10)).toBe(0);
  expect(wavesMs(8, 4, 10)).toBe(20);
  expect(wavesMs(9, 4, 10)).toBe(30);
});

it('lets all tasks take the mean, of all or without the worst quarter', () => {
  const stage = stageOf([10, 20, 30, 140]);
  expect(idealTimes({ stages: [stage] }, 2)).toEqual({ noSkewMs: 100, noSkewChopTailMs: 40 });
});

it('follows the longest way through the stages', () => {
  const stages = [stageOf([10]), stageOf([30]), stageOf([5, 5], [0, 1]), stageOf([100], [0])];
  expect(idealTimes({ stages }, 2)).toEqual({ noSkewMs: 110, noSkewChopTailMs: 110 });
});

it('gives each task to the slot where it ends first', () => {
  expect(listScheduleMs([3, 3, 2, 2, 2], [1, 1])).toBe(7);
  expect(listScheduleMs([10, 10], [1, 0.25])).toBe(20); // Rather wait for the fast slot than take the slow one.
  expect(listScheduleMs([], [1])).toBe(0);
});

it('takes the best attempt of each task, and is never later than any policy', async () => {
  const scenario = (policy: 'none' | 'late' | 'mantri') =>
    scenarioOf({
      cluster: { nodes: [{ count: 10 }, { count: 2, speed: 0.5 }] },
      scheduler: atOnce,
      reports: { everyMs: 1_000 },
      jobs: [
        {
          policy,
          policyConfig: { late: { minAgeMs: 5_000 } },
          stages: [
            {
              name: 'map',
              tasks: 40,
              workMs: 10_000,
              inputBytes: 1e6,
              slowdown: {
                kind: 'mixture',
                probability: 0.2,
                usual: 1,
                outlier: { kind: 'pareto', scale: 3, shape: 1.2, max: 30 },
              },
            },
          ],
        },
      ],
    });
  const [times] = clairvoyantTimesOf(scenario('none'), '3');
  // 40 tasks of 10 s on 10 + 2 / 2 slots' worth of speed; a schedule has to cut at whole tasks.
  expect(times).toEqual({ boundMs: 400_000 / 11, scheduleMs: 40_000 });
  for (const policy of ['none', 'late', 'mantri'] as const) {
    const { jobs } = await simulate(scenario(policy), { seed: '3' });
    expect(jobs[0]?.completedAtMs).toBeGreaterThanOrEqual(400_000 / 11);
  }
});
