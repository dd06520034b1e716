import { expect, it } from 'vitest';
import { type PerformDeps, performDecisions } from '../../../src/app/perform-decisions.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { Plan } from '../../../src/contracts/plan.ts';
import { durationMs, epochMs } from '../../../src/contracts/units.ts';
import { applyDecisions } from '../../../src/core/decide-tick.ts';
import { addAttempt, applyAttempt, createJobState, openStage } from '../../../src/core/model/job-state.ts';
import type { Decision } from '../../../src/core/model/decision.ts';
import { attempt, attemptRecord } from '../../support/job-states.ts';

it('counts how long an attempt has been told to stop from when the order was written', async () => {
  const state = createJobState([{ name: 'map', tasks: 1, upstream: [], sourceBytes: [1] }]);
  openStage(state, 0, [], epochMs(0));
  const attemptId = attempt('map/0/0');
  addAttempt(state, attemptId, 'first', epochMs(0));
  applyAttempt(
    state,
    attemptRecord('map/0/0', 'running', 1_000, { claimedAt: epochMs(500) }),
    epochMs(1_000),
  );
  const decisions: Decision[] = [{ kind: 'cancel', attemptId, reason: 'outlasts-lambda' }];
  applyDecisions(state, decisions, { now: epochMs(2_000), openStage: () => undefined });
  expect(state.attempts.get(attemptId)?.cancelledAt).toBe(2_000);
  let now = 2_000;
  // The scheduler is frozen for 25 s before its order is there.
  const orderCancel = (): Promise<void> => {
    now += 25_000;
    return Promise.resolve();
  };
  const deps = { attempts: { orderCancel }, clock: { now: () => epochMs(now) } } as unknown as PerformDeps;
  const plan = { jobId: 'words-0123456789ab' as JobId, shards: 1 } as Plan;
  const job = { plan, state, openStages: new Map(), heartbeatMs: durationMs(10_000) };
  await performDecisions(deps, job, decisions, epochMs(2_000));
  expect(state.attempts.get(attemptId)?.cancelledAt).toBe(27_000);
});
