import { describe, expect, it } from 'vitest';
import { durationMs, epochMs } from '../../../src/contracts/units.ts';
import { decideTick } from '../../../src/core/decide-tick.ts';
import type { Decision } from '../../../src/core/model/decision.ts';
import {
  applyAttempt,
  cancelAttempt,
  createJobState,
  loseAttempt,
  openStage,
  withdrawAttempt,
} from '../../../src/core/model/job-state.ts';
import type { JobState } from '../../../src/core/model/job-view.ts';
import { stampLaunch, unclaimedLaunches } from '../../../src/core/model/launches.ts';
import { ridersOf } from '../../../src/core/model/packs.ts';
import { dueReads } from '../../../src/core/policy/due-reads.ts';
import { slotDemand } from '../../../src/core/policy/owed-launches.ts';
import { attempt, attemptRecord, carryOut, failure, tickConfig } from '../../support/job-states.ts';
import {
  afterFirstWave,
  begin,
  decided,
  finish,
  idsOf,
  mapOf,
  packing,
  rng,
  tick,
} from '../../support/packed-map.ts';

const at = epochMs;

describe('which attempts ride together', () => {
  it('are those of a stage of which some have ended, within what falls to each place of what is left', () => {
    const state = afterFirstWave();
    expect(tick(state, 101, 4)).toEqual([
      'map/4/0',
      'map/5/0 behind map/4/0',
      'map/6/0',
      'map/7/0 behind map/6/0',
      'map/8/0',
      'map/9/0 behind map/8/0',
      'map/10/0',
      'map/11/0 behind map/10/0',
    ]);
    expect([state.live.size, state.riding.size]).toEqual([4, 4]);
  });

  it('are none where slots are free for all, where nothing is known, and where no time is given', () => {
    expect(tick(afterFirstWave(8), 101, 4)).toEqual(['map/4/0', 'map/5/0', 'map/6/0', 'map/7/0']);
    const unknown = mapOf(40);
    expect(tick(unknown, 0, 4)).toEqual(['map/0/0', 'map/1/0', 'map/2/0', 'map/3/0']);
    finish(unknown, 'map/0/0', 100);
    expect(tick(unknown, 101, 4)).toEqual(['map/4/0']);
    expect(tick(afterFirstWave(40), 101, 4, tickConfig)).toHaveLength(4);
  });

  it('are no more than the time allows, however much is left', () => {
    const state = mapOf(1_000);
    tick(state, 0, 4);
    for (let task = 0; task < 4; task++) finish(state, `map/${String(task)}/0`, 600, 600);
    // Three times 600 ms in two seconds.
    const launched = tick(state, 601, 4);
    expect(launched).toHaveLength(12);
    expect(launched.filter((each) => each.includes('behind'))).toHaveLength(8);
  });

  it('are none of a stage of which some take long, that runs on Fargate, or that is cloned', () => {
    const slow = mapOf(100);
    tick(slow, 0, 4);
    for (const [task, tookMs] of [100, 100, 100, 2_100].entries())
      finish(slow, `map/${String(task)}/0`, 3_000, tookMs);
    expect(tick(slow, 3_001, 4)).toHaveLength(4);

    const shape = {
      name: 'map',
      tasks: 100,
      upstream: [],
      sourceBytes: Array.from({ length: 100 }, () => 0),
    };
    const fargate = createJobState([{ ...shape, worker: { kind: 'fargate', size: 'small' } }], 'by-index');
    openStage(fargate, 0, [], at(0));
    tick(fargate, 0, 4);
    for (let task = 0; task < 4; task++) finish(fargate, `map/${String(task)}/0`, 100);
    expect(tick(fargate, 101, 4)).toHaveLength(4);

    const cloned = afterFirstWave(100);
    const [stage] = cloned.stages;
    if (stage !== undefined) stage.clones = { copies: 2, tasks: 1, preempted: true };
    expect(tick(cloned, 101, 4)).toHaveLength(4);
  });

  it('leaves a task by itself that reads far more than those that have ended', () => {
    const bytes = [10, 10, 10, 10, 10, 10, 4_000, 10, 10, 10, 10, 10, 10, 10, 10, 10];
    const shape = { name: 'map', tasks: bytes.length, upstream: [], sourceBytes: bytes };
    const state = createJobState([shape], 'by-index');
    openStage(state, 0, [], at(0));
    tick(state, 0, 4);
    for (let task = 0; task < 4; task++) finish(state, `map/${String(task)}/0`, 100);
    const launched = tick(state, 101, 4);
    expect(launched).toContain('map/6/0');
    expect(launched.filter((each) => each.endsWith('behind map/6/0'))).toEqual([]);
  });

  it('never are retries', () => {
    const state = mapOf(40);
    tick(state, 0, 5);
    for (let task = 0; task < 4; task++) finish(state, `map/${String(task)}/0`, 100);
    applyAttempt(state, attemptRecord('map/4/0', 'failed', 100, { failure: failure('user-code') }), at(100));
    const launched = tick(state, 5_000, 5);
    expect(launched[0]).toBe('map/4/1');
    expect(launched.filter((each) => each.endsWith('behind map/4/1'))).toEqual([]);
  });

  it('are none where a kill takes the worker away', () => {
    expect(tick(afterFirstWave(40), 101, 4, { ...packing, killFreesSlot: true })).toHaveLength(4);
  });
});

