import { describe, expect, it } from 'vitest';
import { durationMs, epochMs } from '../../../../../src/contracts/units.ts';
import { decideTick } from '../../../../../src/core/decide-tick.ts';
import { slotTimeOf } from '../../../../../src/core/estimate/slot-time.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  cancelAttempt,
  cloneStage,
  createJobState,
  openStage,
  preemptClones,
  taskAt,
} from '../../../../../src/core/model/job-state.ts';
import type { JobState, StageShape } from '../../../../../src/core/model/job-view.ts';
import type { LaunchReason } from '../../../../../src/core/model/decision.ts';
import { createRng } from '../../../../../src/lib/rng.ts';
import {
  attempt,
  attemptRecord,
  carryOut,
  progressOf,
  resultOf,
  tickConfig,
} from '../../../../support/job-states.ts';

const stage = (name: string, tasks: number): StageShape => ({
  ...{ name, tasks, upstream: [] },
  sourceBytes: Array.from({ length: tasks }, () => 100),
});

/** A job whose stages are all open, the first of them cloned. */
function clonedJob(copies: number, ...shapes: readonly StageShape[]): JobState {
  const state = createJobState(shapes);
  for (const index of shapes.keys()) openStage(state, index, [], epochMs(0));
  cloneStage(state, 0, { copies, tasks: shapes[0]?.tasks ?? 0 });
  return state;
}

const launch = (state: JobState, id: string, reason: LaunchReason): void => {
  addAttempt(state, attempt(id), reason, epochMs(0));
};

/** An attempt that began at 0 has read so many of its 100 bytes. */
function report(state: JobState, id: string, at: number, bytes: number): void {
  const more = { claimedAt: epochMs(1), node: id, progress: progressOf(bytes, 100) };
  applyAttempt(state, attemptRecord(id, 'running', at, more), epochMs(at));
}

/** What is told to stop at each of some ticks, of ten slots. */
function stopped(state: JobState, reportMs: number, ...ticks: readonly number[]): string[] {
  const config = {
    ...{ ...tickConfig, policy: 'outrider' as const, reportMs: durationMs(reportMs) },
    ...{ silenceMs: durationMs(60_000), claimLeaseMs: durationMs(60_000) },
  };
  const budget = { slots: 10, cancelRequested: false, clusterSlots: 100 };
  return ticks.flatMap((at) => {
    const { decisions } = decideTick(state, epochMs(at), config, budget, createRng('x'));
    carryOut(state, decisions, at);
    return decisions.flatMap((each) => (each.kind === 'cancel' ? [each.attemptId] : []));
  });
}

describe('clones under outrider', () => {
  it('run on beside a stage whose tasks wait for slots', () => {
    const state = clonedJob(2, stage('small', 2), stage('large', 40));
    const copies = ['small/0/0', 'small/0/1', 'small/1/0', 'small/1/1'];
    for (const id of copies) launch(state, id, id.endsWith('/0') ? 'first' : 'clone');
    const others = [0, 1, 2, 3, 4, 5].map((task) => `large/${task}/0`);
    for (const id of others) launch(state, id, 'first');
    for (const at of [1_000, 2_000]) for (const id of [...copies, ...others]) report(state, id, at, at / 200);
    expect(stopped(state, 2_000, 2_100, 2_200, 2_300)).toEqual([]);
  });

  it('run on where a lone task has four', () => {
    const state = clonedJob(4, stage('lone', 1));
    const copies = [0, 1, 2, 3];
    for (const copy of copies) launch(state, `lone/0/${copy}`, copy === 0 ? 'first' : 'clone');
    for (const at of [1_000, 2_000, 3_000, 4_000])
      for (const copy of copies) report(state, `lone/0/${copy}`, at, (at / 100) * (1 + copy / 100));
    expect(stopped(state, 1_000, 4_100)).toEqual([]);
  });

  it('leave late copies to be pruned once they were taken away', () => {
    const state = clonedJob(4, stage('lone', 1));
    for (const copy of [0, 1, 2, 3]) launch(state, `lone/0/${copy}`, copy === 0 ? 'first' : 'backup');
    for (const at of [1_000, 2_000, 3_000, 4_000])
      for (const copy of [0, 1, 2, 3]) report(state, `lone/0/${copy}`, at, (at / 100) * (1 + copy / 100));
    preemptClones(state, 0);
    expect(stopped(state, 1_000, 4_100)).toEqual(['lone/0/0', 'lone/0/1']);
  });
});

describe('slot time of a task with clones', () => {
  const ran = (...attempts: readonly (readonly [LaunchReason, number])[]): JobState => {
    const state = clonedJob(2, stage('lone', 1));
    for (const [number, [reason, ms]] of attempts.entries()) {
      launch(state, `lone/0/${number}`, reason);
      const more = { claimedAt: epochMs(10_000 - ms), progress: progressOf(1, 100) };
      applyAttempt(state, attemptRecord(`lone/0/${number}`, 'running', 10_000, more), epochMs(10_000));
    }
    return state;
  };
  const slotTime = (state: JobState) => slotTimeOf(taskAt(state, 0, 0), epochMs(10_000));

  it('has lost nothing by them', () => {
    expect(slotTime(ran(['first', 9_000], ['clone', 8_000]))).toEqual({ ownMs: 9_000, othersMs: 0 });
  });

  it('has lost what late copies beside them take', () => {
    const state = ran(['first', 9_000], ['clone', 8_000], ['backup', 3_000]);
    expect(slotTime(state)).toEqual({ ownMs: 9_000, othersMs: 3_000 });
  });

  it('has lost what was killed of them, in whose place another runs', () => {
    const state = ran(['first', 9_000], ['clone', 6_000], ['restart', 3_000]);
    cancelAttempt(state, attempt('lone/0/1'), epochMs(10_000), 'restarted');
    expect(slotTime(state)).toEqual({ ownMs: 9_000, othersMs: 6_000 });
  });

  it('has lost nothing by those that another has outrun, or that were taken away', () => {
    const won = ran(['first', 9_000], ['clone', 8_000]);
    applyResult(won, resultOf('lone/0/1', 10_000), epochMs(10_000));
    cancelAttempt(won, attempt('lone/0/0'), epochMs(10_000), 'sibling-won');
    expect(slotTime(won)).toEqual({ ownMs: 9_000, othersMs: 0 });
    const takenAway = ran(['first', 9_000], ['clone', 8_000]);
    preemptClones(takenAway, 0);
    cancelAttempt(takenAway, attempt('lone/0/1'), epochMs(10_000), 'preempted');
    expect(slotTime(takenAway)).toEqual({ ownMs: 9_000, othersMs: 0 });
  });
});
