import { expect, it } from 'vitest';
import { epochMs } from '../../../../src/contracts/units.ts';
import { addAttempt, applyAttempt, createJobState, openStage } from '../../../../src/core/model/job-state.ts';
import { readyAt } from '../../../../src/core/policy/retry-backoff.ts';
import { createRng } from '../../../../src/lib/rng.ts';
import { attempt, attemptRecord, failure, tickConfig } from '../../../support/job-states.ts';

const rng = createRng('job');

/** A task of which so many attempts in a row have found no place, one a second, and when it is ready again. */
function unplaced(count: number, before: 'nothing' | 'began' = 'nothing') {
  const state = createJobState([{ name: 'map', tasks: 1, upstream: [], sourceBytes: [1] }]);
  openStage(state, 0, [], epochMs(0));
  const ids = Array.from(
    { length: count + Number(before === 'began') },
    (_, number) => `map/0/${String(number)}`,
  );
  for (const [number, id] of ids.entries()) {
    const now = 1_000 * (number + 1);
    addAttempt(state, attempt(id), number === 0 ? 'first' : 'retry', epochMs(now));
    const isBegun = before === 'began' && number === count;
    const record = isBegun
      ? attemptRecord(id, 'lost', now, { failure: failure('interrupted') })
      : { ...attemptRecord(id, 'launched', now, { failure: failure('expired') }), state: 'lost' as const };
    applyAttempt(state, record, epochMs(now));
  }
  const task = state.stages[0]?.tasks[0];
  if (task === undefined) throw new Error('no task');
  expect(task.failures).toBe(0);
  return readyAt(task, tickConfig, rng) - 1_000 * ids.length;
}

it('launches a task anew at once whose attempt found no place, and later the more often it did', () => {
  expect(unplaced(1)).toBeLessThanOrEqual(0);
  const tenth = unplaced(10);
  expect(tenth).toBeGreaterThan(0);
  expect(tenth).toBeLessThanOrEqual(tickConfig.retryCeilingMs);
});

it('begins anew with the waits once an attempt has begun', () => {
  expect(unplaced(10, 'began')).toBeLessThanOrEqual(0);
});
