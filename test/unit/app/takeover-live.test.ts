import { beforeEach, expect, it } from 'vitest';
import { enterJob } from '../../../src/app/enter-job.ts';
import { runTick } from '../../../src/app/tick-job.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { stageAt } from '../../../src/core/model/job-state.ts';
import { launch, Predecessor } from '../../support/predecessor.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

let system: ScriptedSystem;
let before: Predecessor;
let jobId: JobId;

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
  before = await Predecessor.ofWords(system, 1);
  ({ jobId } = before);
  await before.decide({ kind: 'open-stage', stage: 0 });
  await before.decide(launch('map/0/0'), launch('map/1/0'));
  await before.commit('map/0/0', 1);
});

it('follows a stage that its living predecessor opened by results which came while it was taking over', async () => {
  const session = await takeOver(async () => {
    await before.commit('map/1/0', 1);
    expect(await before.decide({ kind: 'open-stage', stage: 1 })).toBe('appended');
    expect(await before.decide(launch('reduce/0/0'))).toBe('appended');
  });
  expect(session.state.stages.map(({ state }) => state)).toEqual(['done', 'open']);
  expect(stageAt(session.state, 1).tasks.map(({ inputBytes }) => inputBytes)).toEqual([20]);
  // From here on the one before decides nothing more.
  expect(session.version).toBe(5);
  expect(await before.decide(launch('reduce/0/1'))).toBe('stale');
});

it('is not overwritten in what it tells of the job by one before it that has slept', async () => {
  system.onLaunch = () => Promise.resolve('accepted');
  const until = later(system.clock.now(), durationMs(600_000));
  const sleeper = await enterJob(system.deps, jobId, { owner: 'first', until });
  await before.commit('map/1/0', 1);
  const after = await enterJob(system.deps, jobId, { owner: 'next', until, replaces: 'first' });
  await runTick(system.deps, after);
  const told = async () => (await system.jobs.load(jobId))?.stages.map(({ done }) => done);
  expect(await told()).toEqual([2, 0]);
  // It had read what there was when it fell asleep.
  const attempts = Object.assign(Object.create(system.attempts) as typeof system.attempts, {
    told: () => Promise.resolve({ notes: [] }),
    read: () => Promise.resolve({ attempts: [], results: [], replicas: [] }),
  });
  expect((await runTick({ ...system.deps, attempts }, sleeper)).decisions).toEqual([]);
  expect(await told()).toEqual([2, 0]);
});

it('refuses a log that opens a stage although results of its input are nowhere', async () => {
  const taking = takeOver(async () => {
    await before.decide({ kind: 'open-stage', stage: 1 });
  });
  await expect(taking).rejects.toMatchObject({
    name: 'UnreadableRecord',
    message:
      `entry 3 of the decision log of job ${jobId} cannot be followed: ` +
      'a stage opened before its input was complete',
  });
});
