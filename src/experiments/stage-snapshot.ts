import { attemptIdOf, taskIdOf } from '../contracts/ids.ts';
import { type PolicyConfigInput, policyConfigSchema } from '../contracts/policy-config.ts';
import type { Progress } from '../contracts/progress.ts';
import { durationMs, epochMs } from '../contracts/units.ts';
import { addAttempt, applyAttempt, applyResult, createJobState, openStage } from '../core/model/job-state.ts';
import type { PolicyView } from '../core/policy/policy-set.ts';
import { runningTasks } from '../core/policy/running-tasks.ts';

/** A task at one moment: how long it runs or ran, and how far it is. `isDone`: it has just ended. */
export interface TaskMoment {
  readonly ranMs: number;
  readonly score: number;
  readonly isDone?: boolean;
  /** Bytes; 900,000 where nothing is said. */
  readonly inputBytes?: number;
}

/** Divides by 3, so that thirds are exact. */
const ordinaryBytes = 900_000;

function progressOf(bytesTotal: number, { score, ranMs }: TaskMoment): Progress {
  return {
    bytesRead: Math.round(bytesTotal * score),
    bytesTotal,
    recordsIn: 0,
    recordsOut: 0,
    phase: 'compute',
    phaseMs: { init: 0, read: 0, compute: ranMs, write: 0 },
    peakMemoryBytes: 0,
  };
}

/**
 * What a policy sees of one stage at one moment, each task on a node of its own, with `freeSlots` to spare and none
 * waiting. Needs at least one task.
 */
export function snapshotOf(
  tasks: readonly TaskMoment[],
  options: { readonly freeSlots: number; readonly config?: PolicyConfigInput },
): PolicyView {
  const bytes = tasks.map(({ inputBytes }) => inputBytes ?? ordinaryBytes);
  const nowMs = tasks.reduce((most, { ranMs }) => Math.max(most, ranMs), 0);
  const now = epochMs(nowMs);
  const state = createJobState(
    [{ name: 'stage', tasks: tasks.length, upstream: [], sourceBytes: bytes }],
    'by-index',
  );
  openStage(state, 0, [], epochMs(0));
  for (const [index, task] of tasks.entries()) {
    const attemptId = attemptIdOf('stage', index, 0);
    const startedAt = epochMs(nowMs - task.ranMs);
    const bytesTotal = bytes[index] ?? ordinaryBytes;
    const base = {
      attemptId,
      order: 'continue',
      launchedAt: startedAt,
      claimedAt: startedAt,
      node: `node-${index}`,
      zone: 'zone',
    } as const;
    addAttempt(state, attemptId, 'first', startedAt);
    applyAttempt(state, { ...base, state: 'running', beat: 1, reportedAt: startedAt }, startedAt);
    applyAttempt(
      state,
      { ...base, state: 'running', beat: 2, reportedAt: now, progress: progressOf(bytesTotal, task) },
      now,
    );
    if (task.isDone !== true) continue;
    const result = {
      taskId: taskIdOf('stage', index),
      attemptId,
      committedAt: now,
      bytesIn: bytesTotal,
      bytesOut: 0,
      recordsIn: 0,
      recordsOut: 0,
      counters: {},
    };
    applyResult(state, result, now);
    applyAttempt(state, { ...base, state: 'done', beat: 3, reportedAt: now, endedAt: now }, now);
  }
  const running = tasks.filter(({ isDone }) => isDone !== true).length;
  const slots = running + options.freeSlots;
  return {
    state,
    now,
    config: policyConfigSchema.parse(options.config ?? {}),
    runs: runningTasks(state, new Set()),
    slots: { granted: slots, cluster: slots, free: options.freeSlots, waiting: 0 },
    reportMs: durationMs(0),
  };
}
