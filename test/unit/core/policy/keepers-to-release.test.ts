import { beforeEach, describe, expect, it } from 'vitest';
import { epochMs } from '../../../../src/contracts/units.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  createJobState,
  openStage,
} from '../../../../src/core/model/job-state.ts';
import type { AttemptView, JobState } from '../../../../src/core/model/job-view.ts';
import { holdLaunch } from '../../../../src/core/model/launches.ts';
import { keepersToRelease } from '../../../../src/core/policy/keepers-to-release.ts';
import { attempt, attemptRecord, resultOf } from '../../../support/job-states.ts';

const at = epochMs;
const worker = { kind: 'fargate', size: 'medium' } as const;
const most = 10;
let state: JobState;

/** An attempt that is done; `keeps`: its worker stays for readers. */
function ends(id: string, keeps = true): void {
  addAttempt(state, attempt(id), 'first', at(0));
  applyAttempt(state, attemptRecord(id, 'done', 10, { claimedAt: at(1), node: `node of ${id}` }), at(10));
  applyResult(state, { ...resultOf(id, 10), ...(keeps ? { worker: '10.0.3.7:7843' } : {}) }, at(10));
}

const released = (before: readonly AttemptView[] = [], limit = most): string[] =>
  keepersToRelease(state, new Set(before), limit).map(({ id }) => id);

/** Three stages in a row: the first is read out, two of three tasks of the second are done and keep what the third reads. */
beforeEach(() => {
  state = createJobState([
    { name: 'map', tasks: 1, upstream: [], sourceBytes: [1], worker },
    { name: 'sort', tasks: 3, upstream: [0], sourceBytes: [0, 0, 0], worker },
    { name: 'merge', tasks: 2, upstream: [1], sourceBytes: [0, 0], worker },
  ]);
  openStage(state, 0, [], at(0));
  ends('map/0/0');
  openStage(state, 1, [1, 1, 1], at(10));
  ends('sort/0/0');
  ends('sort/1/0', false);
});

describe('workers that stay for readers', () => {
  it('are to end where nothing of their job works or starts, as many as tasks are owed', () => {
    expect(released()).toEqual(['map/0/0']);
    ends('sort/2/0');
    openStage(state, 2, [1, 1], at(20));
    // Two tasks are owed; what nobody reads any more goes first.
    expect(released()).toEqual(['map/0/0', 'sort/0/0']);
    expect(released([], 1)).toEqual(['map/0/0']);
    const before = [...state.attempts.values()].filter(({ id }) => id === 'map/0/0' || id === 'sort/0/0');
    expect(released(before)).toEqual(['sort/2/0']);
  });

  it('stay where anything of their job works, or is about to', () => {
    addAttempt(state, attempt('sort/2/0'), 'first', at(20));
    expect(released()).toEqual([]);
    applyAttempt(state, attemptRecord('sort/2/0', 'running', 30, { claimedAt: at(25) }), at(30));
    expect(released()).toEqual([]);
  });

  it('are to end where a launch was decided on that cannot be made and another task is owed', () => {
    ends('sort/2/0');
    openStage(state, 2, [1, 1], at(20));
    addAttempt(state, attempt('merge/0/0'), 'first', at(20));
    holdLaunch(state, attempt('merge/0/0'));
    expect(released()).toEqual(['map/0/0']);
  });

  it('stay where nothing is owed', () => {
    for (const id of ['sort/2/0']) ends(id);
    openStage(state, 2, [1, 1], at(20));
    ends('merge/0/0', false);
    ends('merge/1/0', false);
    expect(released()).toEqual([]);
  });
});
