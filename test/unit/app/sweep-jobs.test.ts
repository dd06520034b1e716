import { beforeEach, describe, expect, it } from 'vitest';
import { MemorySweepMark } from '../../../src/adapters/memory/memory-sweep-mark.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { sweepJobs, type SweepDeps, type SweepReport } from '../../../src/app/sweep-jobs.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

const spec = {
  name: 'words',
  stages: [{ name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'] }] }],
};
const hourMs = 3_600_000;

let system: ScriptedSystem;
let deps: SweepDeps;

beforeEach(() => {
  system = new ScriptedSystem();
  deps = { ...system.deps, coordinator: system.coordinator, mark: new MemorySweepMark() };
});

const submit = async (): Promise<JobId> => (await submitJob(system, { spec })).jobId;
const sweep = (with_: SweepDeps = deps): Promise<SweepReport> =>
  sweepJobs(with_, { until: later(system.clock.now(), durationMs(hourMs)), patienceMs: durationMs(0) });
const stateOf = async (jobId: JobId): Promise<string | undefined> => (await system.jobs.load(jobId))?.state;

/** Slots and data of a job, as a scheduler that died has left them. */
async function leave(jobId: JobId): Promise<() => Promise<boolean>> {
  const data = { bucket: system.dataBucket, key: `jobs/${jobId}/data/map/0/0` };
  await system.objects.write(data, new Uint8Array(1));
  await system.objects.beginUpload({ ...data, key: `jobs/${jobId}/data/map/1/0` });
  await system.ledger.resize(jobId, 1, { totalSlots: 99, now: system.clock.now(), length: durationMs(9e11) });
  return async () => {
    const uploads = [];
    for await (const upload of system.objects.listUploads({ ...data, key: `jobs/${jobId}/` }))
      uploads.push(upload);
    const isHeld = Object.hasOwn((await system.ledger.view()).grants, jobId);
    return isHeld || uploads.length > 0 || (await system.objects.head(data)) !== undefined;
  };
}

describe('a sweep', () => {
  it('ends jobs without a living execution, with all that they hold, and touches no other', async () => {
    const [alive, aborted, failed, never] = [await submit(), await submit(), await submit(), await submit()];
    system.coordinator.settle(aborted, 'aborted');
    system.coordinator.settle(failed, 'failed');
    const missing = {
      ...deps,
      coordinator: Object.assign(Object.create(system.coordinator) as object, {
        status: (id: JobId) =>
          id === never || id === late ? Promise.resolve('missing') : system.coordinator.status(id),
      }),
    } as SweepDeps;
    const hasLeft = await leave(aborted);
    const stillThere = await leave(alive);
    await system.clock.advance(5 * 60_000);
    const late = await submit();
    expect(await sweep(missing)).toEqual({ seen: 5, ended: 2, cleared: 0, failed: 0, isComplete: true });
    const states = () => Promise.all([alive, aborted, failed, never, late].map(stateOf));
    expect(await states()).toEqual(['submitted', 'failed', 'failed', 'submitted', 'submitted']);
    // What is not found is looked for once more.
    await system.clock.advance(5 * 60_000 - 1);
    expect(await sweep(missing)).toMatchObject({ ended: 0 });
    await system.clock.advance(1);
    expect(await sweep(missing)).toMatchObject({ ended: 1 });
    expect(await states()).toEqual(['submitted', 'failed', 'failed', 'failed', 'submitted']);
    expect(await hasLeft()).toBe(false);
    expect(await stillThere()).toBe(true);
  });

  it('removes what an ended job left, once, when its last worker has surely ended', async () => {
    const jobId = await submit();
    await system.jobs.update(jobId, ['submitted'], { state: 'succeeded', endedAt: system.clock.now() });
    const hasLeft = await leave(jobId);
    await system.clock.advance(hourMs / 2 - 1);
    expect(await sweep()).toMatchObject({ seen: 1, cleared: 0 });
    expect(await hasLeft()).toBe(true);
    await system.clock.advance(1);
    expect(await sweep()).toMatchObject({ cleared: 1 });
    expect([await hasLeft(), await stateOf(jobId)]).toEqual([false, 'succeeded']);
    expect(await sweep()).toMatchObject({ seen: 1, cleared: 0 });
  });

  it('looks no further back than the longest job may have lived', async () => {
    const old = await submit();
    system.coordinator.settle(old, 'aborted');
    await system.clock.advance(11 * 24 * hourMs + 1);
    await submit();
    expect(await sweep()).toMatchObject({ seen: 1, ended: 0, isComplete: true });
    expect(await stateOf(old)).toBe('submitted');
  });

  it('goes on where a run ended whose time was up, and begins anew after the last job', async () => {
    const jobs: JobId[] = [];
    for (let n = 0; n < 60; n++) {
      jobs.push(await submit());
      await system.clock.advance(1);
    }
    for (const jobId of jobs) system.coordinator.settle(jobId, 'aborted');
    const ends: number[] = [];
    for (let runs = 0; runs < 10; runs++) {
      // Each question takes a second of the run's eight.
      const slow = {
        ...deps,
        coordinator: Object.assign(Object.create(system.coordinator) as object, {
          status: async (jobId: JobId) => {
            await system.clock.advance(1_000);
            return system.coordinator.status(jobId);
          },
        }),
      } as SweepDeps;
      const until = later(system.clock.now(), durationMs(8_000));
      const { ended, isComplete } = await sweepJobs(slow, { until, patienceMs: durationMs(0) });
      ends.push(ended);
      if (isComplete) break;
    }
    expect(ends.length).toBeGreaterThan(1);
    expect(ends.length).toBeLessThan(10);
    expect(ends.reduce((sum, ended) => sum + ended, 0)).toBe(60);
    expect(await deps.mark.load()).toBeUndefined();
  });

  it('ends a job whose record cannot be read, too, but not while its execution lives', async () => {
    const [dead, alive] = [await submit(), await submit()];
    system.coordinator.settle(dead, 'aborted');
    const jobs = Object.assign(Object.create(system.jobs) as typeof system.jobs, {
      list: async () => ({ jobs: [], unreadable: [dead, alive].map((jobId) => ({ jobId, message: 'no' })) }),
    });
    expect(await sweep({ ...deps, jobs })).toMatchObject({ seen: 2, ended: 1, failed: 0 });
    expect([await stateOf(dead), await stateOf(alive)]).toEqual(['failed', 'submitted']);
    expect(await sweep({ ...deps, jobs })).toMatchObject({ seen: 2, ended: 0, cleared: 0 });
  });

  it('begins anew where its mark is no place in the list, and leaves a mark that is', async () => {
    const dead = await submit();
    system.coordinator.settle(dead, 'aborted');
    await deps.mark.save('no cursor of ours', system.clock.now());
    expect(await sweep()).toMatchObject({ ended: 1, failed: 0, isComplete: true });
    expect(await deps.mark.load()).toBeUndefined();
  });

  it('goes on with the others where one cannot be ended, and tries that one again', async () => {
    const [one, other] = [await submit(), await submit()];
    for (const jobId of [one, other]) system.coordinator.settle(jobId, 'aborted');
    const broken = Object.assign(Object.create(system.ledger) as typeof system.ledger, {
      release: (jobId: JobId) =>
        jobId === one ? Promise.reject(new Error('no')) : system.ledger.release(jobId),
    });
    await system.clock.advance(hourMs);
    expect(await sweep({ ...deps, ledger: broken })).toMatchObject({ ended: 1, failed: 1 });
    await system.clock.advance(hourMs);
    expect(await sweep()).toMatchObject({ cleared: 2, failed: 0 });
  });
});
