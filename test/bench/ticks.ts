/**
 * How the cost of a tick grows with the job, for every policy set: the time of one decision on twice the tasks over
 * that on once as many. About 2 is linear. `ofFinished` is the same for twice the finished tasks beside as many that run:
 * about 1, since a tick costs what runs and changes, and not what is there. Run: `node test/bench/ticks.ts [--json]`.
 */
import { attemptIdOf } from '../../src/contracts/ids.ts';
import { epochMs } from '../../src/contracts/units.ts';
import { decideTick } from '../../src/core/decide-tick.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  createJobState,
  openStage,
} from '../../src/core/model/job-state.ts';
import { policySets } from '../../src/core/policy/policy-sets.ts';
import { createRng } from '../../src/lib/rng.ts';
import { attemptRecord, resultOf, tickConfig } from '../support/job-states.ts';
import type { JobState } from '../../src/core/model/job-view.ts';

const nowMs = 400_000;

/** A stage of which one task in `each` runs and the others have finished, one in twenty ten times too slow. */
function largeJob(tasks: number, each = 10): JobState {
  const rng = createRng(`bench/${tasks}`);
  const state = createJobState([
    { name: 'map', tasks, upstream: [], sourceBytes: Array.from({ length: tasks }, () => 1_000_000) },
  ]);
  openStage(state, 0, [], epochMs(0));
  for (let task = 0; task < tasks; task++) {
    const id = attemptIdOf('map', task, 0);
    const node = `node${task % Math.max(1, tasks / 100)}`;
    const runs = task % each === 0;
    const startMs = runs ? 300_000 : 0;
    const slowdown = rng.next() < 0.05 ? 10 : 0.9 + 0.2 * rng.next();
    addAttempt(state, id, 'first', epochMs(startMs));
    for (const at of runs ? [nowMs - 20_000, nowMs - 10_000, nowMs] : []) {
      const bytesRead = Math.min(999_999, Math.floor((1_000_000 * (at - startMs)) / (200_000 * slowdown)));
      const progress = {
        bytesRead,
        bytesTotal: 1_000_000,
        recordsIn: 0,
        recordsOut: 0,
        phase: 'compute' as const,
        phaseMs: { init: 0, read: 0, compute: at - startMs, write: 0 },
        peakMemoryBytes: 0,
      };
      applyAttempt(
        state,
        attemptRecord(id, 'running', at, { claimedAt: epochMs(startMs), node, progress }),
        epochMs(at),
      );
    }
    if (runs) continue;
    const endMs = Math.floor(200_000 * slowdown);
    applyAttempt(state, attemptRecord(id, 'done', endMs, { claimedAt: epochMs(0), node }), epochMs(endMs));
    applyResult(state, resultOf(id, endMs), epochMs(endMs));
  }
  state.justDone.length = 0;
  return state;
}

function decisionMs(state: JobState, policy: (typeof tickConfig)['policy'], slots: number): number {
  const config = {
    ...tickConfig,
    silenceMs: tickConfig.drainMs,
    ...(policy === undefined ? {} : { policy }),
  };
  const budget = { slots, cancelRequested: false };
  const times = Array.from({ length: 9 }, () => {
    const began = performance.now();
    decideTick(state, epochMs(nowMs), config, budget, createRng('bench'));
    return performance.now() - began;
  });
  return times.sort((a, b) => a - b)[4] ?? 0;
}

const [half, full] = [largeJob(50_000), largeJob(100_000)];
const [fewer, more] = [largeJob(50_000, 50), largeJob(100_000, 100)];
const rows = [...policySets.keys()].map((policy) => {
  const halfMs = decisionMs(half, policy, 7_500);
  const fullMs = decisionMs(full, policy, 15_000);
  const ofFinished = decisionMs(more, policy, 1_500) / decisionMs(fewer, policy, 1_500);
  return {
    policy,
    tasks: 100_000,
    running: 10_000,
    fullMs: Math.round(fullMs * 10) / 10,
    growth: Math.round((fullMs / halfMs) * 100) / 100,
    ofFinished: Math.round(ofFinished * 100) / 100,
  };
});
if (process.argv.includes('--json')) console.log(JSON.stringify(rows));
else console.table(rows);
