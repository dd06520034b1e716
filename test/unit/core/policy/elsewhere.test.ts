import { describe, expect, it } from 'vitest';
import { launchOwed } from '../../../../src/core/policy/launch-owed.ts';
import { openAccount } from '../../../../src/core/policy/spend-slots.ts';
import { holdMsOf } from '../../../../src/core/policy/elsewhere.ts';
import { addAttempt, applyAttempt } from '../../../../src/core/model/job-state.ts';
import { summarizeJob } from '../../../../src/core/model/job-summary.ts';
import type { JobState } from '../../../../src/core/model/job-view.ts';
import type { FailureCause } from '../../../../src/contracts/records.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { attempt, attemptRecord, failure } from '../../../support/job-states.ts';
import { jobOf, nowMs, type TaskSpec, viewOf } from '../../../support/policy-views.ts';

const running: TaskSpec = { running: [{ ranMs: 10, bytesRead: 1, node: 'a' }] };
const done = (doneMs: number): TaskSpec => ({ doneMs, node: 'b' });

/** Launches what a job owes off node `slow`, and answers what is launched with the nodes that it names. */
function launched(view: ReturnType<typeof viewOf>, state: JobState): unknown[] {
  const account = openAccount(state, view, {
    room: 100,
    copyCap: 100,
    killFreesSlot: false,
    isReady: () => true,
    tickMs: 100,
  });
  const [task] = state.stages[0]?.retryable ?? [];
  const first = state.stages.flatMap(({ tasks }) => tasks).find(({ attempts }) => attempts.length === 0);
  const owed =
    task === undefined
      ? first && { task: first, reason: 'first' as const }
      : { task, reason: 'retry' as const };
  launchOwed(account, () => (owed === undefined ? [] : [owed]), ['slow']);
  return account.decisions.map((each) =>
    each.kind === 'launch' ? [each.attemptId, each.reason, each.avoidNodes ?? []] : each,
  );
}

/** A worker has declined an attempt. */
function decline(state: JobState, id: string): void {
  const { node, claimedAt, ...record } = attemptRecord(id, 'lost', nowMs, {
    beat: 0,
    failure: failure('declined'),
  });
  expect([node, claimedAt]).toEqual(['node', epochMs(1)]);
  applyAttempt(state, record, epochMs(nowMs));
}

/** An attempt of the third task is launched, and fails on node `bad`. */
function fail(state: JobState, number: number, cause: FailureCause): void {
  const id = attempt(`map/2/${number}`);
  addAttempt(state, id, number === 0 ? 'first' : 'retry', epochMs(nowMs));
  const failed = attemptRecord(id, 'failed', nowMs, { node: 'bad', failure: failure(cause) });
  applyAttempt(state, failed, epochMs(nowMs));
}

describe('launches away from nodes where the task has failed', () => {
  it("are made however short its like are, twice at most: the fault may be the node's", () => {
    const view = viewOf([running, done(10), {}]);
    const { state } = view;
    fail(state, 0, 'user-code');
    for (const number of [1, 2, 3]) {
      expect(launched(view, state)).toEqual([[`map/2/${number}`, 'retry', number < 3 ? ['bad'] : []]]);
      addAttempt(state, attempt(`map/2/${number}`), 'retry', epochMs(nowMs));
      if (number < 3) decline(state, `map/2/${number}`);
    }
  });

  it('keep off slow ones, too, where that is worth it, and off none of a fault that passes with any node', () => {
    const after = (doneMs: number, cause: FailureCause): unknown[] => {
      const view = viewOf([running, done(doneMs), {}]);
      fail(view.state, 0, cause);
      return launched(view, view.state);
    };
    expect(after(1_000, 'user-code')).toEqual([['map/2/1', 'retry', ['bad', 'slow']]]);
    expect(after(1_000, 'storage')).toEqual([['map/2/1', 'retry', ['slow']]]);
  });

  it('keep off slow ones alone where no other is known: a second failure on the only one tells as much', () => {
    const view = viewOf([{}, {}, {}]);
    fail(view.state, 0, 'user-code');
    expect([...view.state.nodes.keys()]).toEqual(['bad']);
    expect(launched(view, view.state)).toEqual([['map/2/1', 'retry', ['slow']]]);
  });

  it('go anywhere where the cluster has no other', () => {
    const view = viewOf([running, done(1_000), {}], { cluster: 1 });
    fail(view.state, 0, 'user-code');
    expect(launched(view, view.state)).toEqual([['map/2/1', 'retry', []]]);
  });
});

describe('launches away from slow nodes', () => {
  it('are made again at once where a worker has declined, twice at most, and are no failures', () => {
    const view = viewOf([running, done(1_000), {}]);
    const { state } = view;
    for (const number of [0, 1, 2]) {
      const reason = number === 0 ? 'first' : 'retry';
      expect(launched(view, state)).toEqual([[`map/2/${number}`, reason, number < 2 ? ['slow'] : []]]);
      addAttempt(state, attempt(`map/2/${number}`), reason, epochMs(nowMs));
      if (number < 2) decline(state, `map/2/${number}`);
    }
    expect(state.stages[0]?.tasks[2]).toMatchObject({ failures: 0, notBefore: 0 });
    expect(state.fatal).toBeUndefined();
    expect(summarizeJob(state, [], epochMs(nowMs)).attempts).toMatchObject({
      launched: 5,
      declined: 2,
      lost: 0,
    });
  });

  it('go anywhere where tasks are over before they would be launched again', () => {
    const after = (doneMs: number, lagMs: number): unknown[] => {
      const view = viewOf([running, done(doneMs), {}]);
      const { lag } = view.state.stages[0]?.statistics ?? { lag: { sumMs: 0, count: 0 } };
      lag.sumMs = lagMs;
      lag.count = 1;
      return launched(view, view.state);
    };
    expect(after(1_000, 450)).toEqual([['map/2/0', 'first', ['slow']]]);
    expect(after(1_000, 451)).toEqual([['map/2/0', 'first', []]]);
  });

  it('take tasks of a stage of which none has ended for ones of the shortest stage of the job', () => {
    const after = (doneMs: number): unknown[] => {
      const view = viewOf([running, done(doneMs)]);
      const { state } = view;
      const reduce = jobOf([{}]).stages[0];
      const [map] = state.stages;
      if (map === undefined || reduce === undefined) return [];
      const tasks = reduce.tasks.map((task) => ({ ...task, stage: 1 }));
      const shape = { ...reduce.shape, name: 'reduce' };
      return launched(view, { ...state, stages: [map, { ...reduce, shape, index: 1, tasks }] });
    };
    expect(after(99)).toEqual([['reduce/0/0', 'first', []]]);
    expect(after(100)).toEqual([['reduce/0/0', 'first', ['slow']]]);
  });

  it('go anywhere where the cluster has no other node', () => {
    const within = (cluster: number): unknown[] => {
      const view = viewOf([running, done(1_000), {}], { cluster });
      return launched(view, view.state);
    };
    expect(within(2)).toEqual([['map/2/0', 'first', ['slow']]]);
    expect(within(1)).toEqual([['map/2/0', 'first', []]]);
  });

  it('keep a node busy that has declined for a tick and about two launches, and for five seconds at most', () => {
    const held = (lagMs: number): number | undefined => {
      const stage = viewOf([running]).state.stages[0];
      if (stage === undefined) return undefined;
      stage.statistics.lag.sumMs = lagMs;
      stage.statistics.lag.count = 1;
      return holdMsOf(stage, 1_000);
    };
    expect([held(100), held(1_000), held(60_000)]).toEqual([1_200, 3_000, 5_000]);
  });
});
