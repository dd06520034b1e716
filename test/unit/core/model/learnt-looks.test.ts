import { describe, expect, it } from 'vitest';
import { attemptIdOf } from '../../../../src/contracts/ids.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  createJobState,
  openStage,
  stageAt,
} from '../../../../src/core/model/job-state.ts';
import type { JobState } from '../../../../src/core/model/job-view.ts';
import { historyOf } from '../../../../src/core/model/progress-history.ts';
import { levelOf } from '../../../../src/core/model/progress-shape.ts';
import { attemptRecord, resultOf } from '../../../support/job-states.ts';

const bytes = 1_000;
/** A twentieth in the first two fifths of a task's time; each reported once, when it had read most. */
const looks = historyOf(
  [
    [200, 20],
    [400, 50],
    [600, 360],
    [800, 680],
  ].map(([workedMs = 0, bytesRead = 0]) => ({ workedMs, bytesRead })),
  bytes,
);

/** So many tasks have ended, each after a second and after one report at 0.8 s. */
function ended(tasks: number, looksAt: string | undefined): JobState {
  const state = createJobState([
    { name: 'map', tasks, upstream: [], sourceBytes: Array.from({ length: tasks }, () => bytes) },
  ]);
  openStage(state, 0, [], epochMs(0));
  const claimedAt = epochMs(0);
  for (let task = 0; task < tasks; task++) {
    const id = attemptIdOf('map', task, 0);
    addAttempt(state, id, 'first', claimedAt);
    const told = (bytesRead: number) => ({
      ...{ bytesRead, bytesTotal: bytes, recordsIn: 0, recordsOut: 0, peakMemoryBytes: 0 },
      ...({ phase: 'read', phaseMs: { init: 0, read: 1, compute: 0, write: 0 } } as const),
      ...(looksAt === undefined ? {} : { looks: looksAt }),
    });
    const [reportedAt, endedAt] = [epochMs(800), epochMs(1_000)];
    const report = { claimedAt, reportedAt, node: 'n', beat: 1 };
    applyAttempt(
      state,
      attemptRecord(id, 'running', reportedAt, { ...report, progress: told(680) }),
      reportedAt,
    );
    const end = { ...report, beat: 2, reportedAt: endedAt, endedAt, progress: told(bytes) };
    applyAttempt(state, attemptRecord(id, 'done', endedAt, end), endedAt);
    applyResult(state, resultOf(id, endedAt), endedAt);
  }
  return state;
}

const shareAtTwentieth = (state: JobState): number | undefined =>
  stageAt(state, 0).statistics.shape.reachedAt[levelOf(50, bytes)];

describe('how tasks of a stage get on', () => {
  it('is learnt by what they saw of themselves, where their reports make a straight line of a slow start', () => {
    expect(shareAtTwentieth(ended(4, undefined))).toBeCloseTo(0.059, 3);
    expect(shareAtTwentieth(ended(4, looks))).toBeCloseTo(0.4, 2);
  });

  it('is kept of the last tasks that have ended, and of no others: jobs have many', () => {
    const kept = [...ended(100, looks).attempts.values()].filter((each) => each.looks.length > 0);
    expect(kept.map(({ task }) => task)).toEqual(Array.from({ length: 32 }, (_, place) => 68 + place));
  });
});
