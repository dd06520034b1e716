import { describe, expect, it } from 'vitest';
import { SharedRoom } from '../../../src/app/shared-room.ts';
import { startWatch, takeRoom, usableSlots, watchLaunches } from '../../../src/app/observe-launches.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { durationMs, epochMs } from '../../../src/contracts/units.ts';
import { addAttempt, applyAttempt, createJobState, openStage } from '../../../src/core/model/job-state.ts';
import type { AttemptView } from '../../../src/core/model/job-view.ts';
import { owedLaunches } from '../../../src/core/policy/owed-launches.ts';
import type { Launcher } from '../../../src/ports/launcher.ts';
import { attempt, attemptRecord, failure } from '../../support/job-states.ts';

const launcher: Launcher = {
  terms: (kind) => ({ waits: kind === 'lambda' }),
  launch: () => Promise.resolve([]),
  stop: () => Promise.resolve(undefined),
};

/** A job with a stage on Lambda and one on Fargate, both open, in a process that has learned nothing yet. */
function mixedJob(tasks: number, sourceBytes = Array.from({ length: tasks }, () => 100)) {
  const stage = { tasks, upstream: [], sourceBytes };
  const state = createJobState([
    { ...stage, name: 'map', worker: { kind: 'lambda', size: 'medium' } },
    { ...stage, name: 'work', worker: { kind: 'fargate', size: 'medium' } },
  ]);
  for (const index of [0, 1]) openStage(state, index, [], epochMs(0));
  const room = new SharedRoom();
  const watch = startWatch(room);
  const jobId = 'job-1' as JobId;
  room.enter(jobId, 0, epochMs(0));
  let fargateRoom = Infinity;
  const refuse = (room: number): void => void (fargateRoom = room);
  const launches = { roomOf: () => fargateRoom };
  const session = {
    jobId,
    state,
    watch,
    launches,
    tickConfig: { hasFargate: true, lambdaMs: durationMs(900_000) },
  };
  /** Launches a first attempt. */
  const launch = (id: string, atMs: number): AttemptView => {
    addAttempt(state, attempt(id), 'first', epochMs(atMs));
    const view = state.attempts.get(attempt(id));
    if (view === undefined) throw new Error('no such attempt');
    watch.waiting.add(view);
    return view;
  };
  const look = (atMs: number, more: Partial<Parameters<typeof watchLaunches>[2]> = {}) => {
    const told = { now: epochMs(atMs), copies: new Map<number, number>(), ...more };
    const outlook = watchLaunches({ launcher }, session, told);
    const { room } = takeRoom(session, outlook, Infinity);
    if (outlook === undefined || room === undefined) throw new Error('nothing waits');
    return { ...outlook, room };
  };
  return { state, room, watch, launch, look, refuse };
}

const claim = (view: AttemptView, atMs: number): void => {
  view.state = 'running';
  view.claimedAt = epochMs(atMs);
};

