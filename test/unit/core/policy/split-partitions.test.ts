import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defaultPolicyConfig } from '../../../../src/contracts/policy-config.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { applyDecisions, decideTick } from '../../../../src/core/decide-tick.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  createJobState,
  openStage,
} from '../../../../src/core/model/job-state.ts';
import type { JobState } from '../../../../src/core/model/job-view.ts';
import { cutEvenly, partitionsToSplit } from '../../../../src/core/policy/split-partitions.ts';
import { createRng } from '../../../../src/lib/rng.ts';
import { attempt, attemptRecord, resultOf, tickConfig } from '../../../support/job-states.ts';

const at = epochMs;
const config = defaultPolicyConfig.split;
const mega = 1_000_000;

/**
 * A join whose sides were written by such tasks: the MB that each has left for each partition. Each task has read 10 MB,
 * begun 100 ms after its launch, and run for 1 s.
 */
function joinOf(
  left: readonly (readonly number[])[],
  right: readonly (readonly number[])[],
  addableTasks: number | 'none' = 100,
  cutInputs?: readonly number[],
): JobState {
  const partitions = left[0]?.length ?? 0;
  const sources = (tasks: number): number[] => Array.from({ length: tasks }, () => 10 * mega);
  const state = createJobState([
    { name: 'left', tasks: left.length, upstream: [], sourceBytes: sources(left.length) },
    { name: 'right', tasks: right.length, upstream: [], sourceBytes: sources(right.length) },
    {
      name: 'join',
      tasks: partitions,
      upstream: [0, 1],
      sourceBytes: Array.from({ length: partitions }, () => 0),
      ...(addableTasks === 'none' ? {} : { addableTasks }),
      ...(cutInputs === undefined ? {} : { cutInputs }),
    },
  ]);
  for (const [stage, tasks] of [left, right].entries()) {
    openStage(state, stage, [], at(0));
    for (const [task, lengths] of tasks.entries()) {
      const id = `${stage === 0 ? 'left' : 'right'}/${String(task)}/0`;
      addAttempt(state, attempt(id), 'first', at(0));
      const times = { claimedAt: at(100), endedAt: at(1_100) };
      applyAttempt(state, attemptRecord(id, 'done', 1_100, times), at(1_100));
      const bytes = lengths.map((each) => each * mega);
      applyResult(state, resultOf(id, 1_100, bytes), at(1_100));
    }
  }
  return state;
}

const splitsOf = (state: JobState, slots = 100, changes: Partial<typeof config> = {}) =>
  partitionsToSplit(state, { ...config, ...changes }, { slots });

/** Eight tasks on the left, one on the right; partition 1 is far larger than the others. */
const skewed = (): JobState =>
  joinOf(
    Array.from({ length: 8 }, () => [1, 10, 1, 1]),
    [[2, 2, 2, 2]],
  );

