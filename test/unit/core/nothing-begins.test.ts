import { describe, expect, it } from 'vitest';
import { durationMs, epochMs } from '../../../src/contracts/units.ts';
import { applyDecisions, decideTick } from '../../../src/core/decide-tick.ts';
import { applyAttempt, applyResult, createJobState, openStage } from '../../../src/core/model/job-state.ts';
import type { JobState } from '../../../src/core/model/job-view.ts';
import { applyObservation } from '../../../src/core/model/observation.ts';
import type { Decision, TickOutcome } from '../../../src/core/model/decision.ts';
import { createRng } from '../../../src/lib/rng.ts';
import { attemptRecord, resultOf, tickConfig } from '../../support/job-states.ts';

const minute = 60_000;
const hour = 60 * minute;
/** A launch on Fargate is given up after ten minutes, as in production. */
const config = {
  ...{ ...tickConfig, claimLeaseMs: durationMs(10 * minute), silenceMs: durationMs(minute) },
  ...{ nothingBeginsMs: durationMs(6 * hour), hasFargate: true },
};

/** Two tasks on Fargate. */
function twoTasks(): JobState {
  const worker = { kind: 'fargate', size: 'medium' } as const;
  const state = createJobState([{ name: 'map', tasks: 2, upstream: [], sourceBytes: [1, 1], worker }]);
  openStage(state, 0, [], epochMs(0));
  return state;
}

/** A tick a minute, with so many slots, until one ends the job; answers when that was, and how. */
function ticks(
  state: JobState,
  from: number,
  until: number,
  slots = 2,
  log: (readonly [number, readonly Decision[]])[] = [],
): { readonly at: number; readonly outcome: TickOutcome } {
  for (let now = from; ; now += minute) {
    const budget = { slots, cancelRequested: false };
    const { decisions, outcome } = decideTick(state, epochMs(now), config, budget, createRng('job'));
    applyDecisions(state, decisions, { now: epochMs(now), openStage: () => undefined });
    log.push([now, decisions]);
    if (outcome.kind !== 'continue' || now >= until) return { at: now, outcome };
  }
}

/** One of two tasks is done after two minutes; of the other no launch is taken up. */
function halfDone(): JobState {
  const state = twoTasks();
  ticks(state, 0, minute);
  endFirst(state);
  return state;
}

function endFirst(state: JobState): void {
  const record = attemptRecord('map/0/0', 'done', 2 * minute, { claimedAt: epochMs(minute) });
  applyAttempt(state, { ...record, endedAt: epochMs(2 * minute) }, epochMs(2 * minute));
  applyResult(state, resultOf('map/0/0', 2 * minute), epochMs(2 * minute));
}

const message = /^no worker has taken up any of the job's launches for 6 h: others use up all concurrency/;

describe('a task of which no launch is ever taken up', () => {
  it('fails its job in the end though others have begun', () => {
    const { at, outcome } = ticks(halfDone(), 3 * minute, 24 * hour);
    expect(outcome).toMatchObject({ kind: 'fail', message: expect.stringMatching(message) as string });
    expect(at).toBeGreaterThan(6 * hour);
    expect(at).toBeLessThan(10 * hour);
  });

  it('waits for room as long as its launches are refused', () => {
    const state = halfDone();
    for (let now = 3 * minute; now <= 24 * hour; now += minute) {
      expect(ticks(state, now, now).outcome).toEqual({ kind: 'continue' });
      for (const { id: attemptId } of [...state.live]) {
        applyObservation(state, { kind: 'launched', attemptId, at: epochMs(now) });
        applyObservation(state, { kind: 'withdrawn', attemptId, notBefore: epochMs(now + 1_000) });
      }
    }
    expect(ticks(state, 25 * hour, 30 * hour).outcome).toEqual({ kind: 'continue' });
    expect(ticks(state, 30 * hour, 40 * hour).outcome.kind).toBe('fail');
  });

  it('fails it all the same where another scheduler has taken over, which knows launches from the log', () => {
    const state = twoTasks();
    const log: (readonly [number, readonly Decision[]])[] = [];
    ticks(state, 0, minute, 2, log);
    endFirst(state);
    ticks(state, 3 * minute, 6 * hour, 2, log);
    const after = twoTasks();
    for (const [at, decisions] of log)
      applyDecisions(after, decisions, { now: epochMs(at), openStage: () => undefined });
    endFirst(after);
    const { at, outcome } = ticks(after, 6 * hour + minute, 24 * hour);
    expect(outcome.kind).toBe('fail');
    expect(at).toBeLessThan(11 * hour);
  });

  it('waits for another that is at work', () => {
    const state = twoTasks();
    ticks(state, 0, minute);
    for (let now = 2 * minute; now <= 12 * hour; now += minute) {
      const record = attemptRecord('map/0/0', 'running', now, { claimedAt: epochMs(minute) });
      applyAttempt(state, { ...record, reportedAt: epochMs(now), beat: now }, epochMs(now));
      expect(ticks(state, now, now).outcome).toEqual({ kind: 'continue' });
    }
  });

  it('is not blamed for hours without a slot, nor for those without a scheduler', () => {
    const state = halfDone();
    expect(ticks(state, 3 * minute, hour).outcome).toEqual({ kind: 'continue' });
    expect(ticks(state, hour, 13 * hour, 0).outcome).toEqual({ kind: 'continue' });
    expect(ticks(state, 40 * hour, 41 * hour).outcome).toEqual({ kind: 'continue' });
    expect(ticks(state, 41 * hour, 60 * hour).outcome.kind).toBe('fail');
  });
});
