import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryForecastStore } from '../../../src/adapters/memory/memory-forecast-store.ts';
import { finishJob } from '../../../src/app/finish-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { runScheduler } from '../../../src/app/run-scheduler.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { StoreUnavailableError } from '../../../src/contracts/errors.ts';
import type { StoredForecast } from '../../../src/contracts/forecast.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import type { ForecastStore } from '../../../src/ports/forecast-store.ts';
import { FreezingProcess } from '../../support/freezing.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

const spec: JobSpecInput = {
  name: 'words',
  stages: [
    { name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'], splitBytes: 4 }], partitions: 2 },
    { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
  ],
};

let system: ScriptedSystem;
let forecasts: MemoryForecastStore;
let asked: string[];

beforeEach(async () => {
  system = new ScriptedSystem();
  forecasts = new MemoryForecastStore();
  asked = [];
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one two three'));
});

const ask = (name: string): Promise<void> => {
  asked.push(name);
  return Promise.resolve();
};
const learning = (store: ForecastStore = forecasts, forecaster = { ask }) => ({
  ...system.deps,
  forecasts: store,
  forecaster,
});

/** A job all of whose tasks are committed. */
async function settled(token: string): Promise<JobId> {
  const { jobId } = await submitJob(system, { spec, clientToken: token });
  await planJob(system, jobId);
  const until = later(system.clock.now(), durationMs(60_000));
  await system.whileTimePasses(runScheduler(system.deps, jobId, { owner: token, until }));
  return jobId;
}

const known = async (): Promise<StoredForecast | undefined> => (await forecasts.get('words'))?.forecast;

describe('learning when a job has ended', () => {
  it('adds the run to what is known of its name, once, and asks for a forecast each time', async () => {
    const first = await settled('one');
    await finishJob(learning(), first);
    expect(await known()).toMatchObject({ name: 'words', runs: 1, jobs: [first], inputBytes: 13 });
    expect((await known())?.profile.stages.map(({ name, tasks }) => [name, tasks])).toEqual([
      ['map', 4],
      ['reduce', 2],
    ]);
    expect(asked).toEqual(['words']);
    await finishJob(learning(), first);
    expect((await known())?.runs).toBe(1);
    const second = await settled('two');
    await finishJob(learning(), second);
    expect(await known()).toMatchObject({ runs: 2, jobs: [first, second] });
    expect(asked).toEqual(['words', 'words']);
  });

  it('asks again for a run that was learned from by a Finish that died before it asked', async () => {
    const jobId = await settled('one');
    const process = new FreezingProcess({ call: 1, when: 'before' });
    const wrapped = process.wrap({ ...learning(), forecaster: { ask } }, ['forecaster']);
    const dead = finishJob(wrapped, jobId);
    dead.catch(() => undefined);
    expect(await process.frozen).toBe('forecaster.ask');
    expect([(await known())?.runs, asked]).toEqual([1, []]);
    await finishJob(learning(), jobId);
    expect((await known())?.runs).toBe(1);
    process.thaw();
    await dead;
    expect((await known())?.runs).toBe(1);
  });

  it('loses no run of two that end at the same time, and counts none twice', async () => {
    const ids = [await settled('one'), await settled('two'), await settled('three')];
    await Promise.all(ids.map((jobId) => finishJob(learning(), jobId)));
    const { runs, jobs = [] } = (await known()) ?? {};
    expect([runs, jobs.toSorted()]).toEqual([3, ids.toSorted()]);
  });

  it.each([1, 2, 3])('writes over nothing newer when it froze at call %s and went on later', async (call) => {
    const late = await settled('late');
    const process = new FreezingProcess({ call, when: 'after' });
    const frozen = finishJob(process.wrap(learning(), ['forecasts', 'forecaster']), late);
    frozen.catch(() => undefined);
    await process.frozen;
    const other = await settled('other');
    await finishJob(learning(), other);
    process.thaw();
    await frozen;
    const { runs, jobs = [] } = (await known()) ?? {};
    expect([runs, jobs.toSorted()]).toEqual([2, [late, other].toSorted()]);
  });

  const down = (): Promise<never> => Promise.reject(new StoreUnavailableError('away'));
  it.each([
    ['the store cannot be read', { get: down, put: down }, { ask }],
    ['the store cannot be written', { get: () => Promise.resolve(undefined), put: down }, { ask }],
    [
      'others always come first',
      { get: () => Promise.resolve(undefined), put: () => Promise.resolve('stale' as const) },
      { ask },
    ],
    ['nobody can be asked', undefined, { ask: down }],
  ])('never fails or changes the end of a job, where %s', async (_, store, forecaster) => {
    const jobId = await settled('one');
    await finishJob(learning(store ?? forecasts, forecaster), jobId);
    expect(await system.jobs.load(jobId)).toMatchObject({ state: 'succeeded' });
    expect((await system.ledger.view()).usedSlots).toBe(0);
    expect(system.logged).toContain('nothing-learned');
  });

  it('starts anew where what is known cannot be read', async () => {
    const spoilt: ForecastStore = {
      get: async (name) =>
        (await forecasts.get(name)) ?? { forecast: undefined, unreadable: 'no JSON', tag: 't' },
      put: (name, forecast, ifTag) => forecasts.put(name, forecast, ifTag === 't' ? undefined : ifTag),
    };
    const jobId = await settled('one');
    await finishJob(learning(spoilt), jobId);
    expect(await known()).toMatchObject({ runs: 1, jobs: [jobId] });
    expect(system.logged).toContain('forecast-unreadable');
  });

  it('learns nothing and fails nothing where a repeated Finish comes after the plan is gone', async () => {
    const jobId = await settled('one');
    await finishJob(system.deps, jobId);
    await finishJob(learning(), jobId);
    expect([await known(), asked]).toEqual([undefined, []]);
    expect(await system.jobs.load(jobId)).toMatchObject({ state: 'succeeded' });
  });
});