describe('partitionsToSplit', () => {
  it('cuts the larger side of a heavy partition into parts of the usual size', () => {
    // 82 MB against 10 MB: parts of one task each, 10 MB, and the 2 MB of the other side. 0.1 ms for each kB.
    expect(splitsOf(skewed())).toEqual([
      {
        stage: 2,
        splits: [
          {
            task: 1,
            input: 0,
            cuts: [1, 2, 3, 4, 5, 6, 7],
            facts: { bytes: 82 * mega, usualBytes: 10 * mega, largestPartBytes: 12 * mega, savedMs: 7_000 },
          },
        ],
      },
    ]);
  });

  it('cuts the right-hand side where that is the larger one', () => {
    const state = joinOf(
      [[1, 1, 1]],
      Array.from({ length: 4 }, () => [2, 20, 2]),
    );
    expect(splitsOf(state)[0]?.splits).toMatchObject([{ task: 1, input: 1, cuts: [1, 2, 3] }]);
  });

  it('cuts the side alone that may be cut, though the other is the larger one', () => {
    // 48 MB on the left, 44 on the right: two parts of the right read 70 MB each where one task would read 92.
    const state = (cutInputs: readonly number[]): JobState =>
      joinOf(
        Array.from({ length: 4 }, () => [1, 12, 1]),
        Array.from({ length: 4 }, () => [1, 11, 1]),
        100,
        cutInputs,
      );
    expect(splitsOf(state([0, 1]))[0]?.splits).toMatchObject([{ task: 1, input: 0 }]);
    expect(splitsOf(state([1]))[0]?.splits).toMatchObject([{ task: 1, input: 1, cuts: [2] }]);
    expect(splitsOf(state([0]))[0]?.splits).toEqual(splitsOf(state([0, 1]))[0]?.splits);
  });

  it('leaves partitions alone that are not far above the others, or of which every slot has several', () => {
    const even = joinOf(
      Array.from({ length: 8 }, () => [6, 10, 6, 6]),
      [[2, 2, 2, 2]],
    );
    expect(splitsOf(even)).toEqual([]);
    // 112 MB on two slots: 56 MB each at best, of which 82 MB are not twice.
    expect(splitsOf(skewed(), 2)).toEqual([]);
    // On three slots 37.3 MB each: three parts of up to 32 MB are enough.
    expect(splitsOf(skewed(), 3)[0]?.splits).toMatchObject([{ cuts: [3, 5] }]);
  });

  it('leaves a partition alone where nothing is to be gained, or where one task has written all of it', () => {
    const small = joinOf(
      Array.from({ length: 8 }, () => [0.01, 0.2, 0.01]),
      [[0, 0, 0]],
    );
    expect(splitsOf(small)).toEqual([]);
    expect(splitsOf(small, 100, { leastGainMs: 100 })).toHaveLength(1);
    const one = joinOf(
      [
        [1, 90, 1],
        [1, 0, 1],
      ],
      [[1, 1, 1]],
    );
    expect(splitsOf(one)).toEqual([]);
  });

  it('reads no more of the other side than one task would read in all', () => {
    // 40 MB on the left, 20 MB on the right: with four parts the right would be read three times more, 60 MB.
    const state = joinOf(
      Array.from({ length: 8 }, () => [0.1, 5, 0.1]),
      [[0, 20, 0]],
    );
    expect(splitsOf(state)[0]?.splits).toMatchObject([
      { cuts: [2, 4, 6], facts: { largestPartBytes: 30 * mega } },
    ]);
  });

  it('adds no more tasks than there may be, to the heaviest partitions first, and tells them by partition', () => {
    const tasks = Array.from({ length: 6 }, () => [1, 20, 1, 40, 1, 1]);
    const right = [[0, 0, 0, 0, 0, 0]];
    const cutsOf = (most: number) =>
      splitsOf(joinOf(tasks, right, most)).flatMap(({ splits }) =>
        splits.map(({ task, cuts }) => [task, cuts.length]),
      );
    expect(cutsOf(100)).toEqual([
      [1, 5],
      [3, 5],
    ]);
    expect(cutsOf(7)).toEqual([
      [1, 2],
      [3, 5],
    ]);
    expect(cutsOf(0)).toEqual([]);
  });

  it('splits nothing of a stage whose operator needs whole partitions, or where it is off', () => {
    const needsWhole = joinOf(
      Array.from({ length: 8 }, () => [1, 10, 1, 1]),
      [[2, 2, 2, 2]],
      'none',
    );
    expect(splitsOf(needsWhole)).toEqual([]);
    expect(splitsOf(skewed(), 100, { isOn: false })).toEqual([]);
  });

  it('goes by what a usual task took in earlier runs, where that is known', () => {
    // 10 MB took 200 ms: 70 MB less are 1.4 s less, which is too little.
    const outlook = { slots: 100, earlierMs: [undefined, undefined, 200] };
    expect(partitionsToSplit(skewed(), config, outlook)).toEqual([]);
    const slow = partitionsToSplit(skewed(), config, { slots: 100, earlierMs: [0, 0, 400] });
    expect(slow[0]?.splits[0]?.facts).toMatchObject({ savedMs: 2_800 });
  });

  it('is decided as the stage opens, once, and adds its tasks behind those of the plan', () => {
    const state = skewed();
    const splits = splitsOf(state);
    const budget = { slots: 20, cancelRequested: false, splits };
    const { decisions } = decideTick(state, at(2_000), tickConfig, budget, createRng('job'));
    expect(decisions).toEqual([{ kind: 'open-stage', stage: 2, splits: splits[0]?.splits }]);
    const open = (stage: number): void => {
      openStage(state, stage, [10, 12, 10, 10, 12, 12, 12, 12, 12, 12, 12], at(2_000));
    };
    for (let time = 0; time < 2; time++)
      applyDecisions(state, decisions, { now: at(2_000), openStage: open });
    const join = state.stages[2];
    expect(join?.tasks.map(({ index, inputBytes }) => [index, inputBytes])).toEqual(
      [10, 12, 10, 10, 12, 12, 12, 12, 12, 12, 12].map((bytes, index) => [index, bytes]),
    );
    expect(join?.unstarted).toBe(11);
    const next = decideTick(
      state,
      at(2_001),
      tickConfig,
      { slots: 20, cancelRequested: false },
      createRng('job'),
    );
    expect(next.decisions.map((each) => (each.kind === 'launch' ? each.attemptId : each.kind))).toHaveLength(
      11,
    );
    expect(splitsOf(state)).toEqual([]);
  });

  it('opens a stage again that seemed done to whoever knew the results of its planned tasks alone', () => {
    const state = skewed();
    for (let task = 0; task < 4; task++)
      applyResult(state, resultOf(`join/${String(task)}/0`, 3_000), at(3_000));
    expect(state.doneAt).toBe(3_000);
    const decisions = [
      {
        kind: 'open-stage' as const,
        stage: 2,
        splits: [{ task: 1, input: 0, cuts: [4], facts: {} }],
      },
    ];
    const open = (stage: number): void => {
      openStage(state, stage, [], at(2_000));
    };
    applyDecisions(state, decisions, { now: at(2_000), openStage: open });
    expect([state.doneAt, state.stages[2]?.state, state.stages[2]?.unstarted]).toEqual([
      undefined,
      'open',
      1,
    ]);
    applyResult(state, resultOf('join/4/0', 3_100), at(3_100));
    expect([state.doneAt, state.stages[2]?.state]).toEqual([3_100, 'done']);
  });
});

