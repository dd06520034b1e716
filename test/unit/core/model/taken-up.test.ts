import { describe, expect, it } from 'vitest';
import { attemptIdOf } from '../../../../src/contracts/ids.ts';
import type { Progress } from '../../../../src/contracts/progress.ts';
import type { AttemptRecord, FailureCause } from '../../../../src/contracts/records.ts';
import { durationMs, epochMs, later } from '../../../../src/contracts/units.ts';
import { timesOfStages } from '../../../../src/core/forecast/task-times.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  createJobState,
  openStage,
  stageAt,
  taskAt,
} from '../../../../src/core/model/job-state.ts';
import type { JobState } from '../../../../src/core/model/job-view.ts';
import { partForNew, partOf, savedFor } from '../../../../src/core/model/taken-up.ts';
import { attemptRecord, resultOf } from '../../../support/job-states.ts';

const inputBytes = 1_000_000;
const progressOf = (bytesRead: number, more: Partial<Progress> = {}): Progress => ({
  bytesRead,
  bytesTotal: inputBytes,
  recordsIn: 0,
  recordsOut: 0,
  phase: 'compute',
  phaseMs: { init: 0, read: 0, compute: 1, write: 0 },
  peakMemoryBytes: 0,
  ...more,
});
const id = (number: number, task = 0) => attemptIdOf('map', task, number);
const savedAt = (bytesDone: number) => ({
  dataBytes: bytesDone / 10,
  noteBytes: 9,
  noteCrc: 5,
  bytesDone,
  bytesTotal: inputBytes,
});

function job(): JobState {
  const state = createJobState([
    { name: 'map', tasks: 2, upstream: [], sourceBytes: [inputBytes, inputBytes] },
  ]);
  openStage(state, 0, [], epochMs(0));
  return state;
}

/** One attempt after the other, each claimed when it is launched, at its second of the job. */
function interrupt(
  state: JobState,
  number: number,
  bytesDone: number | undefined,
  more: { readonly insteadOf?: number } = {},
): void {
  const at = epochMs(number * 10_000);
  addAttempt(state, id(number), number === 0 ? 'first' : 'retry', at);
  applyAttempt(
    state,
    attemptRecord(id(number), 'failed', later(at, durationMs(9_000)), {
      claimedAt: at,
      endedAt: later(at, durationMs(9_000)),
      progress: progressOf(bytesDone ?? 5),
      failure: { cause: 'interrupted', message: 'Spot' },
      ...(bytesDone === undefined ? {} : { saved: { ...savedAt(bytesDone), ...more } }),
    }),
    later(at, durationMs(9_000)),
  );
}

/** An attempt that has taken up the work of the first, and fails. */
function goOn(state: JobState, number: number, cause: FailureCause): void {
  const at = epochMs(number * 10_000);
  addAttempt(state, id(number), 'retry', at);
  applyAttempt(
    state,
    attemptRecord(id(number), 'failed', later(at, durationMs(9_000)), {
      claimedAt: at,
      endedAt: later(at, durationMs(9_000)),
      progress: progressOf(5, { takenUp: { attempt: 0, bytes: 400_000 } }),
      failure: { cause, message: 'it went on' },
    }),
    later(at, durationMs(9_000)),
  );
}

