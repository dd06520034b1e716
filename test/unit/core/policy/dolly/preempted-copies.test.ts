import { beforeEach, describe, expect, it } from 'vitest';
import type { JobId } from '../../../../../src/contracts/ids.ts';
import { policyConfigSchema } from '../../../../../src/contracts/policy-config.ts';
import { durationMs, epochMs } from '../../../../../src/contracts/units.ts';
import { applyDecisions, decideTick, type TickDecision } from '../../../../../src/core/decide-tick.ts';
import type { Decision } from '../../../../../src/core/model/decision.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  createJobState,
  openStage,
  stageAt,
  taskAt,
} from '../../../../../src/core/model/job-state.ts';
import type { JobState } from '../../../../../src/core/model/job-view.ts';
import { chargeLeft, owedClones } from '../../../../../src/core/model/stage-clones.ts';
import { cloneWishes } from '../../../../../src/core/policy/dolly/clone-wishes.ts';
import { slotDemand } from '../../../../../src/core/policy/owed-launches.ts';
import { createRng } from '../../../../../src/lib/rng.ts';
import { attempt, attemptRecord, resultOf, tickConfig } from '../../../../support/job-states.ts';
import { progress } from '../../../../support/scripted-job.ts';

const at = epochMs;
const rng = createRng('job');
const by = 'small-000000000000' as JobId;
const facts = { jobTasks: 5, byTasks: 2, slots: 9 };
const taken = [{ stage: 0, by, facts }];
const policyConfig = policyConfigSchema.parse({ dolly: { admission: 'preemption', otherwise: 'none' } });
const config = { ...tickConfig, silenceMs: durationMs(100_000), policy: 'dolly' as const, policyConfig };

let state: JobState;
/** All that was decided, as the log keeps it. */
let log: { readonly now: number; readonly decisions: readonly Decision[] }[];

const applyTo = (target: JobState, decisions: readonly Decision[], now: number): void => {
  applyDecisions(target, decisions, {
    now: at(now),
    openStage: (stage) => {
      openStage(target, stage, [], at(now));
    },
  });
};

function tick(now: number, more: object = {}, settings: typeof config = config): TickDecision {
  const decided = decideTick(state, at(now), settings, { slots: 100, cancelRequested: false, ...more }, rng);
  applyTo(state, decided.decisions, now);
  log.push({ now, decisions: decided.decisions });
  return decided;
}

const cancels = ({ decisions }: TickDecision): string[] =>
  decisions.flatMap((each) => (each.kind === 'cancel' ? [`${each.attemptId} ${each.reason}`] : []));
const launches = ({ decisions }: TickDecision): string[] =>
  decisions.flatMap((each) => (each.kind === 'launch' ? [`${each.attemptId} ${each.reason}`] : []));
const runs = (id: string, bytesRead: number, now = 10): void => {
  applyAttempt(state, attemptRecord(id, 'running', now, { progress: progress(bytesRead) }), at(now));
};

const shapes = [
  { name: 'map', tasks: 3, upstream: [], sourceBytes: [3, 2, 1] },
  { name: 'reduce', tasks: 2, upstream: [0], sourceBytes: [] },
];

/** Three maps of three copies each, all launched, and two reducers that read them. */
beforeEach(() => {
  state = createJobState(shapes);
  log = [];
  tick(0);
  const answer = { stage: 0, clones: { copies: 3, tasks: 3 }, reason: undefined, facts: {} };
  expect(launches(tick(1, { clones: [answer] }))).toHaveLength(9);
});

