import { beforeEach, describe, expect, it } from 'vitest';
import { defaultPolicyConfig } from '../../../../../src/contracts/policy-config.ts';
import { durationMs, epochMs } from '../../../../../src/contracts/units.ts';
import { applyDecisions, decideTick, type TickDecision } from '../../../../../src/core/decide-tick.ts';
import {
  addAttempt,
  applyAttempt,
  applyReplica,
  applyResult,
  createJobState,
  openStage,
} from '../../../../../src/core/model/job-state.ts';
import type { JobState, StageShape } from '../../../../../src/core/model/job-view.ts';
import type { CloneAnswer } from '../../../../../src/core/model/stage-clones.ts';
import type { TickConfig } from '../../../../../src/core/model/tick-config.ts';
import { copiesToRead, leastCopies } from '../../../../../src/core/model/upstream-copies.ts';
import { createRng } from '../../../../../src/lib/rng.ts';
import { attempt, attemptRecord, resultOf, tickConfig } from '../../../../support/job-states.ts';

const rng = createRng('job');
const config: TickConfig = {
  ...tickConfig,
  claimLeaseMs: durationMs(1_000_000),
  silenceMs: durationMs(1_000_000),
  policy: 'dolly',
  policyConfig: {
    ...defaultPolicyConfig,
    dolly: { ...defaultPolicyConfig.dolly, otherwise: 'none' },
  },
};

const waitMs = 500;
let state: JobState;

function tick(now: number, answers: readonly CloneAnswer[] = []): TickDecision {
  const budget = { slots: 100, cancelRequested: false, clones: answers };
  const decided = decideTick(state, epochMs(now), config, budget, rng);
  applyDecisions(state, decided.decisions, {
    now: epochMs(now),
    openStage: (stage) => {
      openStage(state, stage, [], epochMs(now));
    },
  });
  return decided;
}

const twice = (stage: number, tasks: number, wait = waitMs): CloneAnswer => ({
  stage,
  clones: { copies: 2, tasks, ...(wait === 0 ? {} : { waitMs: wait }) },
  reason: undefined,
  facts: {},
});

const told = ({ decisions }: TickDecision): string[] =>
  decisions.flatMap((each) => {
    if (each.kind === 'launch') return [`launch ${each.attemptId} ${each.reason}`];
    return each.kind === 'cancel' ? [`cancel ${each.attemptId}`] : [];
  });
const refused = ({ refusals }: TickDecision): string[] =>
  refusals.map(({ taskId, reason }) => `${taskId} ${reason}`);

function done(id: string, at: number): void {
  applyResult(state, resultOf(id, at), epochMs(at));
  applyAttempt(state, attemptRecord(id, 'done', at), epochMs(at));
}

function kept(id: string, at: number): void {
  applyAttempt(state, attemptRecord(id, 'done', at), epochMs(at));
  applyReplica(state, resultOf(id, at));
}

/** Two maps of two copies each, and `reduces` tasks that read them; the maps run. */
function begin(shape: Partial<StageShape> = {}, wait = waitMs): void {
  state = createJobState([
    { name: 'map', tasks: 2, upstream: [], sourceBytes: [10, 10] },
    { name: 'reduce', tasks: 2, upstream: [0], sourceBytes: [], ...shape },
  ]);
  tick(0);
  tick(0, [twice(0, 2, wait)]);
  for (const id of ['map/0/0', 'map/0/1', 'map/1/0', 'map/1/1'])
    applyAttempt(state, attemptRecord(id, 'running', 1), epochMs(1));
}

/** The first copy of either map is done at 100 and 200; the reduces open and are cloned. */
function openReduces(wait = waitMs): TickDecision {
  done('map/0/0', 100);
  done('map/1/1', 200);
  tick(200);
  return tick(200, [twice(1, 2, wait)]);
}

