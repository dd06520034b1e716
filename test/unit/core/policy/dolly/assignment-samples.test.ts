import { describe, expect, it } from 'vitest';
import type { EdgePattern } from '../../../../../src/contracts/plan.ts';
import type { AttemptRecord, AttemptState } from '../../../../../src/contracts/records.ts';
import { epochMs } from '../../../../../src/contracts/units.ts';
import type { AssignmentTally } from '../../../../../src/core/model/assignment-tally.ts';
import {
  addAttempt,
  applyAttempt,
  applyReplica,
  applyResult,
  cancelAttempt,
  cloneStage,
  createJobState,
  openStage,
} from '../../../../../src/core/model/job-state.ts';
import type { JobState } from '../../../../../src/core/model/job-view.ts';
import { assignmentsOfJob, learntWaitMs } from '../../../../../src/core/policy/dolly/assignment-samples.ts';
import { attempt, attemptRecord, resultOf } from '../../../../support/job-states.ts';
import { progress } from '../../../../support/scripted-job.ts';

/** A time of today's clocks. */
const base = 1_800_000_000_000;
const at = (ms: number) => epochMs(base + ms);

/** What the store says of an attempt that was claimed at 1. */
const recordAt = (id: string, state: AttemptState, ms: number, more: Partial<AttemptRecord> = {}) =>
  attemptRecord(id, state, base + ms, { claimedAt: at(1), ...more });

/** Three cloned maps, done at 100, 110 and 200, and a reduce with a clone that has to share. */
function endedJob(pattern: EdgePattern = 'all-to-all', reduces = 1): JobState {
  const state = createJobState([
    { name: 'map', tasks: 3, upstream: [], sourceBytes: [10, 10, 10] },
    { name: 'reduce', tasks: reduces, upstream: [0], patterns: [pattern], sourceBytes: [] },
  ]);
  openStage(state, 0, [], at(0));
  cloneStage(state, 0, { copies: 2, tasks: 3, waitMs: 50 });
  for (const task of [0, 1, 2]) {
    for (const number of [0, 1]) addAttempt(state, attempt(`map/${task}/${number}`), 'clone', at(0));
    const doneAt = [100, 110, 200][task] ?? 0;
    applyResult(state, resultOf(`map/${task}/0`, base + doneAt), at(doneAt));
    applyAttempt(state, recordAt(`map/${task}/0`, 'done', doneAt), at(doneAt));
  }
  // Before the stage was done; 30 after it; and cancelled at 250 with a quarter read, so that it would end at 997.
  applyAttempt(state, recordAt('map/0/1', 'done', 150), at(150));
  applyReplica(state, resultOf('map/0/1', base + 150));
  applyAttempt(state, recordAt('map/1/1', 'done', 230), at(230));
  applyReplica(state, resultOf('map/1/1', base + 230));
  applyAttempt(state, recordAt('map/2/1', 'running', 10), at(10));
  applyAttempt(state, recordAt('map/2/1', 'cancelled', 250, { progress: progress(25) }), at(250));
  openStage(state, 1, [30], at(200));
  cloneStage(state, 1, { copies: 2, tasks: 1, waitMs: 50 });
  for (const number of [0, 1]) addAttempt(state, attempt(`reduce/0/${number}`), 'clone', at(250));
  const fetched = { bytes: 3_000, ms: 60 };
  applyResult(state, resultOf('reduce/0/0', base + 400), at(400));
  const end = { claimedAt: at(260), progress: { ...progress(30, 30), fetched } };
  applyAttempt(state, recordAt('reduce/0/0', 'done', 400, end), at(400));
  const running = {
    claimedAt: at(290),
    progress: { ...progress(20, 30), fetched: { bytes: 2_000, ms: 50 } },
  };
  applyAttempt(state, recordAt('reduce/0/1', 'running', 345, running), at(345));
  cancelAttempt(state, attempt('reduce/0/1'), at(400), 'sibling-won');
  return state;
}

describe('assignmentsOfJob', () => {
  it('tells when all sources would have had a second copy', () => {
    const { gapsMs } = assignmentsOfJob(endedJob());
    // Claimed at 1, so 249 for a quarter: 1 + 4 · 249 − 200. The other two came before the stage opened and 30 after.
    expect(gapsMs).toEqual([797]);
  });

  it('tells of each task by its own source where it reads but one', () => {
    const { gapsMs } = assignmentsOfJob(endedJob('one-to-one', 3));
    expect(gapsMs).toEqual([0, 30, 797]);
  });

  it('tells how copies read, whom they shared with, and what they took besides', () => {
    const { reads, computeMs } = assignmentsOfJob(endedJob());
    // It read from 260 to 320, and the other copy, which shared a source, from 290 on.
    expect(reads).toEqual([{ sizeBytes: 3_000, ms: 60, overlapMs: 30 }]);
    expect(computeMs).toEqual([80]);
  });

  it('tells no end where a copy had read nothing', () => {
    const state = createJobState([
      { name: 'map', tasks: 1, upstream: [], sourceBytes: [10] },
      { name: 'reduce', tasks: 1, upstream: [0], sourceBytes: [] },
    ]);
    openStage(state, 0, [], at(0));
    cloneStage(state, 0, { copies: 2, tasks: 1 });
    for (const number of [0, 1]) addAttempt(state, attempt(`map/0/${number}`), 'clone', at(0));
    applyResult(state, resultOf('map/0/0', base + 100), at(100));
    cancelAttempt(state, attempt('map/0/1'), at(100), 'sibling-won');
    openStage(state, 1, [10], at(100));
    expect(assignmentsOfJob(state)).toEqual({ gapsMs: [1e12], reads: [], computeMs: [] });
  });
});

describe('learntWaitMs', () => {
  const many = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);
  /** Reading alone takes 10 s; two readers of a copy get half each. */
  const tally = (gapsMs: readonly number[], shareMs = 20_000): AssignmentTally => ({
    gapsMs,
    reads: [
      ...many(5, { sizeBytes: 10_000, ms: 10_000, overlapMs: 0 }),
      ...many(5, { sizeBytes: 10_000, ms: shareMs, overlapMs: shareMs }),
    ],
    computeMs: [...many(5, 1_000), ...many(5, 100_000)],
  });

  it('knows nothing of too little', () => {
    expect(learntWaitMs(tally([1, 2, 3, 4]))).toBeUndefined();
    expect(
      learntWaitMs({ ...tally(many(9, 0)), reads: many(50, { sizeBytes: 1, ms: 1, overlapMs: 0 }) }),
    ).toBe(undefined);
  });

  it('waits for copies that come soon, and for no others where sharing costs a little', () => {
    // α = 0.9: where no copy comes, both read by 11.5 s; in turn the second would have read by 20 s.
    expect(learntWaitMs(tally([...many(9, 400), 1e12], 11_111))).toBe(400);
  });

  it('has clones read in turn where sharing costs much and a copy may not come', () => {
    expect(learntWaitMs(tally([...many(9, 400), 1e12]))).toBe(10_000);
  });

  it('does not wait where sharing costs nothing, as on S3', () => {
    expect(learntWaitMs(tally([...many(9, 400), 1e12], 10_000))).toBe(0);
  });

  it('has clones read in turn where a second copy never comes', () => {
    expect(learntWaitMs(tally(many(10, 1e12)))).toBe(10_000);
  });
});
