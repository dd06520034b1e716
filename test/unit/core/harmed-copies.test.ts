import { beforeEach, describe, expect, it } from 'vitest';
import type { LossKind } from '../../../src/contracts/records.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { decideTick } from '../../../src/core/decide-tick.ts';
import type { Decision } from '../../../src/core/model/decision.ts';
import { applyReplica, applyResult, createJobState, taskAt } from '../../../src/core/model/job-state.ts';
import type { JobState } from '../../../src/core/model/job-view.ts';
import { createRng } from '../../../src/lib/rng.ts';
import { attempt, carryOut, resultOf, tickConfig } from '../../support/job-states.ts';

const at = epochMs;

/** Two tasks, and one that reads both. */
const shapes = [
  { name: 'map', tasks: 2, upstream: [], sourceBytes: [20, 50] },
  { name: 'end', tasks: 1, upstream: [0], sourceBytes: [0] },
];

let state: JobState;
let log: { readonly now: number; readonly decisions: readonly Decision[] }[];

/** A tick that knows how the output of the first task's first attempt was found to be lost, if it was. */
function tick(now: number, how?: LossKind): void {
  const losses = how === undefined ? [] : [{ attemptId: attempt('map/0/0'), how }];
  const budget = { slots: 10, cancelRequested: false, losses };
  const { decisions } = decideTick(state, at(now), tickConfig, budget, createRng('job'));
  log.push({ now, decisions });
  carryOut(state, decisions, now);
}

beforeEach(() => {
  state = createJobState(shapes);
  log = [];
  tick(0);
  tick(1);
  for (const id of ['map/0/0', 'map/1/0']) applyResult(state, resultOf(id, 5), at(5));
  tick(6);
  tick(7);
});

describe('a copy of an output that was harmed', () => {
  it('is no replica of what was made in its place, however late it is told', () => {
    tick(11, 'damaged');
    tick(12);
    applyResult(state, resultOf('map/0/1', 20), at(20));
    applyReplica(state, resultOf('map/0/1000000', 8));
    expect(taskAt(state, 0, 0).replicas).toEqual([]);
    applyReplica(state, resultOf('map/0/1000001', 21));
    expect(taskAt(state, 0, 0).replicas).toEqual([1_000_001]);
  });

  it.each([
    ['damaged' as const, []],
    ['short' as const, []],
    ['missing' as const, [1_000_000]],
  ])('goes with it where another replica is read: what is %s leaves %j', (how, left) => {
    applyReplica(state, resultOf('map/0/2', 8));
    applyReplica(state, resultOf('map/0/1000000', 8));
    tick(11, how);
    expect(taskAt(state, 0, 0)).toMatchObject({ result: { attemptId: 'map/0/2' }, replicas: left });
  });

  it('is none for whoever takes the job over either, who knows the new output before the loss', () => {
    tick(11, 'damaged');
    tick(12);
    const fresh = createJobState(shapes);
    for (const id of ['map/0/1', 'map/1/0']) applyResult(fresh, resultOf(id, 50), at(50));
    applyReplica(fresh, resultOf('map/0/1000000', 50));
    for (const { decisions, now } of log) carryOut(fresh, decisions, now);
    expect(taskAt(fresh, 0, 0)).toMatchObject({ result: { attemptId: 'map/0/1' }, replicas: [] });
    expect(fresh.stages[0]?.replicated).toEqual([0]);
  });
});