describe('delay assignment', () => {
  beforeEach(() => {
    begin();
  });

  it('lets late copies go on while their stage is under way', () => {
    done('map/0/0', 100);
    expect(told(tick(150))).toEqual([]);
    expect(told(tick(100_000))).toEqual([]);
  });

  it('launches originals at once and has clones wait for copies of their own', () => {
    const decided = openReduces();
    expect(told(decided)).toEqual(['launch reduce/0/0 first', 'launch reduce/1/0 first']);
    expect(refused(decided)).toEqual(['reduce/0 awaiting-copy', 'reduce/1 awaiting-copy']);
    expect(told(tick(400))).toEqual([]);
  });

  it('launches clones once every output that they read has a second copy', () => {
    openReduces();
    kept('map/0/1', 300);
    expect(told(tick(300))).toEqual([]);
    kept('map/1/0', 350);
    expect(told(tick(350))).toEqual(['launch reduce/0/1 clone', 'launch reduce/1/1 clone']);
    const [task] = state.stages[1]?.tasks ?? [];
    if (task === undefined) throw new Error('no task');
    expect(copiesToRead(state, task, 0)).toBeUndefined();
    expect(copiesToRead(state, task, 1)).toEqual({ map: { '0': 1, '1': 0 } });
    expect(task.attempts.map(({ hasOwnCopies }) => hasOwnCopies)).toEqual([true, true]);
  });

  it('launches them after ω in any case and cancels upstream copies that are unfinished then', () => {
    openReduces();
    kept('map/0/1', 300);
    expect(told(tick(699))).toEqual([]);
    expect(told(tick(700))).toEqual(['cancel map/1/0', 'launch reduce/0/1 clone', 'launch reduce/1/1 clone']);
    const [task] = state.stages[1]?.tasks ?? [];
    if (task === undefined) throw new Error('no task');
    expect(copiesToRead(state, task, 1)).toEqual({ map: { '0': 1 } });
    expect(task.attempts.map(({ hasOwnCopies }) => hasOwnCopies)).toEqual([true, false]);
  });

  it('waits no longer where the missing copy cannot come any more', () => {
    openReduces();
    kept('map/0/1', 300);
    applyAttempt(state, attemptRecord('map/1/0', 'failed', 310), epochMs(310));
    expect(told(tick(310))).toEqual(['launch reduce/0/1 clone', 'launch reduce/1/1 clone']);
  });

  it('cancels late copies as soon as nobody downstream is cloned', () => {
    done('map/0/0', 100);
    done('map/1/1', 200);
    tick(200);
    expect(told(tick(200))).toEqual(['launch reduce/0/0 first', 'launch reduce/1/0 first']);
    expect(told(tick(201))).toEqual(['cancel map/0/1', 'cancel map/1/0']);
  });

  it('cancels late copies at once in a stage that no other reads', () => {
    openReduces();
    tick(700);
    for (const id of ['reduce/0/0', 'reduce/0/1'])
      applyAttempt(state, attemptRecord(id, 'running', 701), epochMs(701));
    done('reduce/0/0', 800);
    expect(told(tick(800))).toEqual(['cancel reduce/0/1']);
  });

  it('keeps late copies no longer than ω for a stage that cannot open yet', () => {
    state = createJobState([
      { name: 'map', tasks: 1, upstream: [], sourceBytes: [10] },
      { name: 'slow', tasks: 1, upstream: [], sourceBytes: [10] },
      { name: 'join', tasks: 1, upstream: [0, 1], sourceBytes: [] },
    ]);
    tick(0);
    tick(0, [twice(0, 1)]);
    for (const id of ['map/0/0', 'map/0/1']) applyAttempt(state, attemptRecord(id, 'running', 1), epochMs(1));
    done('map/0/0', 100);
    expect(told(tick(100))).toEqual([]);
    expect(told(tick(599))).toEqual([]);
    expect(told(tick(600))).toEqual(['cancel map/0/1']);
  });

  it('takes no copy for a replica whose bytes differ from the winner’s', () => {
    openReduces();
    applyAttempt(state, attemptRecord('map/0/1', 'done', 300), epochMs(300));
    applyReplica(state, resultOf('map/0/1', 300, [11]));
    expect(state.stages[0]?.tasks[0]?.replicas).toEqual([]);
    kept('map/1/0', 300);
    kept('map/1/0', 300);
    expect(state.stages[0]?.tasks[1]?.replicas).toEqual([0]);
    expect(state.stages[0]?.replicated).toEqual([1]);
  });

  it('has a task that is launched again read another copy', () => {
    openReduces();
    kept('map/0/1', 300);
    const [task] = state.stages[1]?.tasks ?? [];
    if (task === undefined) throw new Error('no task');
    expect(copiesToRead(state, task, 1)).toEqual({ map: { '0': 1 } });
    expect(copiesToRead(state, task, 2)).toBeUndefined();
    expect(copiesToRead(state, task, 3)).toEqual({ map: { '0': 1 } });
  });
});

