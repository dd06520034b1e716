import { beforeEach, describe, expect, it } from 'vitest';
import type { Worker } from '../../../../src/contracts/job-spec.ts';
import { pricesWith } from '../../../../src/contracts/prices.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { applyDecisions, decideTick, type TickDecision } from '../../../../src/core/decide-tick.ts';
import { costsOf, tallyDollars, totalOf } from '../../../../src/core/model/cost.ts';
import {
  applyAttempt,
  applyResult,
  createJobState,
  openStage,
} from '../../../../src/core/model/job-state.ts';
import type { JobState } from '../../../../src/core/model/job-view.ts';
import type { BudgetTerms, FoundLoss } from '../../../../src/core/model/tick-config.ts';
import { dollarsSoFar } from '../../../../src/core/policy/budget.ts';
import { createRng } from '../../../../src/lib/rng.ts';
import { attempt, attemptRecord, failure, resultOf, tickConfig } from '../../../support/job-states.ts';

const at = epochMs;
/** $0.000023 a second of a medium Lambda worker. */
const second = (1769 / 1024) * 0.0000133334;

let state: JobState;

const startWith = (tasks: number, worker?: Worker): void => {
  const sourceBytes = Array.from({ length: tasks }, () => 10);
  const shape = {
    name: 'map',
    tasks,
    upstream: [],
    sourceBytes,
    ...(worker === undefined ? {} : { worker }),
  };
  state = createJobState([shape]);
  openStage(state, 0, [], at(0));
};

function tick(
  now: number,
  dollars: Omit<BudgetTerms, 'onBudget'> & Partial<BudgetTerms>,
  slots = 100,
  losses: readonly FoundLoss[] = [],
): TickDecision {
  const budget = {
    ...{ slots, losses, cancelRequested: false },
    dollars: { onBudget: 'stop' as const, ...dollars },
  };
  const config = { ...tickConfig, silenceMs: 1e9 as never };
  const decided = decideTick(state, at(now), config, budget, createRng('job'));
  carryOut(decided, now);
  return decided;
}

function carryOut({ decisions }: TickDecision, now: number): void {
  const open = (stage: number): void => {
    openStage(state, stage, [], at(now));
  };
  applyDecisions(state, decisions, { now: at(now), openStage: open });
}

const launched = ({ decisions }: TickDecision): string[] =>
  decisions.flatMap((each) => (each.kind === 'launch' ? [each.attemptId] : []));

/** The attempts of a task that have run from 0 to `ms`. */
const runs = (id: string, ms: number): void => {
  applyAttempt(state, attemptRecord(id, 'running', ms, { claimedAt: at(0) }), at(ms));
};
const ends = (id: string, ms: number): void => {
  applyResult(state, resultOf(id, ms), at(ms));
  applyAttempt(state, attemptRecord(id, 'done', ms, { claimedAt: at(0) }), at(ms));
};

beforeEach(() => {
  startWith(4);
});

