import { expect, it } from 'vitest';
import { durationMs, epochMs } from '../../../../src/contracts/units.ts';
import { attemptIdOf } from '../../../../src/contracts/ids.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  createJobState,
  openStage,
} from '../../../../src/core/model/job-state.ts';
import type { JobState, LaunchOrder } from '../../../../src/core/model/job-view.ts';
import { fitWorker } from '../../../../src/core/policy/fit-workers.ts';
import { tasksElsewhere } from '../../../../src/core/policy/leave-lambda.ts';
import { createRng } from '../../../../src/lib/rng.ts';
import { attemptRecord, resultOf } from '../../../support/job-states.ts';

const minute = 60_000;
const terms = { hasFargate: true, lambdaMs: durationMs(15 * minute) };

/** A stage of tasks of 1 to 40 minutes, a minute for each byte; six that fit on Lambda have ended, and some others run. */
function drawnStage(seed: string, launchOrder: LaunchOrder): JobState {
  const rng = createRng(seed);
  const tasks = 10 + Math.floor(rng.next() * 50);
  const sourceBytes = Array.from({ length: tasks }, (_, task) =>
    task < 6 ? 1 + task : 1 + Math.floor(rng.next() * 40),
  );
  const state = createJobState([{ name: 'map', tasks, upstream: [], sourceBytes }], launchOrder);
  openStage(state, 0, [], epochMs(0));
  for (let task = 0; task < tasks; task++) {
    if (task >= 6 && rng.next() < 0.6) continue;
    const id = attemptIdOf('map', task, 0);
    addAttempt(state, id, 'first', epochMs(0));
    if (task >= 6) continue;
    const ms = (1 + task) * minute;
    const times = { claimedAt: epochMs(0), endedAt: epochMs(ms) };
    applyAttempt(state, attemptRecord(id, 'done', ms, times), epochMs(ms));
    applyResult(state, resultOf(id, ms), epochMs(ms));
  }
  return state;
}

it('finds the tasks that will outlast Lambda, as a look at each of them does', () => {
  let count = 0;
  for (let draw = 0; draw < 200; draw++) {
    for (const launchOrder of ['largest-first', 'by-index'] as const) {
      const state = drawnStage(`stage ${String(draw)}`, launchOrder);
      const [stage] = state.stages;
      if (stage === undefined) throw new Error('no stage');
      const goes = stage.tasks.filter(
        (task) =>
          task.result === undefined && fitWorker(stage, task, terms, undefined).worker.kind === 'fargate',
      );
      const found = tasksElsewhere(state, new Set(['lambda']), { stages: new Set([0]) }, terms);
      expect([...found].map(({ index }) => index).toSorted((a, b) => a - b)).toEqual(
        goes.map(({ index }) => index),
      );
      count += goes.length;
    }
  }
  expect(count).toBeGreaterThan(1_000);
});