describe('an attempt that rides', () => {
  it('holds no slot, is not read, not late and not unclaimed, however long the one before it takes', () => {
    const state = afterFirstWave();
    tick(state, 101, 4);
    for (const head of [4, 6, 8, 10]) begin(state, `map/${String(head)}/0`, 102);
    expect(slotDemand(state)).toBe(4);
    expect(idsOf(unclaimedLaunches(state))).toEqual([]);
    const reads = dueReads(state, {
      now: at(60_000),
      tickMs: durationMs(1_000),
      reportMs: durationMs(10_000),
    });
    expect([...reads.records, ...reads.outputs]).not.toContain('map/5/0');
    for (const each of state.live) each.seenAt = at(2_000_000);
    const { decisions } = decided(state, 2_000_000, 4);
    expect(decisions.filter(({ kind }) => kind === 'lose')).toEqual([]);
  });

  it('takes the place of the one before it once that has ended, and then the next', () => {
    const state = afterFirstWave(24, 4);
    tick(state, 101, 4);
    expect(ridersOf(state, attempt('map/4/0')).map(({ id }) => id)).toHaveLength(4);
    finish(state, 'map/4/0', 200);
    expect(idsOf(state.live)).toEqual(['map/14/0', 'map/19/0', 'map/5/0', 'map/9/0']);
    expect(tick(state, 201, 4)).toEqual([]);
    // The scheduler hears of two ends at once, the later one first.
    finish(state, 'map/6/0', 400);
    finish(state, 'map/5/0', 400);
    expect(idsOf(state.live)).toEqual(['map/14/0', 'map/19/0', 'map/7/0', 'map/9/0']);
    expect(state.attempts.get(attempt('map/7/0'))?.launchedAt).toBe(400);
  });

  it.each<[string, (state: JobState) => void]>([
    [
      'has failed',
      (state) => {
        const failed = { failure: failure('user-code') };
        applyAttempt(state, attemptRecord('map/4/0', 'failed', 200, failed), at(200));
      },
    ],
    [
      'has died, as the platform tells',
      (state) => {
        const died = { failure: failure('out-of-memory') };
        applyAttempt(state, attemptRecord('map/4/0', 'lost', 200, died), at(200));
      },
    ],
    [
      'was given up',
      (state) => {
        loseAttempt(state, attempt('map/4/0'), at(200));
      },
    ],
    [
      'was told to stop before it began',
      (state) => {
        cancelAttempt(state, attempt('map/4/0'), at(200), 'sibling-won');
      },
    ],
    [
      'was told to stop while it ran',
      (state) => {
        begin(state, 'map/4/0', 150);
        cancelAttempt(state, attempt('map/4/0'), at(200), 'sibling-won');
      },
    ],
  ])('is launched by itself, first of all, once the one before it %s', (_, end) => {
    const state = afterFirstWave();
    tick(state, 101, 4);
    for (const head of [6, 8, 10]) begin(state, `map/${String(head)}/0`, 102);
    end(state);
    const launched = tick(state, 201, 5);
    expect(launched[0]).toBe('map/5/0');
    expect(state.attempts.get(attempt('map/5/0'))).toMatchObject({
      number: 0,
      place: 'own',
      launchedAt: 201,
    });
    expect(state.live.has(state.attempts.get(attempt('map/5/0')) as never)).toBe(true);
    expect(state.stages[0]?.tasks[5]?.failures).toBe(0);
    // Once.
    expect(tick(state, 202, 6)).not.toContain('map/5/0');
  });

  it('is launched by itself once its worker does not take it up, and so are those behind it', () => {
    const state = afterFirstWave(24, 4);
    tick(state, 101, 4);
    finish(state, 'map/4/0', 200);
    const rider = state.attempts.get(attempt('map/5/0'));
    if (rider !== undefined) rider.readAt = at(3_000);
    expect(tick(state, 3_001, 4)).toEqual([]);
    if (rider !== undefined) rider.readAt = at(3_300);
    // Its worker's slot is its own; those behind it wait for others.
    expect(tick(state, 3_301, 4)).toEqual(['map/5/0']);
    expect(tick(state, 3_302, 7)).toEqual(['map/6/0', 'map/7/0', 'map/8/0']);
    expect(state.live.size).toBe(7);
  });

  it('is launched by itself where the one before it takes far longer than its like, if there is a slot', () => {
    const state = afterFirstWave(13, 4);
    tick(state, 101, 4);
    for (const head of [4, 6, 8, 10]) begin(state, `map/${String(head)}/0`, 102);
    for (const attempt of state.live) attempt.seenAt = at(4_000);
    expect(tick(state, 3_000, 4)).toEqual([]);
    // Twice 100 ms and three seconds: before the task that nobody has yet.
    expect(tick(state, 3_400, 5)).toEqual(['map/5/0']);
  });

  it('is launched by itself where slots stand idle and it would wait for long, the last first', () => {
    const state = afterFirstWave(24, 4);
    tick(state, 101, 4);
    for (const head of [4, 9, 14, 19]) begin(state, `map/${String(head)}/0`, 102);
    // 400 ms to wait for the last of each, 300 for the one before it: it is worth 200 and a launch.
    expect(tick(state, 103, 6)).toEqual(['map/13/0', 'map/18/0']);
    expect(tick(state, 104, 100)).toEqual([
      'map/23/0',
      'map/8/0',
      'map/12/0',
      'map/17/0',
      'map/22/0',
      'map/7/0',
    ]);
    expect(tick(state, 105, 100)).toEqual([]);
  });

  it('rides on where there was no room for it, and is tried again after a pause', () => {
    const state = afterFirstWave();
    tick(state, 101, 4);
    loseAttempt(state, attempt('map/4/0'), at(200));
    expect(tick(state, 201, 5)[0]).toBe('map/5/0');
    withdrawAttempt(state, attempt('map/5/0'), at(1_201));
    expect(state.riding.has(state.attempts.get(attempt('map/5/0')) as never)).toBe(true);
    expect(tick(state, 1_000, 8)).not.toContain('map/5/0');
    expect(tick(state, 1_201, 8)).toContain('map/5/0');
  });

  it('is owed anew with its head, where there was no room for that', () => {
    const state = afterFirstWave();
    tick(state, 101, 4);
    withdrawAttempt(state, attempt('map/4/0'), at(1_101));
    expect(state.attempts.has(attempt('map/5/0'))).toBe(false);
    expect(state.stages[0]?.unstarted).toBe(2);
    expect([state.live.size, state.riding.size, state.packs.size]).toEqual([3, 3, 3]);
  });

  it('is told to stop with all others where the job ends', () => {
    const state = afterFirstWave();
    tick(state, 101, 4);
    const { decisions } = decideTick(state, at(102), packing, { slots: 4, cancelRequested: true }, rng);
    expect(decisions.filter(({ kind }) => kind === 'cancel')).toHaveLength(8);
  });

  it('is passed over where it was told to stop itself', () => {
    const state = afterFirstWave(24, 4);
    tick(state, 101, 4);
    cancelAttempt(state, attempt('map/5/0'), at(150), 'sibling-won');
    finish(state, 'map/4/0', 200);
    expect(state.live.has(state.attempts.get(attempt('map/6/0')) as never)).toBe(true);
  });
});