describe('the dollars of a job', () => {
  it('are counted by attempt, however often and late its record comes', () => {
    tick(0, { capDollars: 10 });
    for (let time = 0; time < 3; time++) runs('map/0/0', 10_000);
    expect(dollarsSoFar(state, at(10_000))).toBeCloseTo(10 * second, 9);
    // It has reported no more since: time goes on by our clock.
    expect(dollarsSoFar(state, at(12_000))).toBeCloseTo(12 * second, 9);
    ends('map/0/0', 11_000);
    ends('map/0/0', 11_000);
    expect(dollarsSoFar(state, at(60_000))).toBeCloseTo(11 * second, 9);
  });

  it('are those of the record: time, requests of attempts, and of the coordinator', () => {
    tick(0, { capDollars: 10 });
    const record = attemptRecord('map/0/0', 'running', 1_000, { claimedAt: at(0) });
    const requests = { writeUnits: 400_000, get: 500_000 };
    const progress = {
      bytesRead: 1,
      bytesTotal: 2,
      recordsIn: 0,
      recordsOut: 0,
      phase: 'read',
      peakMemoryBytes: 0,
    } as const;
    const phaseMs = { init: 0, read: 0, compute: 0, write: 0 };
    applyAttempt(state, { ...record, progress: { ...progress, phaseMs, requests } }, at(1_000));
    // 0.4 x $0.625 + 0.5 x $0.40 + a million transitions.
    const dollars = dollarsSoFar(state, at(1_000), { coordination: { states: 1_000_000 } });
    expect(dollars).toBeCloseTo(0.25 + 0.2 + 25 + second, 7);
  });

  it('follow the prices that they are given', () => {
    tick(0, { capDollars: 10 });
    runs('map/0/0', 1_000);
    const prices = pricesWith({ lambdaGbSecond: 1 });
    expect(dollarsSoFar(state, at(1_000), { prices })).toBeCloseTo(1769 / 1024, 9);
    expect(() => pricesWith({ lambdaGbSeconds: 1 })).toThrow(
      /lambdaGbSeconds is not a known field; did you mean "lambdaGbSecond"/,
    );
    expect(() => pricesWith({ s3Put: -1 })).toThrow(/s3Put must be dollars, 0 or more/);
    expect(() => pricesWith({ asOf: 'lately' })).toThrow(/asOf must be a day such as "2026-11-01"/);
  });

  it('of a tally are the sum of its parts', () => {
    const tally = {
      writeUnits: 3e6,
      readUnits: 5e6,
      put: 7e5,
      list: 1e5,
      get: 1e6,
      lambda: 1e6,
      states: 1e4,
      api: 1e5,
      logBytes: 1e10,
      coordinatorMbMs: 1e10,
    };
    expect(tallyDollars(tally)).toBeCloseTo(totalOf(costsOf(tally, 0)), 8);
  });
});

