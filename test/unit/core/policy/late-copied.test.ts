import { expect, it } from 'vitest';
import { attemptIdOf } from '../../../../src/contracts/ids.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { addAttempt, applyAttempt } from '../../../../src/core/model/job-state.ts';
import { late } from '../../../../src/core/policy/late/late.ts';
import { runningTasks } from '../../../../src/core/policy/running-tasks.ts';
import { snapshotOf } from '../../../../src/experiments/stage-snapshot.ts';

it('leaves a copied task as slow as it was found, so that no more are copied than the threshold says', () => {
  const ranMs = 100_000;
  const scores = [0.1, 0.2, ...Array.from({ length: 18 }, () => 0.5)];
  const view = snapshotOf(
    scores.map((score) => ({ ranMs, score })),
    { freeSlots: 20, config: { late: { slowTaskThreshold: 0.05, speculativeCap: 1 } } },
  );
  // The 5th percentile of 20 rates lies just below the second: the first alone is slow.
  expect(late.propose(view).map(({ task }) => task.index)).toEqual([0]);
  const copy = attemptIdOf('stage', 0, 1);
  const [startedAt, now] = [epochMs(ranMs - 10_000), epochMs(ranMs)];
  addAttempt(view.state, copy, 'backup', startedAt);
  applyAttempt(
    view.state,
    {
      attemptId: copy,
      state: 'running',
      order: 'continue',
      launchedAt: startedAt,
      claimedAt: startedAt,
      beat: 1,
      reportedAt: now,
      node: 'fast',
      zone: 'zone',
      progress: {
        bytesRead: 800_000,
        bytesTotal: 900_000,
        recordsIn: 0,
        recordsOut: 0,
        phase: 'compute',
        phaseMs: { init: 0, read: 0, compute: 10_000, write: 0 },
        peakMemoryBytes: 0,
      },
    },
    now,
  );
  expect(late.propose({ ...view, runs: runningTasks(view.state, new Set()) })).toEqual([]);
});
