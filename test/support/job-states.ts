import type { AttemptId } from '../../src/contracts/ids.ts';
import { attemptParts, taskOf } from '../../src/contracts/ids.ts';
import { defaultPolicyConfig } from '../../src/contracts/policy-config.ts';
import type { Progress } from '../../src/contracts/progress.ts';
import type { AttemptRecord, Failure, TaskResult } from '../../src/contracts/records.ts';
import { durationMs, epochMs } from '../../src/contracts/units.ts';
import { applyDecisions } from '../../src/core/decide-tick.ts';
import type { Decision } from '../../src/core/model/decision.ts';
import { openStage } from '../../src/core/model/job-state.ts';
import type { JobState } from '../../src/core/model/job-view.ts';
import type { TickConfig } from '../../src/core/model/tick-config.ts';

/** A tick's settings in round numbers. */
export const tickConfig: TickConfig = {
  claimLeaseMs: durationMs(1_000),
  silenceMs: durationMs(500),
  attemptsPerTask: 3,
  retryBaseMs: durationMs(100),
  retryCeilingMs: durationMs(1_000),
  drainMs: durationMs(2_000),
  decisionsPerTick: 100,
  policyConfig: defaultPolicyConfig,
  killFreesSlot: false,
};

/** The id of an attempt as text. */
export const attempt = (id: string): AttemptId => id as AttemptId;

/** What an attempt reports that has computed so long. */
export const progressOf = (bytesRead: number, bytesTotal: number, recordsIn = 0, ms = 0): Progress => ({
  ...{ bytesRead, bytesTotal, recordsIn, recordsOut: 0, phase: 'compute' },
  ...{ phaseMs: { init: 0, read: 0, compute: ms, write: 0 }, peakMemoryBytes: 0 },
});

/** What the store says of an attempt at a time. */
export function attemptRecord(
  id: string,
  state: AttemptRecord['state'],
  at: number,
  more: Partial<AttemptRecord> = {},
): AttemptRecord {
  return {
    attemptId: attempt(id),
    state,
    order: 'continue',
    launchedAt: epochMs(0),
    beat: state === 'launched' ? 0 : at,
    reportedAt: epochMs(at),
    ...(state === 'launched' ? {} : { claimedAt: epochMs(Math.min(at, 1)), node: 'node', zone: 'zone' }),
    ...(['done', 'failed', 'cancelled'].includes(state) ? { endedAt: epochMs(at) } : {}),
    ...more,
  };
}

/** A committed result; `lengths` for a stage that others read. */
export function resultOf(id: string, at: number, lengths: readonly number[] = [10]): TaskResult {
  return {
    taskId: taskOf(attempt(id)),
    attemptId: attempt(id),
    committedAt: epochMs(at),
    partitions: { lengths, crcs: lengths.map((_, index) => 100 * attemptParts(attempt(id)).task + index) },
    bytesIn: 100,
    bytesOut: 10,
    recordsIn: 5,
    recordsOut: 5,
    counters: {},
  };
}

export const failure = (cause: Failure['cause'], message = 'it broke'): Failure => ({ cause, message });

/** Takes decisions over; stages that they open read what they read by the plan. */
export function carryOut(state: JobState, decisions: readonly Decision[], now: number): void {
  const open = (stage: number): void => {
    openStage(state, stage, [], epochMs(now));
  };
  applyDecisions(state, decisions, { now: epochMs(now), openStage: open });
}
