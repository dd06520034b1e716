import { beforeEach, describe, expect, it } from 'vitest';
import { durationMs, epochMs } from '../../../src/contracts/units.ts';
import { applyDecisions, decideTick, type TickDecision } from '../../../src/core/decide-tick.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  cloneStage,
  createJobState,
  openStage,
  stageAt,
  taskAt,
  withdrawAttempt,
} from '../../../src/core/model/job-state.ts';
import { loseOutput, timesRedone } from '../../../src/core/model/lost-outputs.ts';
import { chargeLeft } from '../../../src/core/model/stage-clones.ts';
import { slotDemand } from '../../../src/core/policy/owed-launches.ts';
import { createRng } from '../../../src/lib/rng.ts';
import { attempt, attemptRecord, failure, resultOf, tickConfig } from '../../support/job-states.ts';
import type { JobState } from '../../../src/core/model/job-view.ts';

const at = epochMs;
const rng = createRng('job');

/** Map of three tasks (20, 50 and 30 bytes), then a reduce of one. */
const shapes = [
  { name: 'map', tasks: 3, upstream: [], sourceBytes: [20, 50, 30] },
  { name: 'reduce', tasks: 1, upstream: [0], sourceBytes: [0] },
];

let state: JobState;

function tick(
  now: number,
  slots = 10,
  more: { cancelRequested?: boolean; config?: typeof tickConfig } = {},
): TickDecision {
  const budget = { slots, cancelRequested: more.cancelRequested ?? false };
  const decided = decideTick(state, at(now), more.config ?? tickConfig, budget, rng);
  applyDecisions(state, decided.decisions, {
    now: at(now),
    openStage: (stage) => {
      openStage(state, stage, [], at(now));
    },
  });
  return decided;
}

const launched = ({ decisions }: TickDecision): string[] =>
  decisions.flatMap((each) => (each.kind === 'launch' ? [`${each.attemptId} ${each.reason}`] : []));

beforeEach(() => {
  state = createJobState(shapes);
  expect(tick(0, 0).decisions).toEqual([{ kind: 'open-stage', stage: 0 }]);
});

