import { describe, expect, it } from 'vitest';
import { invariant } from '../../../../src/contracts/errors.ts';
import { attemptIdOf } from '../../../../src/contracts/ids.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  cancelAttempt,
  taskAt,
} from '../../../../src/core/model/job-state.ts';
import { loseOutput } from '../../../../src/core/model/lost-outputs.ts';
import { lossLeftMs } from '../../../../src/core/policy/loss-limit.ts';
import { newMsOf } from '../../../../src/core/policy/mantri/appraise.ts';
import { outrider } from '../../../../src/core/policy/outrider/outrider.ts';
import type { PolicyView, RunningTask } from '../../../../src/core/policy/policy-set.ts';
import { runningTasks } from '../../../../src/core/policy/running-tasks.ts';
import { attemptRecord, progressOf, resultOf } from '../../../support/job-states.ts';
import { nowMs, type TaskSpec, times, viewOf } from '../../../support/policy-views.ts';

const size = 1_000_000;
const at = epochMs;
const id = (task: number, number: number) => attemptIdOf('map', task, number);

/** With what runs now, after changes of its state. */
const anew = (view: PolicyView): PolicyView => ({ ...view, runs: runningTasks(view.state, new Set()) });

/** Another attempt of a task runs, since `ranMs`, and has read a share of its input. */
function runs({ state }: PolicyView, task: number, ranMs: number, share: number): void {
  const { attempts } = taskAt(state, 0, task);
  const next = id(task, attempts.length);
  const claimedAt = at(nowMs - ranMs);
  addAttempt(state, next, 'recompute', claimedAt);
  const progress = progressOf(share * size, size, 0, ranMs);
  applyAttempt(state, attemptRecord(next, 'running', nowMs, { claimedAt, progress }), at(nowMs));
}

/** An attempt that runs is told to stop, and does. */
function stops({ state }: PolicyView, task: number, number: number): void {
  const { claimedAt = at(0) } = taskAt(state, 0, task).attempts[number] ?? {};
  cancelAttempt(state, id(task, number), at(nowMs), 'pruned');
  const record = attemptRecord(id(task, number), 'cancelled', nowMs + 1, { claimedAt, endedAt: at(nowMs) });
  applyAttempt(state, { ...record, reportedAt: at(nowMs) }, at(nowMs));
}

/** An attempt that runs wins its task. */
function wins({ state }: PolicyView, task: number, number: number): void {
  const { claimedAt = at(0) } = taskAt(state, 0, task).attempts[number] ?? {};
  const record = attemptRecord(id(task, number), 'done', nowMs + 1, { claimedAt, endedAt: at(nowMs) });
  applyResult(state, resultOf(id(task, number), nowMs), at(nowMs));
  applyAttempt(state, { ...record, reportedAt: at(nowMs) }, at(nowMs));
}

const runningIn = (view: PolicyView, task: number): RunningTask => {
  const found = anew(view).runs[0]?.tasks.find((each) => each.task.index === task);
  invariant(found !== undefined, 'the task runs', { task });
  return found;
};

describe('an output that is made again', () => {
  it('is no loss to copies: what its task took before is what it takes, not what copies cost', () => {
    const running: TaskSpec = { running: [{ ranMs: 2_000, bytesRead: 1 }] };
    const view = viewOf([...times(3, running), ...times(5, { doneMs: 2_000 })]);
    loseOutput(view.state, id(3, 0));
    runs(view, 3, 2_000, 0.5);
    const [stage] = anew(view).runs;
    invariant(stage !== undefined, 'the stage runs', {});
    // A quarter of 2 s of each of eight, and of one once more.
    expect(lossLeftMs(stage, view)).toBe(4_500);
  });

  it('says nothing of what another copy takes: the attempt that made it first was not in vain', () => {
    const view = viewOf([
      {
        running: [
          { ranMs: 90_000, bytesRead: 1 },
          { ranMs: 80_000, bytesRead: size },
        ],
      },
    ]);
    wins(view, 0, 1);
    stops(view, 0, 0);
    loseOutput(view.state, id(0, 1));
    runs(view, 0, 70_000, 0.5);
    expect(newMsOf(runningIn(view, 0), 100, at(nowMs))).toBe(100);
    // The first one since is as little a copy as the very first, and what is launched beside it is one.
    runs(view, 0, 60_000, 0.5);
    runs(view, 0, 1_000, 0.5);
    expect(newMsOf(runningIn(view, 0), 100, at(nowMs))).toBe(60_000);
    stops(view, 0, 2);
    stops(view, 0, 3);
    expect(newMsOf(runningIn(view, 0), 100, at(nowMs))).toBe(60_000);
  });

  it('is no time thrown away, which would have to be made up for by a kill', () => {
    const view = viewOf([...times(3, { doneMs: 100_000 }), { doneMs: 300_000 }, ...times(8, {})], {
      free: 1,
    });
    loseOutput(view.state, id(3, 0));
    runs(view, 3, 130_000, 0.05);
    // Of 2,600 s in all some 1,800 s are left at least: more than 4 × (100 + 130) s, and less than with 300 s more.
    const proposed = outrider.propose(anew(view));
    expect(proposed.map((each) => [each.kind, 'lossMs' in each ? each.lossMs : undefined])).toEqual([
      ['restart', 0],
    ]);
  });
});
