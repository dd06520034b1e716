import { expect, it } from 'vitest';
import { epochMs } from '../../../../src/contracts/units.ts';
import { firstWave } from '../../../../src/core/forecast/first-wave.ts';
import type { JobState } from '../../../../src/core/model/job-view.ts';
import { barrier, profile, steady } from './profiles.ts';

/** A state of stages in a chain, of which some tasks have ended, and some attempts run since so many ms. */
function stateOf(
  stages: readonly {
    readonly tasks: number;
    readonly ended: readonly number[];
    readonly ages?: readonly number[];
  }[],
): JobState {
  const live = stages.flatMap(({ ages = [] }, stage) =>
    // Their workers' clocks are an hour ahead, and half of their time has passed since they were seen.
    ages.map((age) => ({
      ...{ stage, cancelOrdered: false },
      claimedAt: epochMs(3_610_000 - age),
      reportedAt: epochMs(3_610_000 - age / 2),
      seenAt: epochMs(10_000 - age / 2),
    })),
  );
  return {
    stages: stages.map(({ tasks, ended }, index) => ({
      index,
      shape: { name: `s${String(index)}`, upstream: index === 0 ? [] : [index - 1] },
      tasks: Array.from({ length: tasks }),
      statistics: { samples: ended.map((ms) => ({ ms })) },
    })),
    live: new Set(live),
  } as unknown as JobState;
}
const now = epochMs(10_000);
const timesOf = (state: JobState, others?: Parameters<typeof firstWave>[2]) =>
  firstWave(state, now, others)?.profile.stages.map(({ runs }) => runs[0]?.times.later);

it('tells nothing before four tasks of a stage have ended, or all of them', () => {
  expect(firstWave(stateOf([{ tasks: 9, ended: [1, 2, 3] }]), now)).toBeUndefined();
  expect(firstWave(stateOf([{ tasks: 3, ended: [1, 2, 3] }]), now)?.tasks).toBe(3);
});

it('counts what runs for longer than the mean of those that have ended, by its age', () => {
  const state = stateOf([{ tasks: 9, ended: [400, 100, 300, 200], ages: [50, 240, 260, 900] }]);
  expect(timesOf(state)).toEqual([[100, 200, 260, 300, 400, 900]]);
});

it('takes stages that have told nothing for the tasks of those that have', () => {
  const state = stateOf([
    { tasks: 4, ended: [100, 100, 100, 100] },
    { tasks: 2, ended: [] },
  ]);
  expect(firstWave(state, now)?.profile.stages[1]).toMatchObject({
    tasks: 2,
    inputs: [{ stage: 0, isBarrier: true }],
    runs: [{ times: { later: [100, 100, 100, 100] } }],
  });
});

it('takes them for what jobs like it tell, as many times as long as the others were', () => {
  const state = stateOf([
    { tasks: 4, ended: [100, 100, 100, 100] },
    { tasks: 2, ended: [] },
  ]);
  const others = profile(steady(50, 4), steady(700, 2, barrier(0)));
  expect(timesOf(state, others)?.[1]).toEqual([1_400]);
});
