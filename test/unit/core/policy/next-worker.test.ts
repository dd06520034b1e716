import { describe, expect, it } from 'vitest';
import type { Worker } from '../../../../src/contracts/job-spec.ts';
import type { Failure } from '../../../../src/contracts/records.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { applyDecisions, decideTick, type TickDecision } from '../../../../src/core/decide-tick.ts';
import type { JobState, StageShape } from '../../../../src/core/model/job-view.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  createJobState,
  loseAttempt,
  openStage,
  taskAt,
} from '../../../../src/core/model/job-state.ts';
import { summarizeJob } from '../../../../src/core/model/job-summary.ts';
import { createRng } from '../../../../src/lib/rng.ts';
import { attempt, attemptRecord, failure, resultOf, tickConfig } from '../../../support/job-states.ts';

const at = epochMs;
const rng = createRng('job');
const lambda = (size: Worker['size']): Worker => ({ kind: 'lambda', size });
const fargate = (size: Worker['size']): Worker => ({ kind: 'fargate', size });

/** A stage of one task, opened, on a worker. */
function jobOn(worker: Worker | undefined, more: Partial<StageShape> = {}): JobState {
  const shape = { name: 'map', tasks: 1, upstream: [], sourceBytes: [20], ...more };
  const state = createJobState([{ ...shape, ...(worker === undefined ? {} : { worker }) }]);
  openStage(state, 0, [], at(0));
  return state;
}

function tick(state: JobState, now: number, hasFargate: boolean): TickDecision {
  const config = { ...tickConfig, hasFargate };
  const decided = decideTick(state, at(now), config, { slots: 10, cancelRequested: false }, rng);
  applyDecisions(state, decided.decisions, { now: at(now), openStage: () => undefined });
  return decided;
}

const launches = ({ decisions }: TickDecision): unknown[] =>
  decisions.flatMap((each) => (each.kind === 'launch' ? [[each.attemptId, each.worker]] : []));

/** The platform tells of the death of attempt `number`. */
function dies(state: JobState, number: number, now: number, why: Failure): void {
  applyAttempt(
    state,
    attemptRecord(`map/0/${number}`, 'lost', now, { endedAt: at(now), failure: why }),
    at(now),
  );
}

/** What each attempt runs on, and how the job ends, where each of them dies of the same cause. */
function course(
  state: JobState,
  why: Failure['cause'] | Failure,
  hasFargate: boolean,
): { ran: unknown[]; end: unknown } {
  const ran: unknown[] = [];
  for (let number = 0; number < 20; number++) {
    const decided = tick(state, 10_000 * (number + 1), hasFargate);
    if (decided.outcome.kind === 'fail') return { ran, end: decided.outcome.message };
    ran.push(...launches(decided).map((launch) => (launch as unknown[])[1] ?? 'as planned'));
    dies(state, number, 10_000 * (number + 1) + 1, typeof why === 'string' ? failure(why, 'it died') : why);
  }
  return { ran, end: 'never' };
}

