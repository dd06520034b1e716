import { describe, expect, it } from 'vitest';
import { epochMs } from '../../../../src/contracts/units.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  createJobState,
  openStage,
  taskAt,
} from '../../../../src/core/model/job-state.ts';
import type { JobState } from '../../../../src/core/model/job-view.ts';
import { inputOf } from '../../../../src/core/model/task-input.ts';
import { attempt, attemptRecord, progressOf, resultOf } from '../../../support/job-states.ts';

const at = epochMs;

/** Four tasks of 100 bytes each by their plan: a file that was cut without anybody knowing where it can be. */
function jobOfOneFile(): JobState {
  const state = createJobState([{ name: 'map', tasks: 4, upstream: [], sourceBytes: [100, 100, 100, 100] }]);
  openStage(state, 0, [], at(0));
  for (let task = 0; task < 4; task++) addAttempt(state, attempt(`map/${String(task)}/0`), 'first', at(0));
  return state;
}

const report = (state: JobState, id: string, ms: number, bytesRead: number, bytesTotal: number): void => {
  applyAttempt(
    state,
    attemptRecord(id, 'running', ms, { claimedAt: at(0), progress: progressOf(bytesRead, bytesTotal) }),
    at(ms),
  );
};
const end = (state: JobState, id: string, ms: number, bytesRead: number): void => {
  const times = { claimedAt: at(0), endedAt: at(ms), progress: progressOf(bytesRead, bytesRead) };
  applyAttempt(state, attemptRecord(id, 'done', ms, times), at(ms));
  applyResult(state, resultOf(id, ms), at(ms));
};

describe('what a task reads in all', () => {
  it('is what its plan says, until an attempt tells otherwise', () => {
    const state = jobOfOneFile();
    expect(inputOf(taskAt(state, 0, 0))).toBe(100);
    report(state, 'map/0/0', 1_000, 150, 400);
    expect(inputOf(taskAt(state, 0, 0))).toBe(400);
    expect(inputOf(taskAt(state, 0, 1))).toBe(100);
  });

  it('is what the attempt says that has read the most', () => {
    const state = jobOfOneFile();
    addAttempt(state, attempt('map/0/1'), 'backup', at(0));
    report(state, 'map/0/0', 1_000, 150, 400);
    report(state, 'map/0/1', 2_000, 20, 100);
    expect(inputOf(taskAt(state, 0, 0))).toBe(400);
    report(state, 'map/0/1', 3_000, 160, 380);
    expect(inputOf(taskAt(state, 0, 0))).toBe(380);
  });

  it('counts what an attempt before it has done, where one does the rest', () => {
    const state = jobOfOneFile();
    addAttempt(state, attempt('map/0/1'), 'retry', at(0));
    const progress = { ...progressOf(10, 150), takenUp: { attempt: 0, bytes: 250 } };
    applyAttempt(
      state,
      attemptRecord('map/0/1', 'running', 1_000, { claimedAt: at(0), progress }),
      at(1_000),
    );
    expect(inputOf(taskAt(state, 0, 0))).toBe(400);
  });

  it('tells nothing of what others take where it turns out to be nothing', () => {
    const state = jobOfOneFile();
    for (const task of [1, 2, 3]) end(state, `map/${String(task)}/0`, 10, 0);
    const statistics = state.stages[0]?.statistics;
    expect([statistics?.runMs.size, statistics?.slowness.size, statistics?.samples.length]).toEqual([
      0, 0, 0,
    ]);
    end(state, 'map/0/0', 5_000, 400);
    // 5,000 ms over 400 bytes.
    expect([statistics?.runMs.sum, statistics?.msPerByte.sum]).toEqual([5_000, 12.5]);
  });
});
