import { beforeEach, describe, expect, it } from 'vitest';
import { policyConfigSchema } from '../../../../../src/contracts/policy-config.ts';
import type { AttemptRecord } from '../../../../../src/contracts/records.ts';
import { durationMs, epochMs } from '../../../../../src/contracts/units.ts';
import { decideTick } from '../../../../../src/core/decide-tick.ts';
import { applyAttempt, createJobState, stageAt, taskAt } from '../../../../../src/core/model/job-state.ts';
import type { JobState } from '../../../../../src/core/model/job-view.ts';
import { chargeLeft, owedClones } from '../../../../../src/core/model/stage-clones.ts';
import { createRng } from '../../../../../src/lib/rng.ts';
import { attempt, attemptRecord, carryOut, failure, tickConfig } from '../../../../support/job-states.ts';

const at = epochMs;
const policyConfig = policyConfigSchema.parse({ dolly: { otherwise: 'none' } });
const config = { ...tickConfig, silenceMs: durationMs(100_000), policy: 'dolly' as const, policyConfig };
const clones = { copies: 2, tasks: 1 };

let state: JobState;

/** What a tick launches. */
function tick(now: number, more: object = {}): string[] {
  const budget = { slots: 100, cancelRequested: false, ...more };
  const { decisions } = decideTick(state, at(now), config, budget, createRng('job'));
  carryOut(state, decisions, now);
  return decisions.flatMap((each) => (each.kind === 'launch' ? [`${each.attemptId} ${each.reason}`] : []));
}

/** Nobody has begun it: its worker is on a node that it avoids, or its launch has grown too old. */
function comesToNothing(id: string, cause: 'declined' | 'expired', now: number): void {
  const record: AttemptRecord = {
    attemptId: attempt(id),
    state: 'lost',
    order: 'cancel',
    launchedAt: at(0),
    beat: 0,
    failure: failure(cause),
    endedAt: at(now),
  };
  applyAttempt(state, record, at(now));
}

/** One task of two copies, the original launched into the one slot that there was. */
beforeEach(() => {
  state = createJobState([{ name: 'map', tasks: 1, upstream: [], sourceBytes: [1] }]);
  tick(0);
  const answer = { stage: 0, clones, reason: undefined, facts: {} };
  expect(tick(1, { clones: [answer], slots: 1 })).toEqual(['map/0/0 first']);
});

describe.each(['declined', 'expired'] as const)('an original that is %s', (cause) => {
  beforeEach(() => {
    comesToNothing('map/0/0', cause, 10);
  });

  it('is no copy of its task: what comes in its place has the clone that it was to have', () => {
    // The retry is owed besides.
    expect(owedClones(state.stages)).toBe(1);
    expect(chargeLeft(stageAt(state, 0), 'all-copies')).toBe(2);
    expect(tick(5_000)).toEqual(['map/0/1 retry', 'map/0/2 clone']);
    expect(tick(5_001)).toEqual([]);
    expect(owedClones(state.stages)).toBe(0);
    expect(chargeLeft(stageAt(state, 0), 'all-copies')).toBe(2);
  });

  it('leads to no more clones than it takes to have so many copies, whatever becomes of them', () => {
    let [now, originals, copies] = [5_000, 0, 0];
    for (let round = 0; round < 20; round++) {
      for (const launched of tick((now += 5_000))) {
        if (launched.endsWith('clone')) copies += 1;
        else originals += 1;
      }
      for (const { id } of [...state.live]) comesToNothing(id, cause, now + 10);
    }
    expect(originals).toBe(20);
    expect(copies).toBeLessThanOrEqual(2);
    expect(taskAt(state, 0, 0).failures).toBe(0);
  });
});

it('a copy that had begun and failed is not made up for', () => {
  applyAttempt(state, attemptRecord('map/0/0', 'failed', 10, { failure: failure('storage') }), at(10));
  expect(tick(5_000)).toEqual(['map/0/1 retry']);
  expect(owedClones(state.stages)).toBe(0);
});
