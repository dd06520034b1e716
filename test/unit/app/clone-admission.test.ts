import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryStragglerStatistics } from '../../../src/adapters/memory/memory-straggler-statistics.ts';
import { listJournal } from '../../../src/app/list-journal.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { finishJob } from '../../../src/app/finish-job.ts';
import { replayJob } from '../../../src/app/replay-job.ts';
import { runScheduler } from '../../../src/app/run-scheduler.ts';
import type { SchedulerDeps } from '../../../src/app/scheduler-deps.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import type { AttemptPayload } from '../../../src/contracts/payloads.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import type { Decision, Refusal } from '../../../src/core/model/decision.ts';
import { OtherPolicy } from '../../../src/core/replay/compare-policy.ts';
import type { CapacityLedger } from '../../../src/app/capacity-ledger.ts';
import { progress, ScriptedSystem } from '../../support/scripted-job.ts';

const spec: JobSpecInput = {
  name: 'words',
  policy: 'dolly',
  stages: [
    { name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'], splitBytes: 4 }], partitions: 2 },
    { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
  ],
};

let system: ScriptedSystem;
let jobId: JobId;
/** Four maps and two reducers; two clones of each by p = 10 % and ε = 5 %, as the defaults say. */
const maps = ['map/0', 'map/1', 'map/2', 'map/3'];
const reduces = ['reduce/0', 'reduce/1'];
const copies = (tasks: readonly string[]): string[] => tasks.flatMap((task) => [`${task}/0`, `${task}/1`]);

beforeEach(async () => {
  system = new ScriptedSystem();
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one two three'));
  ({ jobId } = await submitJob(system, { spec, clientToken: 'token' }));
  await planJob(system, jobId);
});

const withSlots = (totalSlots: number, ledger: CapacityLedger = system.ledger): SchedulerDeps => ({
  ...system.deps,
  ledger,
  config: { ...system.deps.config, totalSlots },
});
const stay = (owner: string) => ({ owner, until: later(system.clock.now(), durationMs(60_000)) });
const schedule = (deps: SchedulerDeps, owner = 'first') =>
  system.whileTimePasses(runScheduler(deps, jobId, stay(owner)));

async function logged(): Promise<(Decision | Refusal)[]> {
  const entries: (Decision | Refusal)[] = [];
  for await (const { decisions } of system.decisions.read(jobId)) entries.push(...(decisions as Decision[]));
  return entries;
}

/** A ledger that stops the scheduler's world at a call: what it did before has happened, what follows has not. */
function dyingAt(call: 'admitClones' | 'releaseClones', moment: 'before' | 'after'): CapacityLedger {
  const dead = new Error('the scheduler died');
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
    preemptions: (...args) => system.ledger.preemptions(...args),
    admitClones: async (...args) => {
      if (call === 'admitClones' && moment === 'before') throw dead;
      const answer = await system.ledger.admitClones(...args);
      if (call === 'admitClones') throw dead;
      return answer;
    },
    releaseClones: async (...args) => {
      if (call === 'releaseClones' && moment === 'before') throw dead;
      await system.ledger.releaseClones(...args);
      if (call === 'releaseClones') throw dead;
    },
  };
}

describe('a job that clones', () => {
  it('launches all copies of a phase, charges them, and gives them back as they end', async () => {
    const seen: [number, number][] = [];
    system.onLaunch = async (payload: AttemptPayload) => {
      const { cloneSlots, usedSlots } = await system.ledger.view();
      seen.push([cloneSlots, usedSlots]);
      await system.succeed(payload);
      return 'accepted';
    };
    expect(await schedule(withSlots(160))).toEqual({ jobId, outcome: 'finish' });
    expect(system.launches.toSorted()).toEqual([...copies(maps), ...copies(reduces)]);
    expect(seen.slice(0, 8)).toEqual(Array.from({ length: 8 }, () => [8, 8]));
    expect(seen.slice(8)).toEqual(Array.from({ length: 4 }, () => [4, 4]));
    await finishJob(system.deps, jobId);
    expect(await system.ledger.view()).toMatchObject({ usedSlots: 0, cloneSlots: 0, grants: {} });
    expect(await system.jobs.load(jobId)).toMatchObject({ attempts: { launched: 12, clones: 6 } });
  });

  it('logs by what numbers it was admitted, or why it was not', async () => {
    await schedule(withSlots(160));
    const [map] = (await logged()).filter(({ kind }) => kind === 'clone-stage');
    expect(map).toEqual({
      kind: 'clone-stage',
      stage: 0,
      copies: 2,
      tasks: 4,
      waitMs: 2_500,
      facts: {
        stragglerProbability: 0.1,
        tasks: 4,
        copies: 2,
        copiesWanted: 2,
        waitMs: 2_500,
        chargedSlots: 8,
        totalSlots: 160,
        usedSlots: 0,
        cloneSlots: 0,
      },
    });
  });

  it('is decided on by its own policy again as it was, and without clones by one that makes none', async () => {
    await schedule({ ...withSlots(160), journals: system.journals });
    const beside = async (policy: 'dolly' | 'outrider' | 'none') => {
      const other = new OtherPolicy(policy);
      await replayJob((cursor) => listJournal(system, jobId, { cursor }), other.onTick);
      const { ticks, would, wouldNot } = other.comparison();
      expect(ticks).toBeGreaterThan(0);
      return [would, wouldNot].map((told) => told.map(({ attemptId, reason }) => `${attemptId} ${reason}`));
    };
    expect(await beside('dolly')).toEqual([[], []]);
    expect(await beside('outrider')).toEqual([[], []]);
    const clones = [...maps, ...reduces].map((task) => `${task}/1 clone`);
    const [would, wouldNot] = await beside('none');
    expect(would).toEqual([]);
    expect(wouldNot).toEqual(clones);
  });

  it('writes the ledger only where that lowers the charge', async () => {
    const lowered: boolean[] = [];
    const charged = async (): Promise<number> => (await system.ledger.view()).cloneSlots;
    const ledger: CapacityLedger = {
      ...dyingAt('releaseClones', 'after'),
      admitClones: (...args) => system.ledger.admitClones(...args),
      releaseClones: async (...args) => {
        const before = await charged();
        await system.ledger.releaseClones(...args);
        lowered.push((await charged()) < before);
      },
    };
    expect(await schedule(withSlots(160, ledger))).toEqual({ jobId, outcome: 'finish' });
    expect(lowered.length).toBeGreaterThan(0);
    expect(new Set(lowered)).toEqual(new Set([true]));
  });

  it('tells people what was cloned', async () => {
    const told = (): string[] => system.logged.filter((event) => event.includes('clone'));
    await schedule(withSlots(160));
    expect(told()).toEqual(['cloned', 'cloned']);
  });

  it('runs without clones where the budget is one slot short, and says so', async () => {
    await schedule(withSlots(159));
    expect(system.logged.filter((event) => event.includes('clone'))).toEqual(['not-cloned']);
    expect(system.launches.toSorted()).toEqual([...maps, ...reduces].map((task) => `${task}/0`));
    expect((await logged()).filter(({ kind }) => kind === 'refuse')).toEqual([
      {
        kind: 'refuse',
        taskId: 'map/0',
        reason: 'clone-budget',
        facts: {
          stragglerProbability: 0.1,
          tasks: 4,
          copies: 2,
          copiesWanted: 2,
          waitMs: 2_500,
          chargedSlots: 0,
          totalSlots: 159,
          usedSlots: 0,
          cloneSlots: 0,
        },
      },
    ]);
  });

  it('runs without clones in a busy cluster', async () => {
    await system.ledger.resize('other-000000000000' as JobId, 121, {
      totalSlots: 160,
      now: system.clock.now(),
      length: durationMs(1e9),
    });
    await schedule(withSlots(160));
    expect((await logged()).filter(({ kind }) => kind === 'refuse')).toMatchObject([
      { reason: 'utilization', facts: { usedSlots: 121 } },
    ]);
  });

  it('gives up late copies for the clones that they would serve where the budget does not suffice for both', async () => {
    const [map, reduce] = spec.stages;
    if (map === undefined || reduce === undefined) throw new Error('no stages');
    const wide = { ...spec, stages: [{ ...map, partitions: 4 }, reduce] };
    ({ jobId } = await submitJob(system, { spec: wide, clientToken: 'wide' }));
    await planJob(system, jobId);
    const charged: number[] = [];
    system.onLaunch = async (payload) => {
      charged.push((await system.ledger.view()).cloneSlots);
      // Clones of maps never end by themselves.
      if (/^map\/\d\/1$/.test(payload.attemptId)) await system.claim(payload);
      else await system.succeed(payload);
      return 'accepted';
    };
    // β·C is 8: four maps of two copies, or four reduces, but no four reduces beside four late maps.
    expect(await schedule(withSlots(160))).toEqual({ jobId, outcome: 'finish' });
    expect(system.launches.filter((id) => id.startsWith('reduce')).toSorted()).toEqual(
      copies(['reduce/0', 'reduce/1', 'reduce/2', 'reduce/3']),
    );
    expect(Math.max(...charged)).toBe(8);
    const clonings = (await logged()).filter((each) => each.kind === 'clone-stage');
    expect(clonings.map(({ stage, waitMs }) => [stage, waitMs])).toEqual([
      [0, 2_500],
      [1, undefined],
    ]);
  });

  it("needs only one of a task's copies", async () => {
    system.onLaunch = async (payload) => {
      // All originals of maps hang; their clones do the work.
      if (/^map\/\d\/0$/.test(payload.attemptId)) await system.claim(payload);
      else await system.succeed(payload);
      return 'accepted';
    };
    expect(await schedule(withSlots(160))).toEqual({ jobId, outcome: 'finish' });
    const cancelled = (await logged()).flatMap((each) =>
      each.kind === 'cancel' ? [`${each.attemptId} ${each.reason}`] : [],
    );
    expect(cancelled.toSorted()).toEqual(maps.map((task) => `${task}/0 sibling-won`));
  });

  it('publishes without waiting for copies that lost, and cleans up once they have stopped', async () => {
    const losers: AttemptPayload[] = [];
    system.onLaunch = async (payload) => {
      if (/^reduce\/\d\/0$/.test(payload.attemptId)) {
        await system.claim(payload);
        losers.push(payload);
      } else await system.succeed(payload);
      return 'accepted';
    };
    const deps = withSlots(160);
    expect(await schedule(deps)).toEqual({ jobId, outcome: 'finish' });
    const finishing = finishJob(deps, jobId, durationMs(60_000)).then(() => 'cleaned up');
    await expect.poll(async () => (await system.jobs.load(jobId))?.state).toBe('succeeded');
    expect(losers).toHaveLength(2);
    expect((await system.jobs.load(jobId))?.stages.map(({ running }) => running)).toEqual([0, 0]);
    expect((await system.ledger.view()).usedSlots).toBeGreaterThan(0);
    for (const { jobId: id, shards, attemptId } of losers) {
      expect(
        await system.attempts.report({ jobId: id, shards }, attemptId, progress(1), system.clock.now()),
      ).toBe('cancel');
      const end = { state: 'cancelled', progress: progress(1) } as const;
      await system.attempts.end({ jobId: id, shards }, attemptId, end, system.clock.now());
    }
    await system.clock.advance(250);
    expect(await finishing).toBe('cleaned up');
    expect(await system.ledger.view()).toMatchObject({ usedSlots: 0, cloneSlots: 0, grants: {} });
  });

  it('counts a straggler that lost once it is known how far it was', async () => {
    const stragglers = new MemoryStragglerStatistics();
    let loser: AttemptPayload | undefined;
    system.onLaunch = async (payload) => {
      if (payload.attemptId === 'reduce/1/0') {
        await system.claim(payload);
        loser = payload;
      } else await system.succeed(payload);
      return 'accepted';
    };
    const deps = { ...withSlots(160), stragglers };
    await schedule(deps);
    const finishing = finishJob(deps, jobId, durationMs(60_000));
    await expect.poll(async () => (await system.jobs.load(jobId))?.state).toBe('succeeded');
    expect(await stragglers.recent(system.clock.now())).toEqual({ attempts: 0, stragglers: 0 });
    if (loser === undefined) throw new Error('nobody lost');
    const end = { state: 'cancelled', progress: progress(1) } as const;
    await system.clock.advance(100);
    await system.attempts.end(system.space(loser), loser.attemptId, end, system.clock.now());
    await system.clock.advance(250);
    await finishing;
    // Eight maps and four reduces ended; the one that was told to stop had read a hundredth.
    expect(await stragglers.recent(system.clock.now())).toEqual({ attempts: 12, stragglers: 1 });
  });

  it('has clones when a launch was throttled, too', async () => {
    let refusals = 8; // Every launch of the first tick.
    system.onLaunch = async (payload) => {
      if (refusals-- > 0) return 'throttled';
      await system.succeed(payload);
      return 'accepted';
    };
    expect(await schedule(withSlots(160))).toEqual({ jobId, outcome: 'finish' });
    const { attempts } = await system.attempts.all({ jobId, shards: 1 });
    expect(attempts.map(({ attemptId }) => attemptId).toSorted()).toEqual([
      ...copies(maps),
      ...copies(reduces),
    ]);
    expect(await system.jobs.load(jobId)).toMatchObject({ attempts: { launched: 12, clones: 6, lost: 0 } });
    // Originals, too, are launched again at once, under their own ids.
    expect(copies(maps).map((id) => system.launches.filter((each) => each === id).length)).toEqual(
      Array.from({ length: 8 }, () => 2),
    );
    await finishJob(system.deps, jobId);
    expect(await system.ledger.view()).toMatchObject({ usedSlots: 0, cloneSlots: 0 });
  });
});

describe('a scheduler that dies', () => {
  it.each([
    ['admitClones', 'before'],
    ['admitClones', 'after'],
    ['releaseClones', 'before'],
    ['releaseClones', 'after'],
  ] as const)(
    'at %s, %s the write, leaves a job that clones once and gives all back',
    async (call, moment) => {
      await expect(schedule(withSlots(160, dyingAt(call, moment)))).rejects.toThrow('the scheduler died');
      expect(await schedule(withSlots(160), 'second')).toEqual({ jobId, outcome: 'finish' });
      // Launches may be repeated after a crash, but under the same ids.
      expect([...new Set(system.launches)].toSorted()).toEqual([...copies(maps), ...copies(reduces)]);
      expect((await system.ledger.view()).cloneSlots).toBe(0);
      await finishJob(system.deps, jobId);
      expect(await system.ledger.view()).toMatchObject({ usedSlots: 0, cloneSlots: 0, grants: {} });
    },
  );

  it('for good leaves nothing to the cluster once it has been silent for long', async () => {
    await expect(schedule(withSlots(160, dyingAt('admitClones', 'after')))).rejects.toThrow(
      'the scheduler died',
    );
    expect((await system.ledger.view()).cloneSlots).toBe(8);
    const other = 'other-000000000000' as JobId;
    const resize = (wanted: number, afterMs: number) =>
      system.ledger.resize(other, wanted, {
        totalSlots: 160,
        now: later(system.clock.now(), durationMs(afterMs)),
        length: durationMs(1_000),
      });
    for (let afterMs = 0; afterMs <= 1_500; afterMs += 250) await resize(160, afterMs);
    await resize(1, 1_500);
    expect(await system.ledger.view()).toMatchObject({ usedSlots: 1, cloneSlots: 0 });
  });
});