describe('a task whose attempts run out of memory', () => {
  it('gets the next larger worker each time, and at the largest its job fails and says why', () => {
    const { ran, end } = course(jobOn(lambda('small')), 'out-of-memory', false);
    expect(ran).toEqual(['as planned', lambda('medium'), lambda('large'), lambda('xlarge')]);
    expect(end).toBe(
      'stage map, task 0 ran out of memory on the largest worker (xlarge, 7076 MB on Lambda): it died; give it less to hold: smaller splits (splitBytes) or more partitions, or deploy with Fargate (-c fargate=on), which this deployment lacks',
    );
  });

  it('goes to the largest Fargate task last, where there is Fargate', () => {
    const { ran, end } = course(jobOn(lambda('large')), 'out-of-memory', true);
    expect(ran).toEqual(['as planned', lambda('xlarge'), fargate('xlarge')]);
    expect(end).toBe(
      'stage map, task 0 ran out of memory on the largest worker (xlarge, 8192 MB on Fargate): it died; give it less to hold: smaller splits (splitBytes) or more partitions',
    );
  });

  it('stays on Lambda where its stage forbids Fargate, and on Fargate where it is there', () => {
    const forbidden = course(jobOn(lambda('xlarge'), { mayUseFargate: false }), 'out-of-memory', true);
    expect(forbidden.ran).toEqual(['as planned']);
    expect(forbidden.end).toContain('or let it go to Fargate (worker.fallback is "none")');
    const { ran } = course(jobOn(fargate('large')), 'out-of-memory', true);
    expect(ran).toEqual(['as planned', fargate('xlarge')]);
  });

  it('has copies that are as large as its next attempt would be, and the attempt beside them is left alone', () => {
    const state = jobOn(undefined);
    tick(state, 1, false);
    addAttempt(state, attempt('map/0/1'), 'backup', at(2));
    applyAttempt(state, attemptRecord('map/0/0', 'running', 3, { node: 'a' }), at(3));
    applyAttempt(state, attemptRecord('map/0/1', 'running', 3, { node: 'b' }), at(3));
    dies(state, 1, 4, failure('out-of-memory'));
    expect(tick(state, 5, false)).toMatchObject({ decisions: [], outcome: { kind: 'continue' } });
    dies(state, 0, 6, failure('out-of-memory'));
    // Two that failed alike, each for want of memory: the third has more of it.
    expect(launches(tick(state, 7, false))).toEqual([['map/0/2', lambda('large')]]);
  });

  it('is not doomed while another attempt of it lives, which may win', () => {
    const state = jobOn(lambda('xlarge'));
    tick(state, 1, false);
    addAttempt(state, attempt('map/0/1'), 'backup', at(2));
    dies(state, 0, 3, failure('out-of-memory'));
    expect(tick(state, 4, false).outcome).toEqual({ kind: 'continue' });
    applyResult(state, resultOf('map/0/1', 5), at(5));
    expect(tick(state, 6, false).outcome.kind).not.toBe('fail');
  });

  it('pays for the memory that each attempt had', () => {
    const state = jobOn(lambda('small'));
    const plan = { description: { worker: lambda('small') } };
    tick(state, 1, false);
    applyAttempt(state, attemptRecord('map/0/0', 'running', 1), at(1));
    dies(state, 0, 60_001, failure('out-of-memory'));
    tick(state, 60_002, false);
    const dollarsBefore = summarizeJob(state, [plan] as never, at(60_002)).dollars;
    applyAttempt(state, attemptRecord('map/0/1', 'running', 60_002, { claimedAt: at(60_002) }), at(60_002));
    const grown = summarizeJob(state, [plan] as never, at(120_002)).dollars - dollarsBefore;
    // A minute of 1,769 MB at $0.0000133334 a GB-second.
    expect(grown).toBeCloseTo(0.001382, 5);
  });
});