describe('a tick of a job with a budget', () => {
  it('that is smaller than one attempt tries one, and then ends the job', () => {
    expect(launched(tick(0, { capDollars: 0.0001 }))).toEqual(['map/0/0']);
    expect(launched(tick(1, { capDollars: 0.0001 }))).toEqual([]);
    ends('map/0/0', 60_000);
    const { outcome } = tick(60_001, { capDollars: 0.0001 });
    expect(outcome).toMatchObject({ kind: 'fail', cause: 'budget' });
    expect(outcome.kind === 'fail' && outcome.message).toMatch(
      /^the budget of \$0\.0001 is used up: \$0\.001382 counted so far, 3 tasks are still owed an attempt, which costs about \$0\.0013\d+, /,
    );
  });

  it('that the submission alone has used up launches nothing', () => {
    const { outcome, decisions } = tick(0, { capDollars: 0.0001, coordination: { states: 40 } });
    expect(decisions).toEqual([]);
    expect(outcome).toMatchObject({ kind: 'fail', cause: 'budget' });
  });

  it('launches as many as fit by what finished tasks took, and tells the next with the numbers', () => {
    tick(0, { capDollars: 0.0001 }, 1);
    ends('map/0/0', 10_000);
    // 10 s have cost $0.00023; another two fit into $0.00075 with their requests, and a third does not.
    const decided = tick(10_001, { capDollars: 0.00075 });
    expect(launched(decided)).toEqual(['map/1/0', 'map/2/0']);
    expect(decided.outcome.kind).toBe('continue');
    expect(decided.overBudget).toBe(1);
    const [refusal] = decided.refusals;
    expect(refusal).toMatchObject({
      taskId: 'map/3',
      reason: 'budget',
      facts: { budgetDollars: 0.00075, spentDollars: 0.00023 },
    });
  });

  it('waits for what runs, which may end cheaper than foretold, and ends at once where all is spent', () => {
    tick(0, { capDollars: 1 }, 2);
    ends('map/0/0', 10_000);
    runs('map/1/0', 10_000);
    // $0.00046 counted; whoever runs is late and taken to need as much again.
    const waiting = tick(10_001, { capDollars: 0.0006 });
    expect(waiting.decisions).toEqual([]);
    expect(waiting.outcome.kind).toBe('continue');
    const over = tick(10_002, { capDollars: 0.0004 });
    expect(over.outcome).toMatchObject({ kind: 'fail', cause: 'budget' });
    expect(over.decisions).toEqual([{ kind: 'cancel', attemptId: 'map/1/0', reason: 'job-failed' }]);
  });

  it('lets what runs end where nothing else is owed', () => {
    tick(0, { capDollars: 1 });
    for (const task of [0, 1, 2]) ends(`map/${String(task)}/0`, 1_000);
    runs('map/3/0', 1_000);
    expect(tick(100_000, { capDollars: 0.000001 }).outcome.kind).toBe('continue');
    ends('map/3/0', 100_001);
    expect(tick(100_002, { capDollars: 0.000001 }).outcome.kind).toBe('finish');
  });

  it('counts a launch that nobody took up as none: it cost nothing, and its successor is a first attempt', () => {
    startWith(1);
    tick(0, { capDollars: 0.0001, onBudget: 'finish' });
    const lost = tick(2_000, { capDollars: 0.0001, onBudget: 'finish' });
    expect(lost.decisions).toContainEqual({ kind: 'lose', attemptId: 'map/0/0', reason: 'unclaimed' });
    const again = tick(10_000, { capDollars: 0.0001, onBudget: 'finish', coordination: { states: 1_000 } });
    expect(launched(again)).toEqual(['map/0/1']);
  });

  it('gives a failed task no second attempt at the cap, and every other its first', () => {
    startWith(3);
    tick(0, { capDollars: 1, onBudget: 'finish' }, 1);
    applyAttempt(
      state,
      attemptRecord('map/0/0', 'failed', 60_000, {
        claimedAt: at(0),
        failure: failure('user-code', 'no such column'),
      }),
      at(60_000),
    );
    // Below the cap it is put off until first attempts are launched, and has none yet.
    const before = tick(70_000, { capDollars: 0.0015, onBudget: 'finish' }, 3);
    expect(launched(before)).toEqual(['map/1/0', 'map/2/0']);
    expect(before.outcome.kind).toBe('continue');
    expect(before.refusals[0]).toMatchObject({ taskId: 'map/0', reason: 'budget' });
    const after = tick(70_001, { capDollars: 0.001, onBudget: 'finish' }, 3);
    expect(after.outcome).toMatchObject({
      kind: 'fail',
      message:
        'the budget of $0.001 is used up: $0.001382 counted so far, and stage map, task 0 may have no second attempt after its first: no such column',
    });
  });

  it('takes Fargate for what it bills: a minute at the least', () => {
    startWith(10, { kind: 'fargate', size: 'medium' });
    tick(0, { capDollars: 1 }, 1);
    ends('map/0/0', 1_000);
    expect(dollarsSoFar(state, at(1_000))).toBeCloseTo((0.03238 + 2 * 0.00356 + 0.005) / 60, 9);
    // A minute costs $0.00074, and its requests something: with the one that has ended five are within $0.004.
    expect(launched(tick(1_001, { capDollars: 0.004 }))).toHaveLength(4);
  });

  it('decides the same whoever ticks: two schedulers of one job at a takeover', () => {
    tick(0, { capDollars: 0.001 }, 1);
    ends('map/0/0', 10_000);
    const heir = structuredClone(state);
    const first = tick(10_001, { capDollars: 0.001 });
    state = heir;
    expect(tick(10_001, { capDollars: 0.001 })).toEqual(first);
  });
});

