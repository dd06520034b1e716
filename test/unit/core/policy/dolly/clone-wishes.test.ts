import { describe, expect, it } from 'vitest';
import { defaultPolicyConfig, type PolicyConfig } from '../../../../../src/contracts/policy-config.ts';
import { epochMs } from '../../../../../src/contracts/units.ts';
import { applyDecisions } from '../../../../../src/core/decide-tick.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  cloneStage,
  createJobState,
  openStage,
  stageAt,
} from '../../../../../src/core/model/job-state.ts';
import { addedCopies, chargeLeft, owedClones } from '../../../../../src/core/model/stage-clones.ts';
import { answerOf, type CloneWish, cloneWishes } from '../../../../../src/core/policy/dolly/clone-wishes.ts';
import { stragglersOf } from '../../../../../src/core/policy/dolly/straggler-rate.ts';
import { attempt, attemptRecord, resultOf } from '../../../../support/job-states.ts';
import type { JobState } from '../../../../../src/core/model/job-view.ts';

const now = epochMs(0);
const outlook = (config: Partial<PolicyConfig['dolly']> = {}) => ({
  config: { ...defaultPolicyConfig.dolly, ...config },
  stragglerProbability: 0.1,
  copiesSeen: 0,
  totalSlots: 1_000,
  waitMs: 0,
  minSamples: 3,
  hasSlack: false,
});

/** Two maps of four tasks, and a join of ten that reads both. */
function twoMapsAndAJoin(): JobState {
  const state = createJobState([
    { name: 'left', tasks: 4, upstream: [], sourceBytes: [4, 3, 2, 1] },
    { name: 'right', tasks: 4, upstream: [], sourceBytes: [1, 1, 1, 1] },
    { name: 'join', tasks: 10, upstream: [0, 1], sourceBytes: [] },
  ]);
  openStage(state, 0, [], now);
  return state;
}

const only = (wishes: readonly CloneWish[]): CloneWish => {
  const [wish] = wishes;
  if (wish === undefined || wishes.length > 1) throw new Error('there is not exactly one wish');
  return wish;
};

describe('cloneWishes', () => {
  it('asks for open stages before their first task is launched, and not after', () => {
    const state = twoMapsAndAJoin();
    expect(only(cloneWishes(state, outlook()))).toEqual({
      stage: 0,
      copies: 2,
      request: { phase: 'left', unitSlots: 8, leastUnits: 1, mostUnits: 1, besideSlots: 0 },
      facts: { stragglerProbability: 0.1, tasks: 4, copies: 2, copiesWanted: 2 },
    });
    addAttempt(state, attempt('left/0/0'), 'first', now);
    expect(cloneWishes(state, outlook())).toEqual([]);
  });

  it('asks no more once it is decided', () => {
    const state = twoMapsAndAJoin();
    cloneStage(state, 0, { copies: 2, tasks: 4 });
    expect(cloneWishes(state, outlook())).toEqual([]);
  });

  it('counts what the rest of the job needs beside', () => {
    const state = twoMapsAndAJoin();
    addAttempt(state, attempt('left/0/0'), 'first', now);
    openStage(state, 1, [], now);
    // Four tasks of the other stage, one of them running, and eight copies here.
    expect(only(cloneWishes(state, outlook())).request).toMatchObject({ unitSlots: 8, besideSlots: 4 });
    expect(only(cloneWishes(state, outlook({ charge: 'extra-copies' }))).request).toMatchObject({
      unitSlots: 4,
      besideSlots: 8,
    });
  });

  it.each([
    [[undefined, undefined], undefined],
    [[2, undefined], undefined],
    [[2, 3], 2],
    [[3, 5], 3],
  ])('gives a stage no more copies than those that it reads: %j', ([left, right], copies) => {
    const state = twoMapsAndAJoin();
    if (left !== undefined) cloneStage(state, 0, { copies: left, tasks: 4 });
    if (right !== undefined) cloneStage(state, 1, { copies: right, tasks: 4 });
    for (const place of [0, 1]) stageAt(state, place).state = 'done';
    openStage(state, 2, [], now);
    // By itself, ten tasks at p = 10 % would have three.
    const [wish] = cloneWishes(state, outlook());
    expect(wish?.copies).toBe(copies);
  });

  it('asks in parts where a part is of use', () => {
    const request = (config: Partial<PolicyConfig['dolly']>) =>
      only(cloneWishes(twoMapsAndAJoin(), outlook({ straggleRisk: 1e-6, mostClones: 3, ...config }))).request;
    expect(request({})).toMatchObject({ unitSlots: 12, leastUnits: 1, mostUnits: 1 });
    expect(request({ admission: 'partial' })).toMatchObject({ unitSlots: 4, leastUnits: 2, mostUnits: 3 });
    expect(request({ admission: 'first-come' })).toMatchObject({ unitSlots: 3, leastUnits: 1, mostUnits: 4 });
  });

  it('makes of what is granted copies of tasks', () => {
    const clones = (config: Partial<PolicyConfig['dolly']>, units: number) => {
      const view = outlook({ straggleRisk: 1e-6, mostClones: 3, ...config });
      const wish = only(cloneWishes(twoMapsAndAJoin(), view));
      return answerOf(wish, { units, usedSlots: 5, cloneSlots: 2 }, view);
    };
    expect(clones({}, 1)).toMatchObject({
      clones: { copies: 3, tasks: 4 },
      facts: { chargedSlots: 12, usedSlots: 5, cloneSlots: 2, totalSlots: 1_000 },
    });
    expect(clones({}, 0).clones).toBeUndefined();
    expect(clones({ admission: 'partial' }, 2).clones).toEqual({ copies: 2, tasks: 4 });
    expect(clones({ admission: 'partial', charge: 'extra-copies' }, 1).clones).toEqual({
      copies: 2,
      tasks: 4,
    });
    expect(clones({ admission: 'first-come' }, 3).clones).toEqual({ copies: 3, tasks: 3 });
    expect(addedCopies([clones({}, 1), clones({}, 0), clones({ admission: 'first-come' }, 3)])).toBe(8 + 6);
  });
});