describe('a stage that has lost its clones', () => {
  it('goes on with the most advanced copy of each task', () => {
    runs('map/0/0', 10);
    runs('map/0/1', 30);
    runs('map/0/2', 20);
    runs('map/1/2', 0);
    // Nothing of the third task has claimed itself: the original stays.
    const decided = tick(20, { clonesTaken: taken });
    expect(decided.decisions[0]).toEqual({ kind: 'preempt-clones', stage: 0, by, facts });
    expect(cancels(decided).toSorted()).toEqual([
      'map/0/0 preempted',
      'map/0/2 preempted',
      'map/1/0 preempted',
      'map/1/1 preempted',
      'map/2/1 preempted',
      'map/2/2 preempted',
    ]);
    const left = [...state.live].filter((each) => !each.cancelOrdered).map(({ id }) => id);
    expect(left.toSorted()).toEqual(['map/0/1', 'map/1/2', 'map/2/0']);
  });

  it('never stops the last live copy of a task, nor what is to stop already', () => {
    for (const id of ['map/0/0', 'map/0/1']) {
      applyAttempt(state, attemptRecord(id, 'failed', 10), at(10));
    }
    expect(cancels(tick(20, { clonesTaken: taken })).filter((each) => each.startsWith('map/0'))).toEqual([]);
  });

  it('counts no copy that is given up in the same tick as the one that stays', () => {
    const impatient = { ...config, claimLeaseMs: durationMs(100) };
    runs('map/0/1', 0, 150);
    const decided = tick(200, { clonesTaken: taken }, impatient);
    // The others never claimed themselves. Of the other tasks all copies are lost, and none is told to stop.
    expect(decided.decisions.filter(({ kind }) => kind === 'lose')).toHaveLength(8);
    expect(cancels(decided)).toEqual([]);
  });

  it('learns it once', () => {
    tick(20, { clonesTaken: taken });
    expect(tick(21, { clonesTaken: taken }).decisions).toEqual([]);
  });

  it('is charged nothing any more and is owed no copies', () => {
    runs('map/0/0', 1);
    runs('map/0/1', 2);
    expect(chargeLeft(stageAt(state, 0), 'all-copies')).toBe(9);
    tick(20, { clonesTaken: taken });
    // The copy that has claimed itself works until it learns of its order; the others are gone.
    expect([...state.live].map(({ id }) => id).toSorted()).toEqual([
      'map/0/0',
      'map/0/1',
      'map/1/0',
      'map/2/0',
    ]);
    expect(chargeLeft(stageAt(state, 0), 'all-copies')).toBe(0);
    expect([owedClones(state.stages), slotDemand(state)]).toEqual([0, 4]);
  });

  it('has each task launched that had no slot yet, once', () => {
    state = createJobState(shapes);
    tick(0);
    const answer = { stage: 0, clones: { copies: 3, tasks: 3 }, reason: undefined, facts: {} };
    expect(launches(tick(1, { clones: [answer], slots: 2 }))).toHaveLength(2);
    tick(2, { clonesTaken: taken, slots: 2 });
    expect([owedClones(state.stages), slotDemand(state)]).toEqual([0, 3]);
    expect(launches(tick(3, { slots: 9 }))).toEqual(['map/2/0 first']);
    expect(launches(tick(4, { slots: 9 }))).toEqual([]);
  });

  it('tells the others in later ticks where one tick is too short', () => {
    const told: string[] = [];
    for (let now = 20; now < 30; now++) {
      const decided = tick(now, { clonesTaken: taken }, { ...config, decisionsPerTick: 2 });
      expect(decided.decisions.length).toBeLessThanOrEqual(2);
      told.push(...cancels(decided));
    }
    expect(told.toSorted()).toEqual(
      [0, 1, 2].flatMap((task) => [`map/${task}/1 preempted`, `map/${task}/2 preempted`]),
    );
  });

  it('is treated by the other policy from then on, whose backups are not clones', () => {
    const spark = policyConfigSchema.parse({
      dolly: { admission: 'preemption', otherwise: 'late' },
      late: { minAgeMs: 0, speculativeCap: 1, slowNodeThreshold: 0 },
    });
    const settings = { ...config, policyConfig: spark };
    for (const task of [0, 1, 2]) runs(`map/${task}/0`, 0, 10);
    tick(20, { clonesTaken: taken }, settings);
    for (const id of ['map/0/0', 'map/1/0']) runs(id, 90, 1_000);
    runs('map/2/0', 1, 1_000);
    expect(launches(tick(1_001, {}, settings))).toEqual(['map/2/3 backup']);
    expect(cancels(tick(1_002, {}, settings))).toEqual([]);
  });

  it('does not keep losers at work for readers, who are not cloned then', () => {
    state = createJobState(shapes);
    tick(0);
    const clones = { copies: 2, tasks: 3, waitMs: 60_000 };
    tick(1, { clones: [{ stage: 0, clones, reason: undefined, facts: {} }] });
    for (const copy of [0, 1]) runs(`map/0/${copy}`, 10);
    applyResult(state, resultOf('map/0/0', 15), at(15));
    applyAttempt(state, attemptRecord('map/0/0', 'done', 15), at(15));
    expect(tick(16).decisions).toEqual([]);
    expect(cancels(tick(17, { clonesTaken: taken })).toSorted()).toEqual([
      'map/0/1 sibling-won',
      'map/1/1 preempted',
      'map/2/1 preempted',
    ]);
    for (const task of [1, 2]) applyResult(state, resultOf(`map/${task}/0`, 20), at(20));
    tick(21);
    const outlook = {
      config: policyConfig.dolly,
      stragglerProbability: 0.1,
      copiesSeen: 0,
      totalSlots: 1_000,
      waitMs: 0,
      minSamples: 3,
      hasSlack: false,
    };
    expect(cloneWishes(state, outlook)).toEqual([]);
  });

  it('stops losers among backups, too, though others had been kept for readers', () => {
    state = createJobState(shapes);
    tick(0);
    const clones = { copies: 2, tasks: 3, waitMs: 60_000 };
    tick(1, { clones: [{ stage: 0, clones, reason: undefined, facts: {} }] });
    tick(2, { clonesTaken: taken });
    addAttempt(state, attempt('map/0/2'), 'backup', at(3));
    applyResult(state, resultOf('map/0/0', 15), at(15));
    applyAttempt(state, attemptRecord('map/0/0', 'done', 15), at(15));
    expect(cancels(tick(16))).toEqual(['map/0/2 sibling-won']);
  });

  it('is the same when its log is replayed, once or twice over', () => {
    runs('map/0/1', 30);
    tick(20, { clonesTaken: taken });
    for (const times of [1, 2]) {
      const replayed = createJobState(shapes);
      for (const { now, decisions } of log) {
        for (let time = 0; time < times; time++) applyTo(replayed, decisions, now);
      }
      expect(stageAt(replayed, 0).clones).toEqual({ copies: 3, tasks: 3, preempted: true });
      const told = taskAt(replayed, 0, 0).attempts.filter(({ cancelOrdered }) => cancelOrdered);
      expect(told.map(({ id }) => id)).toEqual(['map/0/0', 'map/0/2']);
    }
  });
});

describe('a job whose admission is by preemption', () => {
  it('says how large it is, and how many slots its clones would free', () => {
    const fresh = createJobState(shapes);
    openStage(fresh, 0, [], at(0));
    const wish = (config: object) =>
      cloneWishes(fresh, {
        config: { ...policyConfig.dolly, ...config },
        stragglerProbability: 0.1,
        copiesSeen: 0,
        minSamples: 3,
        hasSlack: false,
        totalSlots: 1_000,
        waitMs: 0,
      })[0]?.request;
    // Three maps with two copies each; five tasks in all.
    expect(wish({})).toEqual({
      phase: 'map',
      unitSlots: 6,
      leastUnits: 1,
      mostUnits: 1,
      besideSlots: 0,
      jobTasks: 5,
      addedUnitSlots: 3,
    });
    expect(wish({ charge: 'extra-copies' })).toMatchObject({ unitSlots: 3, addedUnitSlots: 3, jobTasks: 5 });
    expect(wish({ admission: 'all-or-nothing' })).not.toHaveProperty('jobTasks');
  });
});