describe('a task whose attempts run out of time', () => {
  it('goes to Fargate at once', () => {
    const state = jobOn(lambda('large'));
    tick(state, 1, true);
    dies(state, 0, 2, failure('timeout'));
    expect(launches(tick(state, 3, true))).toEqual([['map/0/1', fargate('large')]]);
  });

  it('fails its job at once where there is no Fargate, and says why', () => {
    const { ran, end } = course(jobOn(undefined), 'timeout', false);
    expect(ran).toEqual(['as planned']);
    expect(end).toBe(
      "stage map, task 0 ran out of Lambda's time: it died; give it less to do: smaller splits (splitBytes) or more partitions, or deploy with Fargate (-c fargate=on), which this deployment lacks",
    );
  });

  it('goes on on Lambda where there is no Fargate, as long as each hands on what it has done, and twenty times at most', () => {
    const state = jobOn(undefined);
    const ran: unknown[] = [];
    let end: unknown;
    for (let number = 0; end === undefined; number++) {
      const decided = tick(state, 10_000 * (number + 1), false);
      if (decided.outcome.kind === 'fail') end = decided.outcome.message;
      ran.push(...launches(decided));
      const saved = { dataBytes: 1, noteBytes: 1, noteCrc: 0, bytesDone: number + 1, bytesTotal: 100 };
      const ending = {
        endedAt: at(10_000 * (number + 1) + 1),
        failure: failure('timeout', 'it left'),
        saved,
      };
      applyAttempt(
        state,
        attemptRecord(`map/0/${number}`, 'failed', 10_000 * (number + 1) + 1, ending),
        ending.endedAt,
      );
    }
    expect(ran).toEqual(Array.from({ length: 21 }, (_, number) => [`map/0/${number}`, undefined]));
    expect(end).toMatch(/^stage map, task 0 ran out of Lambda's time: it left; give it less to do/);
  });

  it('fails its job where one of them has handed on nothing', () => {
    const state = jobOn(undefined);
    tick(state, 1, false);
    const saved = { dataBytes: 1, noteBytes: 1, noteCrc: 0, bytesDone: 10, bytesTotal: 100 };
    const first = { endedAt: at(2), failure: failure('timeout'), saved };
    applyAttempt(state, attemptRecord('map/0/0', 'failed', 2, first), at(2));
    expect(launches(tick(state, 10_000, false))).toEqual([['map/0/1', undefined]]);
    dies(state, 1, 10_001, failure('timeout'));
    expect(tick(state, 20_000, false).outcome.kind).toBe('fail');
  });

  it('is tried again as often as any other where what befell it may pass, and then fails its job', () => {
    const passing = { ...failure('timeout', 'S3 was slow'), mayPass: true } as const;
    const { ran, end } = course(jobOn(undefined), passing, false);
    expect(ran).toEqual(['as planned', 'as planned', 'as planned']);
    expect(end).toMatch(/^stage map, task 0 ran out of Lambda's time: S3 was slow; give it less to do/);
    // Others hand on what they have done meanwhile, and do not count.
    const state = jobOn(undefined);
    const saved = { dataBytes: 1, noteBytes: 1, noteCrc: 0, bytesDone: 1, bytesTotal: 100 };
    const kinds = [{ failure: passing }, { failure: failure('timeout'), saved }];
    for (let number = 0; number < 5; number++) {
      const now = 10_000 * (number + 1);
      expect(launches(tick(state, now, false))).toEqual([[`map/0/${number}`, undefined]]);
      const ended = { ...kinds[number % 2], endedAt: at(now + 1) };
      applyAttempt(state, attemptRecord(`map/0/${number}`, 'failed', now + 1, ended), at(now + 1));
    }
    expect(tick(state, 60_000, false).outcome.kind).toBe('fail');
  });

  it('goes to Fargate also where what befell it may pass', () => {
    const passing = { ...failure('timeout'), mayPass: true } as const;
    expect(course(jobOn(lambda('large')), passing, true).ran.slice(0, 2)).toEqual([
      'as planned',
      fargate('large'),
    ]);
  });

  it('is given up after the usual number of attempts where it has no time-out to run into', () => {
    expect(course(jobOn(fargate('small')), 'timeout', true).ran).toHaveLength(3);
  });

  it('keeps the memory that it needed', () => {
    const state = jobOn(lambda('small'));
    tick(state, 1, true);
    dies(state, 0, 2, failure('out-of-memory'));
    expect(launches(tick(state, 3, true))).toEqual([['map/0/1', lambda('medium')]]);
    dies(state, 1, 4, failure('timeout'));
    expect(launches(tick(state, 5, true))).toEqual([['map/0/2', fargate('medium')]]);
  });
});

describe('what is no failure of the task', () => {
  it.each(['expired', 'interrupted'] as const)('is an attempt that was %s, however often', (cause) => {
    const { ran, end } = course(jobOn(undefined), cause, false);
    expect(end).toBe('never');
    expect(new Set(ran)).toEqual(new Set(['as planned']));
  });

  it('is nothing else: one that exited counts', () => {
    const { ran, end } = course(jobOn(undefined), 'exited', false);
    expect(ran).toHaveLength(3);
    expect(end).toBe('stage map, task 0 failed 3 times, at last: it died');
  });
});

describe('a death that is told late', () => {
  it('explains an attempt that was given up for its silence, takes the strike back, and changes no other', () => {
    const state = jobOn(undefined);
    tick(state, 1, false);
    applyAttempt(state, attemptRecord('map/0/0', 'running', 2), at(2));
    loseAttempt(state, attempt('map/0/0'), at(600));
    expect(taskAt(state, 0, 0).failures).toBe(1);
    dies(state, 0, 700, failure('out-of-memory'));
    expect(taskAt(state, 0, 0).failures).toBe(0);
    dies(state, 0, 701, failure('exited'));
    expect(taskAt(state, 0, 0)).toMatchObject({ failures: 0 });
    expect(launches(tick(state, 20_000, false))).toEqual([['map/0/1', lambda('large')]]);
  });
});