describe('the charge of a cloned stage', () => {
  it('falls as its copies end, however they end', () => {
    const state = twoMapsAndAJoin();
    const left = () => [
      chargeLeft(stageAt(state, 0), 'all-copies'),
      chargeLeft(stageAt(state, 0), 'extra-copies'),
      owedClones(state.stages),
    ];
    expect(left()).toEqual([0, 0, 0]);
    applyDecisions(state, [{ kind: 'clone-stage', stage: 0, copies: 2, tasks: 4, facts: {} }], {
      now,
      openStage: () => undefined,
    });
    expect(left()).toEqual([8, 4, 4]);
    for (const task of [0, 1, 2, 3]) addAttempt(state, attempt(`left/${task}/0`), 'first', now);
    expect(left()).toEqual([8, 4, 4]);
    for (const task of [0, 1, 2, 3]) addAttempt(state, attempt(`left/${task}/1`), 'clone', now);
    expect(left()).toEqual([8, 4, 0]);
    applyAttempt(state, attemptRecord('left/0/1', 'failed', 5), epochMs(5));
    expect(left()).toEqual([7, 3, 0]);
    applyResult(state, resultOf('left/1/0', 6), epochMs(6));
    applyAttempt(state, attemptRecord('left/1/0', 'done', 6), epochMs(6));
    expect(left()).toEqual([6, 2, 0]);
    applyAttempt(state, attemptRecord('left/1/1', 'cancelled', 7), epochMs(7));
    expect(left()).toEqual([5, 2, 0]);
  });
});

describe('stragglers of a stage', () => {
  it('are copies that ended, by success or by order, at under half of the median rate', () => {
    const state = twoMapsAndAJoin();
    const ended = (id: string, how: 'done' | 'cancelled' | 'failed', ms: number, bytesRead = 100) => {
      addAttempt(state, attempt(id), id.endsWith('/0') ? 'first' : 'clone', now);
      const progress = {
        bytesRead,
        bytesTotal: 100,
        recordsIn: 0,
        recordsOut: 0,
        phase: 'compute' as const,
        phaseMs: { init: 0, read: 0, compute: 0, write: 0 },
        peakMemoryBytes: 0,
      };
      applyAttempt(state, attemptRecord(id, how, ms, { claimedAt: now, progress }), epochMs(ms));
    };
    ended('left/0/0', 'done', 100);
    ended('left/1/0', 'done', 100);
    expect(stragglersOf(stageAt(state, 0))).toEqual({ attempts: 0, stragglers: 0 });
    ended('left/2/0', 'done', 110);
    ended('left/0/1', 'cancelled', 100, 10);
    ended('left/1/1', 'cancelled', 100, 60);
    ended('left/3/0', 'failed', 100, 1);
    expect(stragglersOf(stageAt(state, 0))).toEqual({ attempts: 5, stragglers: 1 });
  });
});