describe('what an attempt is to take up', () => {
  it('is nothing once an attempt that went on with it has failed by the code of the job', () => {
    const state = job();
    interrupt(state, 0, 400_000);
    goOn(state, 1, 'out-of-memory');
    expect(savedFor(taskAt(state, 0, 0), 2)?.attempt).toBe(0);
    goOn(state, 2, 'user-code');
    expect(savedFor(taskAt(state, 0, 0), 3)).toBeUndefined();
    expect(savedFor(taskAt(state, 0, 0), 2)?.attempt).toBe(0);
  });

  it('is the work of the one that came farthest, and of those the last; of later ones none', () => {
    const state = job();
    expect(savedFor(taskAt(state, 0, 0), 0)).toBeUndefined();
    interrupt(state, 0, 400_000);
    interrupt(state, 1, 700_000);
    interrupt(state, 2, 700_000);
    interrupt(state, 3, 500_000);
    interrupt(state, 4, undefined);
    const task = taskAt(state, 0, 0);
    expect(savedFor(task, 0)).toBeUndefined();
    expect(savedFor(task, 1)).toEqual({ attempt: 0, dataBytes: 40_000, noteBytes: 9, noteCrc: 5 });
    expect(savedFor(task, 5)).toEqual({ attempt: 2, dataBytes: 70_000, noteBytes: 9, noteCrc: 5 });
    // Its output was lost since: what came before has nothing to say.
    task.since = 3;
    expect(savedFor(task, 5)?.attempt).toBe(3);
  });

  it('is no work that another which handed on its own could not take up, however far it came', () => {
    const state = job();
    interrupt(state, 0, 700_000);
    interrupt(state, 1, 300_000, { insteadOf: 0 });
    interrupt(state, 2, 500_000);
    const task = taskAt(state, 0, 0);
    expect(savedFor(task, 1)?.attempt).toBe(0);
    expect(savedFor(task, 2)?.attempt).toBe(1);
    interrupt(state, 3, 100_000, { insteadOf: 2 });
    // What a lost one had taken up is whole all the same.
    expect(savedFor(task, 4)?.attempt).toBe(1);
  });

  /** Another attempt of the task, as it reports in that order. */
  const runs = (state: JobState, number: number, ...reported: readonly Progress[]): void => {
    addAttempt(state, id(number), 'retry', epochMs(number * 100_000));
    for (const [beat, progress] of reported.entries()) {
      const at = number * 100_000 + 1 + 10_000 * beat;
      applyAttempt(
        state,
        {
          ...attemptRecord(id(number), 'running', at, { claimedAt: epochMs(number * 100_000), progress }),
          beat: beat + 1,
        },
        epochMs(at),
      );
    }
  };

  it('is a share of its task, by bytes of input, once it has been taken up', () => {
    const state = job();
    const task = taskAt(state, 0, 0);
    const shareOf = (number: number) => task.attempts[number] && partOf(task.attempts[number]).share;
    runs(state, 0);
    expect(shareOf(0)).toBe(1);
    interrupt(state, 1, 750_000);
    runs(state, 2, progressOf(0));
    // It may have to begin at the begin: nobody knows.
    expect(shareOf(2)).toBe(1);
    runs(state, 3, progressOf(3, { bytesTotal: 250_000, takenUp: { attempt: 1, bytes: 750_000 } }));
    expect(shareOf(3)).toBe(0.25);
  });

  it('leaves the rest of a task to others once one has shown that it can be taken up, and how long that takes', () => {
    const state = job();
    const task = taskAt(state, 0, 0);
    interrupt(state, 0, 750_000);
    expect(partForNew(task)).toEqual({ share: 1, takeUpMs: 0 });
    // What was handed on cannot be read, so that this one begins anew, and so would every other.
    runs(state, 1, progressOf(0), progressOf(90_000));
    expect(partForNew(task)).toEqual({ share: 1, takeUpMs: 0 });
    const rest = { bytesTotal: 250_000, takenUp: { attempt: 0, bytes: 750_000, ms: 10_001 } };
    runs(state, 2, progressOf(0), progressOf(0), progressOf(50, rest));
    const part = partForNew(task);
    expect(part.share).toBe(0.25);
    expect(part.takeUpMs).toBe(10_001);
  });
});

describe('an attempt that does the rest of a task', () => {
  /** Task 0 was ended by attempt 1, which took up 900,000 bytes; task 1 by its first. */
  function ended(): JobState {
    const state = job();
    interrupt(state, 0, 900_000);
    const takenUp = { attempt: 0, bytes: 900_000 };
    for (const [number, task, startMs, runMs, progress] of [
      [1, 0, 20_000, 1_000, progressOf(100_000, { bytesTotal: 100_000, takenUp })],
      [0, 1, 0, 8_000, progressOf(inputBytes)],
    ] as const) {
      const at = epochMs(startMs);
      addAttempt(state, id(number, task), number === 0 ? 'first' : 'retry', at);
      const endedAt = later(at, durationMs(runMs));
      applyAttempt(
        state,
        attemptRecord(id(number, task), 'done', endedAt, { claimedAt: at, endedAt, progress, node: 'n' }),
        endedAt,
      );
      applyResult(state, resultOf(id(number, task), endedAt), endedAt);
    }
    return state;
  }

  it('teaches its stage nothing of what tasks take, nor of its node', () => {
    const { statistics, done } = stageAt(ended(), 0);
    expect(done).toBe(2);
    expect(statistics.samples.map(({ task, ms }) => [task.index, ms])).toEqual([[1, 8_000]]);
    expect([statistics.runMs.size, statistics.msPerByte.size, statistics.slowness.size]).toEqual([1, 1, 1]);
    expect(statistics.recent.map(({ id: each }) => each)).toEqual(['map/1/0']);
  });

  it('is told to profiles with the time and the bytes of those whose work it took up', () => {
    const at = (ms: number) => epochMs(ms);
    const records: AttemptRecord[] = [
      attemptRecord(id(0), 'failed', at(9_000), {
        claimedAt: at(0),
        endedAt: at(9_000),
        progress: progressOf(500_000),
        node: 'a',
      }),
      attemptRecord(id(1), 'failed', at(30_000), {
        claimedAt: at(20_000),
        endedAt: at(30_000),
        progress: progressOf(400_000, { bytesTotal: 500_000, takenUp: { attempt: 0, bytes: 500_000 } }),
        node: 'b',
      }),
      attemptRecord(id(2), 'done', at(43_000), {
        claimedAt: at(40_000),
        endedAt: at(43_000),
        progress: progressOf(100_000, { bytesTotal: 100_000, takenUp: { attempt: 1, bytes: 900_000 } }),
        node: 'c',
      }),
    ];
    const told = timesOfStages(records).get('map');
    expect(told?.times).toEqual({ cold: [22_000], first: [], later: [] });
    expect(told?.taskBytes).toBe(inputBytes);
  });
});