describe('the room of Lambda, for a job of which a stage runs on Fargate', () => {
  it('is not asked for copies on Fargate, which have their slots where there is none, and keep none from others', () => {
    const { state, launch, look } = mixedJob(2);
    for (const id of ['map/0/0', 'map/1/0', 'work/0/0', 'work/1/0']) claim(launch(id, 0), 500);
    const copies = new Map([[1, 2]]);
    const outlook = look(1_000, { copies });
    expect(outlook.room.launches).toBe(0);
    expect(usableSlots(state, outlook)).toBe(4 + 2);
  });

  it('is asked for copies on Lambda', () => {
    const { state, launch, look } = mixedJob(2);
    for (const id of ['map/0/0', 'map/1/0', 'work/0/0', 'work/1/0']) claim(launch(id, 0), 500);
    const copies = new Map([[0, 1]]);
    const outlook = look(1_000, { copies });
    expect(outlook.room.launches).toBe(1);
    expect(usableSlots(state, outlook)).toBe(4 + 1);
  });

  it('is not learned from the minute that Fargate takes to start a worker', () => {
    const { room, launch, look } = mixedJob(9);
    for (const task of [0, 1, 2]) claim(launch(`map/${task}/0`, 0), 900);
    look(1_000);
    expect(room.patienceMs([])).toBe(durationMs(3_000));
    for (let task = 0; task < 9; task++) claim(launch(`work/${task}/0`, 1_000), 60_000);
    look(61_000);
    expect(room.patienceMs([])).toBe(durationMs(3_000));
  });

  it('is not learned from attempts whose own launches their pack forestalled, however late it came to them', () => {
    const { state, room, launch, look } = mixedJob(9);
    const heads = [0, 1, 2].map((task) => launch(`map/${task}/0`, 0));
    for (const [index, head] of heads.entries()) claim(Object.assign(head, { node: `node-${index}` }), 900);
    look(1_000);
    expect(room.patienceMs([])).toBe(durationMs(3_000));
    for (const [index, head] of heads.entries()) {
      addAttempt(state, attempt(`map/${index + 3}/0`), 'first', epochMs(1_000), undefined, head.id);
      const own = launch(`map/${index + 3}/0`, 1_000);
      expect(own.place).toBe('own');
      claim(Object.assign(own, { node: `node-${index}` }), 60_000);
    }
    look(61_000);
    expect(room.patienceMs([])).toBe(durationMs(3_000));
  });

  it('does not shrink where EC2 refuses launches on Fargate for their rate, and does where Lambda does', () => {
    const launchesAfter = (kind: 'lambda' | 'fargate'): number => {
      const { watch, launch, look } = mixedJob(9);
      for (const task of [0, 1]) claim(launch(`map/${task}/0`, 0), 900);
      watch.throttled[kind] += 1;
      return look(1_000).room.launches;
    };
    expect(launchesAfter('fargate')).toBeGreaterThan(0);
    expect(launchesAfter('lambda')).toBe(0);
  });

  it('is not waited for by a task that ran out of the time of Lambda and goes to Fargate', () => {
    const { state, launch, look } = mixedJob(2);
    claim(launch('map/0/0', 0), 900);
    claim(launch('map/1/0', 0), 900);
    const record = attemptRecord('map/0/0', 'failed', 950, { failure: failure('timeout') });
    applyAttempt(state, record, epochMs(950));
    // No strike, since it goes to another worker.
    expect(state.stages[0]?.tasks[0]?.failures).toBe(0);
    const outlook = look(1_000);
    // One of its own stage runs; this and the two of the other stage need no room.
    expect(outlook.room.launches).toBe(0);
    expect(usableSlots(state, outlook)).toBe(1 + 1 + 2);
    const owed = owedLaunches(state, () => true, 10, outlook.room);
    expect(owed.map((each) => [each.task.stage, each.task.index, each.reason])).toEqual([
      [0, 0, 'retry'],
      [1, 0, 'first'],
      [1, 1, 'first'],
    ]);
  });

  it('is not waited for by first attempts that go to Fargate, as earlier runs of the job outlasted Lambda', () => {
    const { state, look } = mixedJob(6);
    const outlook = look(1_000, { earlierMs: [1_200_000, undefined] });
    expect(outlook.room.launches).toBe(0);
    expect(usableSlots(state, outlook)).toBe(6 + 6);
    const owed = owedLaunches(state, () => true, 4, outlook.room);
    expect(owed.map(({ task }) => [task.stage, task.index])).toEqual([0, 1, 2, 3].map((index) => [0, index]));
  });

  it('is waited for by first attempts whose like end in the time of Lambda', () => {
    const { state, look } = mixedJob(6);
    const outlook = look(1_000, { earlierMs: [600_000, undefined] });
    // Four are tried before anything is known.
    expect(outlook.room.launches).toBe(4);
    expect(usableSlots(state, outlook)).toBe(4 + 6);
  });

  it('is left by those that read as much as one that ran out of time, and waited for by the others', () => {
    const { state, launch, look } = mixedJob(4, [400, 300, 200, 100]);
    claim(launch('map/1/0', 0), 900);
    const record = attemptRecord('map/1/0', 'failed', 950, { failure: failure('timeout') });
    applyAttempt(state, record, epochMs(950));
    const outlook = look(1_000);
    expect([...(outlook.room.elsewhere ?? [])].map(({ index }) => index).toSorted()).toEqual([0, 1]);
    const withoutRoom = { ...outlook.room, launches: 1 };
    const owed = owedLaunches(state, () => true, 10, withoutRoom).filter(({ task }) => task.stage === 0);
    expect(owed.map(({ task, reason }) => [task.index, reason])).toEqual([
      [1, 'retry'],
      [0, 'first'],
      [2, 'first'],
    ]);
  });

  it('leaves to others the slots of what goes to Fargate while that refuses launches', () => {
    const { state, launch, look, refuse } = mixedJob(4, [400, 300, 200, 100]);
    claim(launch('map/1/0', 0), 900);
    const record = attemptRecord('map/1/0', 'failed', 950, { failure: failure('timeout') });
    applyAttempt(state, record, epochMs(950));
    refuse(1);
    const outlook = look(1_000);
    // Two of the first stage and four of the second go to Fargate, where one can be launched now.
    expect(outlook.room.refused).toMatchObject({ launches: 1, beyond: 5 });
    expect(outlook.others).toBe(1);
    const owed = owedLaunches(state, () => true, 10, { ...outlook.room, launches: 9 });
    expect(owed.map(({ task }) => [task.stage, task.index])).toEqual([
      [0, 1],
      [0, 2],
      [0, 3],
    ]);
    refuse(0);
    const none = owedLaunches(state, () => true, 10, { ...look(2_000).room, launches: 9 });
    expect(none.map(({ task }) => [task.stage, task.index])).toEqual([
      [0, 2],
      [0, 3],
    ]);
  });
});