describe('decideTick', () => {
  it('launches the largest tasks first, as many as there are slots, and says why the next one waits', () => {
    const decided = tick(1, 2);
    expect(launched(decided)).toEqual(['map/1/0 first', 'map/2/0 first']);
    expect(decided.refusals).toEqual([{ kind: 'refuse', taskId: 'map/0', reason: 'no-slot' }]);
    expect(slotDemand(state)).toBe(3);
  });

  it('decides nothing twice', () => {
    tick(1);
    expect(tick(2).decisions).toEqual([]);
  });

  it('changes nothing by deciding', () => {
    const before = structuredClone(state);
    decideTick(state, at(1), tickConfig, { slots: 10, cancelRequested: false }, rng);
    expect(state).toEqual(before);
  });

  it('opens a stage only when every task before it has a result, and finishes after the last', () => {
    tick(1);
    for (const id of ['map/0/0', 'map/1/0']) applyResult(state, resultOf(id, 5), at(5));
    expect(tick(6).decisions).toEqual([]);
    applyResult(state, resultOf('map/2/0', 7), at(7));
    for (const id of ['map/0/0', 'map/1/0', 'map/2/0'])
      applyAttempt(state, attemptRecord(id, 'done', 7), at(7));
    expect(tick(8).decisions).toEqual([{ kind: 'open-stage', stage: 1 }]);
    expect(launched(tick(9))).toEqual(['reduce/0/0 first']);
    applyResult(state, resultOf('reduce/0/0', 10), at(10));
    applyAttempt(state, attemptRecord('reduce/0/0', 'done', 10), at(10));
    expect(tick(11).outcome).toEqual({ kind: 'finish' });
  });

  it('gives up an attempt that never claims itself and one that falls silent, and launches them again', () => {
    tick(0);
    applyAttempt(state, attemptRecord('map/1/0', 'running', 400), at(400));
    for (const id of ['map/0/0', 'map/2/0']) applyResult(state, resultOf(id, 500), at(500));
    for (const id of ['map/0/0', 'map/2/0']) applyAttempt(state, attemptRecord(id, 'done', 500), at(500));
    expect(tick(900).decisions).toEqual([]);
    expect(tick(901).decisions).toEqual([{ kind: 'lose', attemptId: 'map/1/0', reason: 'silent' }]);
    expect(launched(tick(1_100))).toEqual(['map/1/1 retry']);
    expect(tick(2_100).decisions).toEqual([]);
    expect(tick(2_101).decisions).toEqual([{ kind: 'lose', attemptId: 'map/1/1', reason: 'unclaimed' }]);
  });

  it('backs off before a retry, at most the doubled base', () => {
    tick(0);
    applyAttempt(state, attemptRecord('map/0/0', 'failed', 10, { failure: failure('user-code') }), at(10));
    const first = [10, 60, 110].flatMap((now) => launched(tick(now)).map((launch) => ({ launch, now })));
    expect(first.map(({ launch }) => launch)).toEqual(['map/0/1 retry']);
    applyAttempt(state, attemptRecord('map/0/1', 'failed', 120, { failure: failure('storage') }), at(120));
    expect(launched(tick(320))).toEqual(['map/0/2 retry']);
  });

  it('fails the job after the last allowed attempt, naming task and cause, and cancels the rest', () => {
    tick(0);
    for (const [number, now] of [
      [0, 10],
      [1, 1_000],
      [2, 2_000],
    ] as const) {
      applyAttempt(state, attemptRecord('map/1/0', 'running', now), at(now)); // Still alive.
      applyAttempt(state, attemptRecord('map/2/0', 'running', now), at(now));
      applyAttempt(
        state,
        attemptRecord(`map/0/${number}`, 'failed', now, {
          failure: failure('user-code', `exit ${number + 1}`),
        }),
        at(now),
      );
      if (number < 2) tick(now + 400);
    }
    const decided = tick(2_001);
    expect(decided.outcome).toEqual({
      kind: 'fail',
      message: 'stage map, task 0 failed 3 times, at last: exit 3',
    });
    expect(decided.decisions).toEqual([
      { kind: 'cancel', attemptId: 'map/1/0', reason: 'job-failed' },
      { kind: 'cancel', attemptId: 'map/2/0', reason: 'job-failed' },
    ]);
  });

  it('counts no clone that failed against its task, which is tried again as often as any', () => {
    tick(0);
    for (const number of [1, 2, 3]) addAttempt(state, attempt(`map/0/${number}`), 'clone', at(0));
    for (const number of [0, 1, 2, 3])
      applyAttempt(
        state,
        attemptRecord(`map/0/${number}`, 'failed', 10, { failure: failure('storage') }),
        at(10),
      );
    const decided = tick(500);
    expect(decided.outcome).toEqual({ kind: 'continue' });
    expect(launched(decided)).toEqual(['map/0/4 retry']);
    applyAttempt(state, attemptRecord('map/0/4', 'running', 600, { claimedAt: at(600) }), at(600));
    tick(10_000); // Silent, and lost. Two others were never claimed, which is nobody's failure.
    expect(state.stages[0]?.tasks[0]).toMatchObject({ failures: 2 });
  });

  it('fails at once for what a second attempt would meet again', () => {
    tick(0);
    applyAttempt(
      state,
      attemptRecord('map/1/0', 'failed', 5, { failure: failure('bad-record', 'a.csv:3: short') }),
      at(5),
    );
    expect(tick(6).outcome).toEqual({ kind: 'fail', message: 'stage map, task 1: a.csv:3: short' });
  });

  it('cancels every attempt when the job is to stop', () => {
    tick(0);
    const decided = tick(1, 10, { cancelRequested: true });
    expect(decided.decisions.map(({ kind }) => kind)).toEqual(['cancel', 'cancel', 'cancel']);
    expect(decided.outcome).toEqual({ kind: 'fail', message: 'cancelled on request' });
  });

  it('tells a loser to stop, once, and finishes without waiting for it', () => {
    state = createJobState([{ name: 'map', tasks: 1, upstream: [], sourceBytes: [1] }]);
    tick(0);
    tick(0);
    applyAttempt(state, attemptRecord('map/0/0', 'running', 100), at(100));
    tick(601); // Silent: lost, and launched again.
    tick(701);
    applyAttempt(state, attemptRecord('map/0/1', 'running', 750), at(750));
    applyResult(state, resultOf('map/0/0', 800), at(800)); // The one given up wins all the same.
    const decided = tick(801);
    expect(decided.decisions).toEqual([{ kind: 'cancel', attemptId: 'map/0/1', reason: 'sibling-won' }]);
    expect(decided.outcome).toEqual({ kind: 'finish' });
    expect(tick(802)).toMatchObject({ decisions: [], outcome: { kind: 'finish' } });
  });

  it('finishes only once every loser was told', () => {
    state = createJobState([{ name: 'map', tasks: 2, upstream: [], sourceBytes: [1, 1] }]);
    tick(0);
    tick(0);
    for (const id of ['map/0', 'map/1']) {
      addAttempt(state, attempt(`${id}/1`), 'backup', at(0));
      applyAttempt(state, attemptRecord(`${id}/1`, 'running', 10), at(10));
      applyResult(state, resultOf(`${id}/0`, 20), at(20));
      applyAttempt(state, attemptRecord(`${id}/0`, 'done', 20), at(20));
    }
    const one = { ...tickConfig, decisionsPerTick: 1 };
    expect(tick(21, 10, { config: one }).outcome).toEqual({ kind: 'continue' });
    expect(tick(22, 10, { config: one }).outcome).toEqual({ kind: 'finish' });
  });

  it('waits for the end of a winner no longer than the drain', () => {
    state = createJobState([{ name: 'map', tasks: 1, upstream: [], sourceBytes: [1] }]);
    const patient = { ...tickConfig, silenceMs: durationMs(1_000_000) };
    tick(0);
    tick(0);
    applyAttempt(state, attemptRecord('map/0/0', 'running', 10), at(10));
    applyResult(state, resultOf('map/0/0', 20), at(20));
    expect(tick(2_020, 10, { config: patient }).outcome).toEqual({ kind: 'continue' });
    expect(tick(2_021, 10, { config: patient }).outcome).toEqual({ kind: 'finish' });
  });

  it('uses the id of a throttled launch again, after the wait', () => {
    tick(0, 1);
    withdrawAttempt(state, attempt('map/1/0'), at(50));
    expect(launched(tick(10, 1))).toEqual(['map/2/0 first']);
    expect(launched(tick(50, 2))).toEqual(['map/1/0 first']);
  });

  it('keeps to the limit of decisions per tick', () => {
    const decided = tick(1, 10, { config: { ...tickConfig, decisionsPerTick: 2 } });
    expect(launched(decided)).toEqual(['map/1/0 first', 'map/2/0 first']);
    expect(decided.refusals).toEqual([{ kind: 'refuse', taskId: 'map/0', reason: 'tick-full' }]);
  });

  it('owes no attempt to a task whose worker had begun although its launch was withdrawn, until its output is lost', () => {
    tick(1);
    withdrawAttempt(state, attempt('map/1/0'), at(100));
    expect(slotDemand(state)).toBe(3);
    applyResult(state, resultOf('map/1/0', 50), at(50));
    // The two that run.
    expect(slotDemand(state)).toBe(2);
    expect(launched(tick(100))).toEqual([]);
    applyDecisions(state, [{ kind: 'lose-output', attemptId: attempt('map/1/0'), how: 'missing' }], {
      now: at(110),
      openStage: () => undefined,
    });
    expect(slotDemand(state)).toBe(3);
    expect(timesRedone(taskAt(state, 0, 1))).toBe(1);
    // Under the number that has ended no worker could begin.
    expect(launched(tick(120))).toEqual(['map/1/1 recompute']);
    expect(timesRedone(taskAt(state, 0, 1))).toBe(1);
  });

  it('counts the loss of an output that was made again by a worker which had begun although its launch was withdrawn', () => {
    tick(1);
    const lose = (id: string, now: number): void => {
      const decisions = [{ kind: 'lose-output', attemptId: attempt(id), how: 'missing' } as const];
      applyDecisions(state, decisions, { now: at(now), openStage: () => undefined });
    };
    applyResult(state, resultOf('map/1/0', 50), at(50));
    lose('map/1/0', 60);
    expect(launched(tick(70))).toEqual(['map/1/1 recompute']);
    withdrawAttempt(state, attempt('map/1/1'), at(80));
    applyResult(state, resultOf('map/1/1', 90), at(90));
    lose('map/1/1', 100);
    expect(launched(tick(110))).toEqual(['map/1/2 recompute']);
    expect(timesRedone(taskAt(state, 0, 1))).toBe(2);
    // Who takes the job over knows of its decisions, and not that a launch was withdrawn.
    const next = createJobState(shapes);
    applyResult(next, resultOf('map/1/1', 90), at(200));
    openStage(next, 0, [], at(0));
    addAttempt(next, attempt('map/1/0'), 'first', at(1));
    loseOutput(next, attempt('map/1/0'));
    addAttempt(next, attempt('map/1/1'), 'recompute', at(70));
    loseOutput(next, attempt('map/1/1'));
    addAttempt(next, attempt('map/1/2'), 'recompute', at(110));
    expect(timesRedone(taskAt(next, 0, 1))).toBe(2);
    expect(taskAt(next, 0, 1).since).toBe(taskAt(state, 0, 1).since);
  });

  it('opens a stage as it was where its results are known before, as they are to who takes a job over', () => {
    state = createJobState(shapes);
    for (const task of [0, 1, 2]) applyResult(state, resultOf(`map/${task}/0`, 50), at(90));
    openStage(state, 0, [1, 0, 0], at(7));
    openStage(state, 0, [1, 0, 0], at(8));
    cloneStage(state, 0, { copies: 2, tasks: 2 });
    for (const id of ['map/1/0', 'map/1/1', 'map/2/0', 'map/0/0'])
      addAttempt(state, attempt(id), id.endsWith('1') ? 'clone' : 'first', at(7));
    const map = stageAt(state, 0);
    expect(map).toMatchObject({ state: 'done', openedAt: 7, order: [1, 2, 0], unstarted: 0 });
    expect(map.tasks[0]?.inputBytes).toBe(21);
    // Copies of the largest two that work on are charged yet.
    expect(chargeLeft(map, 'all-copies')).toBe(3);
    expect(slotDemand(state)).toBe(4);
  });

  it('takes news in any order and any number of times', () => {
    tick(0);
    const news = [
      attemptRecord('map/0/0', 'running', 5),
      attemptRecord('map/0/0', 'failed', 9, { failure: failure('storage') }),
    ];
    for (const record of [...news, ...news.toReversed()]) applyAttempt(state, record, at(10));
    expect(state.stages[0]?.tasks[0]).toMatchObject({ failures: 1, attempts: [{ state: 'failed' }] });
  });
});