describe('whoever takes a job over', () => {
  it('knows from the log who rides behind whom, and who was launched by itself after all', () => {
    const log: { readonly at: number; readonly decisions: readonly Decision[] }[] = [];
    const state = mapOf(24);
    const noted = (now: number, slots: number): void => {
      const { decisions } = decided(state, now, slots);
      carryOut(state, decisions, now);
      log.push({ at: now, decisions });
    };
    noted(0, 4);
    for (let task = 0; task < 4; task++) finish(state, `map/${String(task)}/0`, 100);
    noted(101, 4);
    loseAttempt(state, attempt('map/4/0'), at(200));
    log.push({ at: 200, decisions: [{ kind: 'lose', attemptId: attempt('map/4/0'), reason: 'silent' }] });
    noted(201, 5);

    const rebuilt = mapOf(24);
    for (const entry of log) carryOut(rebuilt, entry.decisions, entry.at);
    carryOut(rebuilt, log.at(-1)?.decisions ?? [], 900); // Read twice.
    for (let task = 0; task < 4; task++) finish(rebuilt, `map/${String(task)}/0`, 1_000);
    expect(idsOf(rebuilt.live)).toEqual(idsOf(state.live));
    expect(idsOf(rebuilt.riding)).toEqual(idsOf(state.riding));
    expect([...rebuilt.packs.keys()].toSorted()).toEqual([...state.packs.keys()].toSorted());
    finish(rebuilt, 'map/9/0', 1_001);
    expect(rebuilt.attempts.get(attempt('map/10/0'))?.place).toBe('carrier');
  });

  it('makes the launch of a pack with those behind it', () => {
    const state = afterFirstWave();
    tick(state, 101, 4);
    const unclaimed = unclaimedLaunches(state).map(({ id }) => id);
    expect(unclaimed.toSorted()).toEqual(['map/10/0', 'map/4/0', 'map/6/0', 'map/8/0']);
    stampLaunch(state, attempt('map/4/0'), at(300));
    expect(state.packs.get(attempt('map/4/0'))?.since).toBe(300);
  });
});