describe('the copies that a task may count on', () => {
  const counts = (): (number | undefined)[] =>
    (state.stages[1]?.tasks ?? []).map((task) => leastCopies(state, task));

  it.each([
    { pattern: 'all-to-all', one: [1, 1], both: [2, 2], third: [2, 2], all: [3, 3] },
    { pattern: 'one-to-one', one: [2, 1], both: [2, 2], third: [2, 3], all: [3, 3] },
  ] as const)(
    'are those of the output that has the fewest: $pattern',
    ({ pattern, one, both, third, all }) => {
      begin({ patterns: [pattern] });
      for (const id of ['map/0/2', 'map/1/2']) addAttempt(state, attempt(id), 'clone', epochMs(1));
      openReduces();
      expect(counts()).toEqual([1, 1]);
      kept('map/0/1', 300);
      expect(counts()).toEqual(one);
      kept('map/1/0', 301);
      expect(counts()).toEqual(both);
      kept('map/1/2', 302);
      expect(counts()).toEqual(third);
      kept('map/0/2', 303);
      expect(counts()).toEqual(all);
    },
  );
});

describe('one-to-one', () => {
  it('waits for the copy of its own source alone', () => {
    begin({ patterns: ['one-to-one'] });
    openReduces();
    kept('map/1/0', 300);
    expect(told(tick(300))).toEqual(['launch reduce/1/1 clone']);
  });
});

describe('contention cloning (ω = 0)', () => {
  it('cancels late copies at once and launches all clones with the originals', () => {
    begin({}, 0);
    done('map/0/0', 100);
    expect(told(tick(100))).toEqual(['cancel map/0/1']);
    done('map/1/1', 200);
    expect(told(tick(200))).toEqual(['cancel map/1/0']);
    expect(told(tick(200, [twice(1, 2, 0)]))).toEqual([
      'launch reduce/0/0 first',
      'launch reduce/1/0 first',
      'launch reduce/0/1 clone',
      'launch reduce/1/1 clone',
    ]);
  });
});

describe('contention avoidance (ω without end)', () => {
  it('launches no clone without a copy of its own', () => {
    begin({}, 1e12);
    openReduces(1e12);
    expect(told(tick(900_000))).toEqual([]);
    kept('map/0/1', 900_001);
    kept('map/1/0', 900_001);
    expect(told(tick(900_001))).toEqual(['launch reduce/0/1 clone', 'launch reduce/1/1 clone']);
  });
});

describe('where an output is read before any of it has a replica', () => {
  it('names no copies', () => {
    begin();
    openReduces();
    const [task] = state.stages[1]?.tasks ?? [];
    if (task === undefined) throw new Error('no task');
    expect(copiesToRead(state, task, 1)).toBeUndefined();
    expect(state.attempts.get(attempt('reduce/0/0'))?.hasOwnCopies).toBe(true);
  });
});
