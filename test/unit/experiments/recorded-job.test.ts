import { describe, expect, it } from 'vitest';
import { epochMs } from '../../../src/contracts/units.ts';
import type { AttemptRecord, TaskResult } from '../../../src/contracts/records.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  createJobState,
  openStage,
} from '../../../src/core/model/job-state.ts';
import type { JobState } from '../../../src/core/model/job-view.ts';
import { policyConfigSchema } from '../../../src/contracts/policy-config.ts';
import { simulateRecorded, traceOfRecorded } from '../../../src/experiments/recorded-job.ts';

const begin = 1_700_000_000_000;
const at = (ms: number) => epochMs(begin + ms);

/** Runs attempt `number` of a task of stage map from the beginning until `endMs`, as far as the bytes tell. */
function run(state: JobState, id: string, end: { ms: number; bytesRead: number; wins?: boolean }): void {
  const attemptId = id as AttemptRecord['attemptId'];
  addAttempt(state, attemptId, 'first', at(0));
  const phaseMs = { init: 0, read: end.ms, compute: 0, write: 0 };
  const record: AttemptRecord = {
    ...{
      attemptId,
      state: end.wins === true ? 'done' : 'cancelled',
      order: 'continue',
      launchedAt: at(0),
      beat: 2,
    },
    ...{ claimedAt: at(0), reportedAt: at(end.ms), endedAt: at(end.ms), node: 'node' },
    progress: {
      ...{ bytesRead: end.bytesRead, bytesTotal: 100, recordsIn: 0, recordsOut: 0 },
      ...{ phase: 'read', phaseMs, peakMemoryBytes: 0 },
    },
  };
  applyAttempt(state, record, at(end.ms));
  if (end.wins !== true) return;
  const counts = { bytesIn: 100, bytesOut: 1, recordsIn: 0, recordsOut: 0, counters: {} };
  const taskId = id.slice(0, id.lastIndexOf('/')) as TaskResult['taskId'];
  applyResult(state, { taskId, attemptId, committedAt: at(end.ms), ...counts }, at(end.ms));
}

function recorded(): JobState {
  const state = createJobState([{ name: 'map', tasks: 4, upstream: [], sourceBytes: [100, 100, 100, 100] }]);
  openStage(state, 0, [0, 0, 0, 0], at(0));
  run(state, 'map/0/0', { ms: 2_000, bytesRead: 100, wins: true });
  run(state, 'map/1/0', { ms: 3_000, bytesRead: 100, wins: true });
  // Ended when its copy had won, a quarter of the way.
  run(state, 'map/2/0', { ms: 5_000, bytesRead: 25 });
  run(state, 'map/2/1', { ms: 1_000, bytesRead: 100, wins: true });
  return state;
}

describe('a recorded job in the simulator', () => {
  it('takes what its first attempts took, or would have', () => {
    const works = traceOfRecorded('job', recorded(), at(9_000))?.stages[0]?.tasks.map(({ workMs }) => workMs);
    // The fourth never began: the median of the others.
    expect(works).toEqual([2_000, 3_000, 20_000, 3_000]);
  });

  it('is not simulated where a stage never began', () => {
    const state = createJobState([{ name: 'map', tasks: 1, upstream: [], sourceBytes: [1] }]);
    expect(traceOfRecorded('job', state, at(1))).toBeUndefined();
  });

  it('goes by the settings that the job had, and not by the defaults', async () => {
    const trace = traceOfRecorded('job', recorded(), at(9_000));
    if (trace === undefined) throw new Error('no trace');
    const copiesWith = async (dolly: object): Promise<number> => {
      const policyConfig = policyConfigSchema.parse({ dolly });
      return (await simulateRecorded(trace, { policy: 'dolly', policyConfig, slots: 16, seeds: 1 })).copies;
    };
    expect(await copiesWith({})).toBe(0);
    expect(await copiesWith({ budgetShare: 1, utilizationCeiling: 1 })).toBeGreaterThan(0);
  });

  it('ends no sooner than its longest task without copies, and takes slots for all', async () => {
    const trace = traceOfRecorded('job', recorded(), at(9_000));
    if (trace === undefined) throw new Error('no trace');
    const none = await simulateRecorded(trace, {
      ...{ policy: 'none', policyConfig: policyConfigSchema.parse({}), slots: 8, seeds: 2 },
    });
    expect(none).toMatchObject({ policy: 'none', copies: 0 });
    expect(none.completionS).toBeGreaterThanOrEqual(20);
    expect(none.slotSeconds).toBeGreaterThanOrEqual(28);
    expect(none.slotSeconds).toBeLessThan(60);
  });
});
