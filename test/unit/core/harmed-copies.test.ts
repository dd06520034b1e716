import { beforeEach, describe, expect, it } from 'vitest';
import type { LossKind } from '../../../src/contracts/records.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { decideTick } from '../../../src/core/decide-tick.ts';
import type { Decision } from '../../../src/core/model/decision.ts';
import {
  applyAttempt,
  applyReplica,
  applyResult,
  createJobState,
  taskAt,
} from '../../../src/core/model/job-state.ts';
import { refute } from '../../../src/core/model/lost-outputs.ts';
import type { JobState } from '../../../src/core/model/job-view.ts';
import { createRng } from '../../../src/lib/rng.ts';
import { attempt, attemptRecord, carryOut, failure, resultOf, tickConfig } from '../../support/job-states.ts';

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

describe('a reader of a copy', () => {
  /** It fails, having missed the output of that name, once its task's first reader, which is `end/0/0`, has told first. */
  function missed(id: string): number {
    carryOut(state, [{ kind: 'launch', attemptId: attempt('end/0/1'), reason: 'backup' }], 9);
    const lost = [{ attemptId: attempt(id), how: 'damaged' as const, offset: 0, length: 10, crc: 1 }];
    const why = { ...failure('input-lost'), lost };
    applyAttempt(state, attemptRecord('end/0/1', 'failed', 15, { failure: why }), at(15));
    return taskAt(state, 1, 0).failures;
  }

  it('is not blamed for what it has missed where that went with the harmed output', () => {
    applyReplica(state, resultOf('map/0/1000000', 8));
    tick(11, 'damaged');
    expect(missed('map/0/1000000')).toBe(0);
    expect(state.suspects.size).toBe(0);
  });

  it('is not blamed either where the copy went as its task was to be done again', () => {
    carryOut(state, [{ kind: 'launch', attemptId: attempt('map/0/1'), reason: 'backup' }], 8);
    applyReplica(state, resultOf('map/0/1', 8));
    applyReplica(state, resultOf('map/0/1000001', 9));
    const losses = [
      { attemptId: attempt('map/0/0'), how: 'damaged' as const },
      { attemptId: attempt('map/0/1'), how: 'missing' as const },
    ];
    const budget = { slots: 10, cancelRequested: false, losses };
    carryOut(state, decideTick(state, at(11), tickConfig, budget, createRng('job')).decisions, 11);
    expect(taskAt(state, 0, 0).replicas).toEqual([]);
    expect(missed('map/0/1000001')).toBe(0);
  });

  it('is blamed where the copy is read still, and is there', () => {
    applyReplica(state, resultOf('map/0/1000000', 8));
    tick(11, 'missing');
    expect(missed('map/0/1000000')).toBe(0);
    refute(state, attempt('map/0/1000000'));
    expect(taskAt(state, 1, 0).failures).toBe(1);
  });

  it('is blamed for what was never read', () => {
    applyReplica(state, resultOf('map/0/1000000', 8));
    tick(11, 'damaged');
    expect(missed('map/1/1000000')).toBe(1);
  });
});
