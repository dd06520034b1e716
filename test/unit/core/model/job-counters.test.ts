import { expect, it } from 'vitest';
import { epochMs } from '../../../../src/contracts/units.ts';
import { addAttempt, applyResult, createJobState } from '../../../../src/core/model/job-state.ts';
import { summarizeJob } from '../../../../src/core/model/job-summary.ts';
import { attempt, resultOf } from '../../../support/job-states.ts';

const hundred = (task: number): Record<string, number> =>
  Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`n${task}-${index}`, 1]));

it('keeps counters of its own beside a thousand of the job, whichever come first', () => {
  const state = createJobState([
    { name: 'map', tasks: 11, upstream: [], sourceBytes: Array.from({ length: 11 }, () => 1) },
  ]);
  for (let task = 0; task < 11; task++) {
    const id = `map/${task}/0`;
    addAttempt(state, attempt(id), 'first', epochMs(0));
    const own =
      task === 0 ? { skippedRecords: 2 } : task === 10 ? { invalidUtf8Lines: 3, skippedRecords: 4 } : {};
    applyResult(state, { ...resultOf(id, 1), counters: { ...own, ...hundred(task) } }, epochMs(1));
  }
  const { counters } = summarizeJob(state, [], epochMs(1));
  expect(counters).toMatchObject({ skippedRecords: 6, invalidUtf8Lines: 3, countersLeftOut: 100 });
  expect(Object.keys(counters)).toHaveLength(1_003);
  expect(counters['n9-99']).toBe(1);
});
