import { beforeEach, describe, expect, it } from 'vitest';
import { epochMs } from '../../../../src/contracts/units.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  cancelAttempt,
  createJobState,
  loseAttempt,
  openStage,
} from '../../../../src/core/model/job-state.ts';
import type { JobState } from '../../../../src/core/model/job-view.ts';
import { nodeProgress, slowNodes } from '../../../../src/core/policy/late/slow-node-threshold.ts';
import { slowNodesBy } from '../../../../src/core/policy/node-slowdown.ts';
import { runningTasks } from '../../../../src/core/policy/running-tasks.ts';
import { attempt, attemptRecord, progressOf, resultOf } from '../../../support/job-states.ts';
import { viewOf } from '../../../support/policy-views.ts';

const seen = (state: JobState, id: string, node: string, from: number, at: number, bytes: number): void => {
  const isDone = bytes === 100;
  const more = { claimedAt: epochMs(from), node, beat: at, progress: progressOf(bytes, 100) };
  applyAttempt(state, attemptRecord(id, isDone ? 'done' : 'running', at, more), epochMs(at));
  if (isDone) applyResult(state, resultOf(id, at), epochMs(at));
};

/** A view of the job as it is. */
const viewNow = (state: JobState) => ({ ...viewOf([]), state, runs: runningTasks(state, new Set()) });

let state: JobState;

/** Eight tasks of ten seconds, the first on a bad node: all have read 60 of 100 bytes after six seconds. */
beforeEach(() => {
  state = createJobState([
    { name: 'map', tasks: 8, upstream: [], sourceBytes: Array.from({ length: 8 }, () => 100) },
  ]);
  openStage(state, 0, [], epochMs(0));
  for (let task = 0; task < 8; task++) {
    addAttempt(state, attempt(`map/${task}/0`), 'first', epochMs(0));
    seen(state, `map/${task}/0`, task === 0 ? 'bad' : `n${task % 4}`, 1, 6_000, 60);
  }
});

describe('the progress of a node', () => {
  it('is what ended well and what runs there, and nothing of an attempt that was lost', () => {
    loseAttempt(state, attempt('map/0/0'), epochMs(60_000));
    addAttempt(state, attempt('map/0/1'), 'retry', epochMs(60_000));
    seen(state, 'map/0/1', 'n1', 60_001, 70_000, 100);
    const progress = nodeProgress(viewNow(state));
    expect(Object.fromEntries(progress)).toEqual({ bad: 0, n1: 2.2, n2: 1.2, n3: 1.2, n0: 0.6 });
    expect(slowNodes(viewNow(state), 0.25)).toEqual(['bad']);
    // That it is silent is no word about how fast it was.
    expect(slowNodesBy(viewNow(state), 0.5)).not.toContain('bad');
  });

  it('is nothing of an attempt, either, that another was started for', () => {
    addAttempt(state, attempt('map/0/1'), 'restart', epochMs(60_000));
    cancelAttempt(state, attempt('map/0/0'), epochMs(60_000), 'restarted');
    seen(state, 'map/0/1', 'n1', 60_001, 70_000, 100);
    const progress = nodeProgress(viewNow(state));
    expect(Object.fromEntries(progress)).toEqual({ bad: 0, n1: 2.2, n2: 1.2, n3: 1.2, n0: 0.6 });
  });
});
