import { describe, expect, it } from 'vitest';
import type { AttemptRecord } from '../../../../../src/contracts/records.ts';
import { epochMs } from '../../../../../src/contracts/units.ts';
import {
  addAttempt,
  applyAttempt,
  createJobState,
  openStage,
  stageAt,
} from '../../../../../src/core/model/job-state.ts';
import { cloneCount } from '../../../../../src/core/policy/dolly/clone-count.ts';
import {
  stragglerProbability,
  stragglersOf,
  stragglersOfAttempts,
} from '../../../../../src/core/policy/dolly/straggler-rate.ts';
import { attempt, attemptRecord, progressOf } from '../../../../support/job-states.ts';

/** A copy of 100 bytes by its id, what it came to, from when to when, and what it had read then. */
type Ended = readonly [id: string, how: 'done' | 'cancelled', from: number, to: number, bytesRead: number];

const recordOf = ([id, how, from, to, bytesRead]: Ended): AttemptRecord =>
  attemptRecord(id, how, to, { claimedAt: epochMs(from), progress: progressOf(bytesRead, 100) });

/** What is counted of a phase, as the scheduler knows it and as the store has it: the same. */
function tallied(tasks: number, ended: readonly Ended[]) {
  const state = createJobState([
    { name: 'map', tasks, upstream: [], sourceBytes: Array.from({ length: tasks }, () => 100) },
  ]);
  openStage(state, 0, [], epochMs(0));
  for (const each of ended) {
    addAttempt(state, attempt(each[0]), each[0].endsWith('/0') ? 'first' : 'backup', epochMs(0));
    applyAttempt(state, recordOf(each), epochMs(each[3]));
  }
  const known = stragglersOf(stageAt(state, 0));
  expect(stragglersOfAttempts(ended.map(recordOf))).toEqual(known);
  return known;
}

/** A hundred tasks of 10 s, of which the first took 25 s. */
const oneStraggler = Array.from({ length: 100 }, (_, task): Ended => [
  ...([`map/${task}/0`, 'done', 0, task === 0 ? 25_000 : 10_000, 100] as const),
]);

describe('copies that straggled', () => {
  it('are none of those that were stopped before they could tell', () => {
    const young = [1, 2, 3, 4, 5].map((task): Ended => [`map/${task}/1`, 'cancelled', 9_000, 10_100, 2]);
    const seen = tallied(100, [...oneStraggler, ...young]);
    expect(seen).toEqual({ attempts: 100, stragglers: 1 });
    const p = stragglerProbability(seen, { prior: 0.1, minAttempts: 100 });
    const copiesOf = (tasks: number) => cloneCount({ tasks, stragglerProbability: p, straggleRisk: 0.05 });
    expect([copiesOf(1), copiesOf(2)]).toEqual([1, 1]);
  });

  it('are those that had run for half of the usual time when they were stopped, and were at less than half of the rate', () => {
    const stopped = (ranMs: number): Ended => ['map/0/1', 'cancelled', 1_000, 1_000 + ranMs, 10];
    expect(tallied(100, [...oneStraggler, stopped(4_999)])).toEqual({ attempts: 100, stragglers: 1 });
    expect(tallied(100, [...oneStraggler, stopped(5_000)])).toEqual({ attempts: 101, stragglers: 2 });
  });

  it('are those, too, that lost beside the winner of a task which takes less than others', () => {
    const short: readonly Ended[] = [
      ['map/0/0', 'done', 0, 2_000, 100],
      ['map/0/1', 'cancelled', 0, 2_000, 1],
    ];
    expect(tallied(100, [...oneStraggler.slice(1), ...short])).toEqual({ attempts: 101, stragglers: 1 });
  });

  it('are none where nothing was done, as of a job that was cancelled', () => {
    const stopped = [0, 1, 2, 3].map((task): Ended => [`map/${task}/0`, 'cancelled', 0, 1_000, task * 10]);
    expect(tallied(4, stopped)).toEqual({ attempts: 0, stragglers: 0 });
  });
});