describe('an output that is lost while a stage that reads it has tasks that never began', () => {
  const values = ['finish', 'stop'] as const;

  /** Two tasks of a minute, and three that read both: one has begun, and has not found what map/0 wrote. */
  function loseInput(capDollars: number, onBudget: (typeof values)[number]): void {
    const map = { name: 'map', tasks: 2, upstream: [], sourceBytes: [10, 10] };
    state = createJobState([map, { name: 'reduce', tasks: 3, upstream: [0], sourceBytes: [0, 0, 0] }]);
    openStage(state, 0, [], at(0));
    tick(0, { capDollars: 1, onBudget });
    ends('map/0/0', 60_000);
    ends('map/1/0', 60_000);
    tick(60_001, { capDollars, onBudget });
    expect(launched(tick(60_002, { capDollars: 1, onBudget }, 1))).toEqual(['reduce/0/0']);
    const lost = [{ attemptId: attempt('map/0/0'), how: 'missing', offset: 0, length: 1, crc: 0 }] as const;
    const why = { ...failure('input-lost', 'output is gone'), lost };
    const record = { claimedAt: at(60_100), failure: why };
    applyAttempt(state, attemptRecord('reduce/0/0', 'failed', 61_000, record), at(61_000));
    expect(tick(61_001, { capDollars, onBudget }, 100, [lost[0]]).outcome.kind).toBe('continue');
  }

  it.each(values)('is made again before those, whatever they may cost, with %s', (onBudget) => {
    // Nobody knows what a reduce takes: 15 minutes of each that never began would be $0.04.
    loseInput(0.03, onBudget);
    const decided = tick(61_002, { capDollars: 0.03, onBudget });
    expect(launched(decided)).toEqual(['map/0/1']);
    expect(decided).toMatchObject({ overBudget: 0, outcome: { kind: 'continue' } });
  });

  it('ends the job at once where that is not afforded, and says why', () => {
    // $0.00279 are counted, and a minute costs $0.00138.
    loseInput(0.004, 'finish');
    expect(tick(61_002, { capDollars: 0.004, onBudget: 'finish' }).outcome).toEqual({
      kind: 'fail',
      cause: 'budget',
      message:
        'the budget of $0.004 is used up: $0.002785 counted so far, and stage map, task 0 may have no second attempt after its first: its output was lost',
    });
    loseInput(0.004, 'stop');
    const { outcome } = tick(61_002, { capDollars: 0.004 });
    expect(outcome).toMatchObject({ kind: 'fail', cause: 'budget' });
    expect(outcome.kind === 'fail' && outcome.message).toMatch(/4 tasks are still owed an attempt/);
  });
});

describe('an attempt that hands on what it has done, as the budget is used up', () => {
  const handsOn = (id: string, ms: number, bytesDone: number): void => {
    const saved = { dataBytes: 1, noteBytes: 1, noteCrc: bytesDone, bytesDone, bytesTotal: 10 };
    const record = { claimedAt: at(0), failure: failure('timeout', 'its time is up'), saved };
    applyAttempt(state, attemptRecord(id, 'failed', ms, record), at(ms));
  };

  it('is gone on with where the job is to finish, as a first attempt is: nothing is paid for twice', () => {
    startWith(1);
    tick(0, { capDollars: 1, onBudget: 'finish' });
    handsOn('map/0/0', 60_000, 5);
    const decided = tick(70_000, { capDollars: 0.001, onBudget: 'finish' });
    expect(decided.outcome.kind).toBe('continue');
    expect(launched(decided)).toEqual(['map/0/1']);
    // What that one did is lost: to do it again would be a second attempt.
    runs('map/0/1', 71_000);
    const record = { claimedAt: at(70_000), failure: failure('user-code', 'no such column') };
    applyAttempt(state, attemptRecord('map/0/1', 'failed', 80_000, record), at(80_000));
    expect(tick(90_000, { capDollars: 0.001, onBudget: 'finish' }).outcome).toMatchObject({
      kind: 'fail',
      cause: 'budget',
    });
  });

  it('is gone on with by nobody where the job is to stop', () => {
    startWith(1);
    tick(0, { capDollars: 1 });
    handsOn('map/0/0', 60_000, 5);
    expect(tick(70_000, { capDollars: 0.001 }).outcome).toMatchObject({ kind: 'fail', cause: 'budget' });
  });
});