describe('cutEvenly', () => {
  it('cuts at the nearest ends of tasks', () => {
    expect(cutEvenly([10, 10, 10, 10], 2)).toEqual({ cuts: [2], largest: 20 });
    expect(cutEvenly([0, 7, 0, 9, 0], 2)).toEqual({ cuts: [3], largest: 9 });
    expect(cutEvenly([100, 1, 1, 1], 4)).toEqual({ cuts: [1, 2, 3], largest: 100 });
    expect(cutEvenly([50, 0], 3)).toEqual({ cuts: [], largest: 50 });
  });

  it('never makes an empty part, and no more than it is asked for', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.constant(0), fc.nat(1_000)), { maxLength: 40 }),
        fc.integer({ min: 1, max: 20 }),
        (lengths, parts) => {
          const { cuts, largest } = cutEvenly(lengths, parts);
          const bounds = [0, ...cuts, lengths.length];
          const sums = bounds
            .slice(1)
            .map((to, part) => lengths.slice(bounds[part], to).reduce((sum, each) => sum + each, 0));
          expect(cuts.length).toBeLessThan(parts);
          if (cuts.length > 0) expect(Math.min(...sums)).toBeGreaterThan(0);
          expect(Math.max(...sums)).toBe(largest);
          expect(cuts).toEqual([...new Set(cuts)].toSorted((a, b) => a - b));
        },
      ),
      { numRuns: 500 },
    );
  });
});
