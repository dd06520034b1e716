import { beforeEach, expect, it } from 'vitest';
import { enterJob } from '../../../src/app/enter-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { runTick } from '../../../src/app/tick-job.ts';
import { type JobId, taskOf } from '../../../src/contracts/ids.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import type { Decision } from '../../../src/core/model/decision.ts';
import { stageAt } from '../../../src/core/model/job-state.ts';
import { attempt } from '../../support/job-states.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

let system: ScriptedSystem;
let jobId: JobId;
let version: number;

/** What the scheduler before decides now, with what its entry has become. */
async function decide(...decisions: readonly Decision[]): Promise<string> {
  version += 1;
  return system.decisions.append(jobId, { version, epoch: 1, at: system.clock.now(), decisions });
}

const launch = (id: string): Decision => ({ kind: 'launch', attemptId: attempt(id), reason: 'first' });

async function commit(id: string): Promise<void> {
  const attemptId = attempt(id);
  await system.attempts.commit(
    { jobId, shards: 1 },
    {
      ...{ taskId: taskOf(attemptId), attemptId, committedAt: system.clock.now(), bytesIn: 1, bytesOut: 10 },
      ...{ partitions: { lengths: [10], crcs: [1] }, recordsIn: 2, recordsOut: 1, counters: {} },
    },
  );
}

/** A scheduler takes over from one that lives and does `meanwhile` once the results were read, before the log is. */
function takeOver(meanwhile: () => Promise<void>) {
  const decisions = Object.assign(Object.create(system.decisions) as typeof system.decisions, {
    read: async function* (id: JobId) {
      await meanwhile();
      yield* system.decisions.read(id);
    },
  });
  const until = later(system.clock.now(), durationMs(600_000));
  return enterJob({ ...system.deps, decisions }, jobId, { owner: 'next', until });
}

beforeEach(async () => {
  system = new ScriptedSystem();
  version = 0;
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.alloc(2_000, 'word\n'));
  ({ jobId } = await submitJob(system, {
    spec: {
      name: 'words',
      policy: 'none',
      stages: [
        {
          ...{ name: 'map', operator: 'tokenize', partitions: 1 },
          inputs: [{ s3: ['s3://data/in/'], splitBytes: 1_000 }],
        },
        { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
      ],
    },
  }));
  await planJob(system.deps, jobId);
  await decide({ kind: 'open-stage', stage: 0 });
  await decide(launch('map/0/0'), launch('map/1/0'));
  await commit('map/0/0');
});

it('follows a stage that its living predecessor opened by results which came while it was taking over', async () => {
  const session = await takeOver(async () => {
    await commit('map/1/0');
    expect(await decide({ kind: 'open-stage', stage: 1 })).toBe('appended');
    expect(await decide(launch('reduce/0/0'))).toBe('appended');
  });
  expect(session.state.stages.map(({ state }) => state)).toEqual(['done', 'open']);
  expect(stageAt(session.state, 1).tasks.map(({ inputBytes }) => inputBytes)).toEqual([20]);
  // From here on the one before decides nothing more.
  expect(session.version).toBe(5);
  expect(await decide(launch('reduce/0/1'))).toBe('stale');
});

it('is not overwritten in what it tells of the job by one before it that has slept', async () => {
  system.onLaunch = () => Promise.resolve('accepted');
  const until = later(system.clock.now(), durationMs(600_000));
  const before = await enterJob(system.deps, jobId, { owner: 'first', until });
  await commit('map/1/0');
  const after = await enterJob(system.deps, jobId, { owner: 'next', until, replaces: 'first' });
  await runTick(system.deps, after);
  const told = async () => (await system.jobs.load(jobId))?.stages.map(({ done }) => done);
  expect(await told()).toEqual([2, 0]);
  // It had read what there was when it fell asleep.
  const attempts = Object.assign(Object.create(system.attempts) as typeof system.attempts, {
    told: () => Promise.resolve({ notes: [] }),
    read: () => Promise.resolve({ attempts: [], results: [], replicas: [] }),
  });
  expect((await runTick({ ...system.deps, attempts }, before)).decisions).toEqual([]);
  expect(await told()).toEqual([2, 0]);
});

it('refuses a log that opens a stage although results of its input are nowhere', async () => {
  const taking = takeOver(async () => {
    await decide({ kind: 'open-stage', stage: 1 });
  });
  await expect(taking).rejects.toMatchObject({
    name: 'UnreadableRecord',
    message:
      `entry 3 of the decision log of job ${jobId} cannot be followed: ` +
      'a stage opened before its input was complete',
  });
});
