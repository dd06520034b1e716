import { beforeEach, describe, expect, it } from 'vitest';
import { finishJob } from '../../../src/app/finish-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { runScheduler } from '../../../src/app/run-scheduler.ts';
import type { SchedulerDeps } from '../../../src/app/scheduler-deps.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { attemptIdOf, attemptParts, type JobId, taskOf } from '../../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import type { AttemptPayload } from '../../../src/contracts/payloads.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import type { Decision, Refusal } from '../../../src/core/model/decision.ts';
import type { CapacityLedger } from '../../../src/app/capacity-ledger.ts';
import type { DecisionLog } from '../../../src/ports/job-store.ts';
import { progress, ScriptedSystem } from '../../support/scripted-job.ts';

const spec = (folder: string, partitions: number): JobSpecInput => ({
  name: 'words',
  policy: 'dolly',
  policyConfig: { dolly: { admission: 'preemption', assignment: 'cc', otherwise: 'none' } },
  stages: [
    {
      name: 'map',
      operator: 'tokenize',
      inputs: [{ s3: [`s3://data/${folder}/`], splitBytes: 4 }],
      partitions,
    },
    { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
  ],
});

let system: ScriptedSystem;
/** Four maps and two reducers: its maps are charged eight slots. */
let large: JobId;
/** One map and one reducer: two slots each. */
let small: JobId;
/** Whether workers of the large job's maps may come to an end. */
let mayEnd: boolean;
let workers: Promise<void>[];
const maps = [0, 1, 2, 3];

/** A map of the large job: reports until it is told to stop, or may end. Clones are ahead of originals. */
async function work(payload: AttemptPayload): Promise<void> {
  const { attemptId } = payload;
  const space = system.space(payload);
  if ((await system.claim(payload)) === 'refused') return;
  const read = progress(attemptParts(attemptId).attempt === 0 ? 40 : 60);
  for (let reports = 0; reports < 1_000; reports++) {
    if ((await system.attempts.report(space, attemptId, read, system.clock.now())) === 'cancel') {
      await system.attempts.end(space, attemptId, { state: 'cancelled', progress: read }, system.clock.now());
      return;
    }
    if (mayEnd) break;
    await system.clock.sleep(durationMs(500));
  }
  await system.attempts.commit(space, {
    taskId: taskOf(attemptId),
    attemptId,
    committedAt: system.clock.now(),
    partitions: { lengths: [10, 0], crcs: [1, 0] },
    bytesIn: 100,
    bytesOut: 10,
    recordsIn: 2,
    recordsOut: 1,
    counters: {},
  });
  await system.attempts.end(space, attemptId, { state: 'done', progress: read }, system.clock.now());
}

beforeEach(async () => {
  system = new ScriptedSystem();
  mayEnd = false;
  workers = [];
  await system.objects.write({ bucket: 'data', key: 'large/a' }, Buffer.from('one two three'));
  await system.objects.write({ bucket: 'data', key: 'small/a' }, Buffer.from('one'));
  ({ jobId: large } = await submitJob(system, { spec: spec('large', 2), clientToken: 'large' }));
  ({ jobId: small } = await submitJob(system, { spec: spec('small', 1), clientToken: 'small' }));
  await planJob(system, large);
  await planJob(system, small);
  system.onLaunch = async (payload) => {
    // β·C is never exceeded, whoever launches.
    expect((await system.ledger.view()).cloneSlots).toBeLessThanOrEqual(8);
    if (payload.jobId === large && payload.attemptId.startsWith('map')) workers.push(work(payload));
    else await system.succeed(payload);
    return 'accepted';
  };
});

/** β·C is 8 slots, and τ·C 128. */
const schedule = (jobId: JobId, owner: string, deps: Partial<SchedulerDeps> = {}) =>
  runScheduler({ ...system.deps, ...deps, config: { ...system.deps.config, totalSlots: 160 } }, jobId, {
    owner,
    until: later(system.clock.now(), durationMs(60_000)),
  });

async function logged(jobId: JobId): Promise<(Decision | Refusal)[]> {
  const entries: (Decision | Refusal)[] = [];
  for await (const { decisions } of system.decisions.read(jobId)) entries.push(...(decisions as Decision[]));
  return entries;
}

async function until(happens: () => Promise<boolean>): Promise<void> {
  for (let looks = 0; looks < 1_000; looks++) {
    if (await happens()) return;
    await system.clock.sleep(durationMs(100));
  }
  throw new Error('it did not happen');
}

const runningMaps = async (): Promise<number> => {
  const { attempts } = await system.attempts.all({ jobId: large, shards: 1 });
  return attempts.filter(({ state }) => state === 'running').length;
};

/** Runs the large job, by a second scheduler once the first dies, while the small one comes and goes. */
async function runBoth(deps: Partial<SchedulerDeps> = {}): Promise<unknown> {
  let death: unknown;
  const largeOne = async (): Promise<void> => {
    await schedule(large, 'first', deps).catch(async (cause: unknown) => {
      death = cause;
      await schedule(large, 'second');
    });
  };
  const smallOne = async (): Promise<void> => {
    await until(async () => (await runningMaps()) === 8);
    await schedule(small, 'small');
    await finishJob(system.deps, small);
    await until(async () => (await runningMaps()) <= 4);
    mayEnd = true;
  };
  await system.whileTimePasses(Promise.all([largeOne(), smallOne()]));
  await system.whileTimePasses(Promise.all(workers));
  return death;
}

async function expectPreemptedOnce(): Promise<void> {
  const { attempts, results } = await system.attempts.all({ jobId: large, shards: 1 });
  const states = Object.fromEntries(attempts.map(({ attemptId, state }) => [attemptId, state]));
  expect(states).toEqual({
    ...Object.fromEntries(
      maps.flatMap((task) => [
        [`map/${task}/0`, 'cancelled'],
        [`map/${task}/1`, 'done'],
      ]),
    ),
    // Nothing downstream of what is not cloned any more has clones.
    'reduce/0/0': 'done',
    'reduce/1/0': 'done',
  });
  expect(results.map(({ attemptId }) => attemptId).toSorted()).toEqual([
    ...maps.map((task) => `map/${task}/1`),
    'reduce/0/0',
    'reduce/1/0',
  ]);
  await finishJob(system.deps, large);
  expect(await system.ledger.view()).toMatchObject({ usedSlots: 0, cloneSlots: 0, grants: {} });
}

describe('a large job whose clones make room for a small one', () => {
  it('stops the copies that are behind, goes on with the others, and both end', async () => {
    expect(await runBoth()).toBeUndefined();
    await expectPreemptedOnce();
    expect(system.launches.filter((id) => id === 'map/0/0' || id === 'map/0/1')).toHaveLength(4);
    expect(await system.jobs.load(small)).toMatchObject({ attempts: { launched: 4, clones: 2 } });
  });

  it('says who took them, and the small job how much it took', async () => {
    await runBoth();
    const ofLarge = await logged(large);
    expect(ofLarge.filter(({ kind }) => kind === 'preempt-clones')).toEqual([
      { kind: 'preempt-clones', stage: 0, by: small, facts: { jobTasks: 6, byTasks: 2, slots: 8 } },
    ]);
    const cancels = ofLarge.flatMap((each) =>
      each.kind === 'cancel' ? [`${each.attemptId} ${each.reason}`] : [],
    );
    expect(cancels.toSorted()).toEqual(maps.map((task) => `map/${task}/0 preempted`));
    expect((await logged(small)).find(({ kind }) => kind === 'clone-stage')).toMatchObject({
      copies: 2,
      tasks: 1,
      facts: {
        stragglerProbability: 0.1,
        tasks: 1,
        copies: 2,
        usedSlots: 8,
        cloneSlots: 8,
        chargedSlots: 2,
        preemptedPhases: 1,
        preemptedSlots: 8,
      },
    });
  });

  it('keeps its clones where the small job has another admission', async () => {
    ({ jobId: small } = await submitJob(system, {
      spec: { ...spec('small', 1), policyConfig: { dolly: { assignment: 'cc', otherwise: 'none' } } },
      clientToken: 'other',
    }));
    await planJob(system, small);
    const both = Promise.all([
      schedule(large, 'first'),
      (async () => {
        await until(async () => (await runningMaps()) === 8);
        await schedule(small, 'small');
        await finishJob(system.deps, small);
        mayEnd = true;
      })(),
    ]);
    await system.whileTimePasses(both);
    expect(await system.jobs.load(small)).toMatchObject({ attempts: { launched: 2, clones: 0 } });
    expect((await logged(large)).filter(({ kind }) => kind === 'preempt-clones')).toEqual([]);
  });
});

describe('the ledger', () => {
  it('is told how many slots the clones would free, as they end', async () => {
    const seen: unknown[] = [];
    const look = async (): Promise<void> => {
      const { clones, addedSlots } = (await system.ledger.view()).grants[large] ?? {};
      seen.push([clones, addedSlots]);
    };
    const both = Promise.all([
      schedule(large, 'first'),
      (async () => {
        await until(async () => (await runningMaps()) === 8);
        await look();
        const failed = {
          state: 'failed',
          progress: progress(1),
          failure: { cause: 'user-code', message: '' },
        } as const;
        await system.attempts.end(
          { jobId: large, shards: 1 },
          attemptIdOf('map', 0, 0),
          failed,
          system.clock.now(),
        );
        await system.clock.sleep(durationMs(1_000));
        await look();
        mayEnd = true;
      })(),
    ]);
    await system.whileTimePasses(both);
    expect(seen).toEqual([
      [{ map: 8 }, { map: 4 }],
      [{ map: 7 }, { map: 3 }],
    ]);
  });

  it('is not asked for preemptions by a job with another admission', async () => {
    ({ jobId: large } = await submitJob(system, {
      spec: { ...spec('large', 2), policyConfig: { dolly: { assignment: 'cc', otherwise: 'none' } } },
      clientToken: 'other',
    }));
    await planJob(system, large);
    const ledger: CapacityLedger = {
      ...ledgerDyingAt('look'),
      preemptions: () => Promise.reject(new Error('it was asked')),
    };
    const both = Promise.all([
      schedule(large, 'first', { ledger }),
      (async () => {
        await until(async () => (await runningMaps()) === 8);
        await system.clock.sleep(durationMs(1_000));
        mayEnd = true;
      })(),
    ]);
    await system.whileTimePasses(both);
    expect(await system.jobs.load(large)).toMatchObject({ attempts: { launched: 12, clones: 6 } });
  });
});

const dead = new Error('the scheduler died');

/** A ledger that stops the world of the large job's scheduler at the moment when its clones are gone. */
function ledgerDyingAt(moment: 'look' | 'before release' | 'after release'): CapacityLedger {
  const isGone = async (): Promise<boolean> => Object.keys(await system.ledger.preemptions(large)).length > 0;
  return {
    resize: (...args) => system.ledger.resize(...args),
    release: (...args) => system.ledger.release(...args),
    view: () => system.ledger.view(),
    forget: (...args) => system.ledger.forget(...args),
    admitted: (...args) => system.ledger.admitted(...args),
    spendTokens: (...args) => system.ledger.spendTokens(...args),
    bid: (...args) => system.ledger.bid(...args),
    isAnyOwed: (jobId) => system.ledger.isAnyOwed(jobId),
    admitBackups: (...args) => system.ledger.admitBackups(...args),
    admitClones: (...args) => system.ledger.admitClones(...args),
    preemptions: async (...args) => {
      if (moment === 'look' && (await isGone())) throw dead;
      return system.ledger.preemptions(...args);
    },
    releaseClones: async (...args) => {
      const isMoment = moment !== 'look' && (await isGone());
      if (isMoment && moment === 'before release') throw dead;
      await system.ledger.releaseClones(...args);
      if (isMoment) throw dead;
    },
  };
}

/** A log whose writer dies before or after it has said that the clones are gone; nothing of that was done yet. */
function logDyingAt(moment: 'before' | 'after'): DecisionLog {
  return {
    read: (...args) => system.decisions.read(...args),
    append: async (jobId, entry) => {
      const isMoment = (entry.decisions as readonly Decision[]).some(({ kind }) => kind === 'preempt-clones');
      if (isMoment && moment === 'before') throw dead;
      const answer = await system.decisions.append(jobId, entry);
      if (isMoment) throw dead;
      return answer;
    },
  };
}

describe('a scheduler that dies', () => {
  it.each(['look', 'before release', 'after release'] as const)(
    'at its %s leaves a job that stops its clones once',
    async (moment) => {
      expect(await runBoth({ ledger: ledgerDyingAt(moment) })).toBe(dead);
      await expectPreemptedOnce();
    },
  );

  it.each(['before', 'after'] as const)(
    '%s it writes down that its clones are gone leaves a job that stops them once',
    async (moment) => {
      expect(await runBoth({ decisions: logDyingAt(moment) })).toBe(dead);
      await expectPreemptedOnce();
    },
  );

  it('after it took clones away has its successor find its own, and takes nothing more', async () => {
    let deaths = 0;
    const ledger: CapacityLedger = {
      ...ledgerDyingAt('look'),
      admitClones: async (...args) => {
        await system.ledger.admitClones(...args);
        deaths += 1;
        throw dead;
      },
    };
    const both = Promise.all([
      schedule(large, 'first'),
      (async () => {
        await until(async () => (await runningMaps()) === 8);
        await expect(schedule(small, 'small', { ledger })).rejects.toBe(dead);
        expect(await system.ledger.view()).toMatchObject({ cloneSlots: 2 });
        await schedule(small, 'next');
        await finishJob(system.deps, small);
        await until(async () => (await runningMaps()) <= 4);
        mayEnd = true;
      })(),
    ]);
    await system.whileTimePasses(both);
    await system.whileTimePasses(Promise.all(workers));
    expect(deaths).toBe(1);
    expect(await system.jobs.load(small)).toMatchObject({ attempts: { launched: 4, clones: 2 } });
    await expectPreemptedOnce();
  });
});
