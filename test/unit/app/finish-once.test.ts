import { describe, expect, it } from 'vitest';
import { cancelJob } from '../../../src/app/change-job.ts';
import { reconcileJob } from '../../../src/app/end-orphans.ts';
import { failJob } from '../../../src/app/fail-job.ts';
import { finishJob } from '../../../src/app/finish-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { findJob } from '../../../src/app/query-jobs.ts';
import { runScheduler } from '../../../src/app/run-scheduler.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { attemptIdOf, attemptParts, type JobId, taskOf } from '../../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import { attemptMetadata, partName } from '../../../src/contracts/keys.ts';
import type { AttemptPayload } from '../../../src/contracts/payloads.ts';
import type { FinalPart, JobRecord } from '../../../src/contracts/records.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { type FreezeScenario, type FreezingProcess, freezeEverywhere } from '../../support/freezing.ts';
import { progress, ScriptedSystem } from '../../support/scripted-job.ts';

const spec: JobSpecInput = {
  name: 'words',
  stages: [
    { name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'], splitBytes: 4 }], partitions: 3 },
    { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
  ],
};

interface World {
  readonly system: ScriptedSystem;
  readonly jobId: JobId;
  /** What others keep under the job's output prefix: keys, and uploads by id. */
  readonly foreign: readonly string[];
}

/** What a worker of the final stage does: its part is an upload which it notes first. The last part is empty. */
async function work(system: ScriptedSystem, payload: AttemptPayload): Promise<void> {
  const { jobId, attemptId } = payload;
  const { task, stage } = attemptParts(attemptId);
  if (stage !== 'reduce' || task === 2) return system.succeed(payload);
  const space = system.space(payload);
  if ((await system.claim(payload)) === 'refused') return;
  const ref = { bucket: 'data', key: `output/${jobId}/${partName(task)}` };
  const upload = await system.objects.beginUpload(ref, { [attemptMetadata]: `${jobId}/${attemptId}` });
  const now = system.clock.now();
  await system.attempts.noteUpload(space, attemptId, { since: now, uploadId: upload.uploadId }, now);
  const part = await system.objects.uploadPart(upload, 1, Buffer.from(`part of ${attemptId}`));
  const final: FinalPart = { kind: 'upload', uploadId: upload.uploadId, parts: [part], sizeBytes: 16 };
  await system.attempts.commit(space, {
    taskId: taskOf(attemptId),
    attemptId,
    committedAt: now,
    final,
    bytesIn: 1,
    bytesOut: 16,
    recordsIn: 1,
    recordsOut: 1,
    counters: {},
  });
  await system.attempts.end(space, attemptId, { state: 'done', progress: progress(100) }, now);
}

/** A job all of whose tasks are done, with a copy that has lost, in a prefix where others have put things since. */
async function worked(): Promise<World> {
  const system = new ScriptedSystem();
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one two three'));
  const { jobId } = await submitJob(system, { spec, clientToken: 'token' });
  await planJob(system.deps, jobId);
  const output = `output/${jobId}/`;
  const before = await system.objects.beginUpload({ bucket: 'data', key: `${output}part-00000` });
  system.onLaunch = async (payload) => {
    await work(system, payload);
    return 'accepted';
  };
  const residency = { owner: 'first', until: later(system.clock.now(), durationMs(60_000)) };
  await system.whileTimePasses(runScheduler(system.deps, jobId, residency));
  const copy: AttemptPayload = {
    jobId,
    attemptId: attemptIdOf('reduce', 0, 1),
    shards: 1,
    stageKey: '',
    inputs: [],
    heartbeatMs: 1_000,
  };
  await system.attempts.create(copy, copy.attemptId, system.clock.now());
  await work(system, copy);
  const after = await system.objects.beginUpload({ bucket: 'data', key: `${output}part-00001` });
  await system.objects.write({ bucket: 'data', key: `${output}part-00099` }, Buffer.from('of another'));
  return { system, jobId, foreign: [`${output}part-00099`, before.uploadId, after.uploadId] };
}

async function left({ system }: World): Promise<string[]> {
  const found = [];
  for await (const { key } of system.objects.list({ bucket: 'data', key: '' })) found.push(key);
  for await (const { uploadId } of system.objects.listUploads({ bucket: 'data', key: '' }))
    found.push(uploadId);
  return found.filter((each) => each !== 'in/a');
}

/** The job has ended, its output is whole or gone accordingly, and all that others wrote is there. */
async function checkEnd(world: World, where: string): Promise<string | undefined> {
  const job = await world.system.jobs.load(world.jobId);
  const names = ['_SUCCESS', 'part-00000', 'part-00001', 'part-00002'];
  const output = names.map((name) => `output/${world.jobId}/${name}`);
  expect(['succeeded', 'failed', 'cancelled'], where).toContain(job?.state);
  const expected = [...world.foreign, ...(job?.state === 'succeeded' ? output : [])];
  expect((await left(world)).toSorted(), `${where}: ${job?.state ?? ''}`).toEqual(expected.toSorted());
  if (job?.state === 'succeeded') expect(job.parts.map(({ key }) => key)).toEqual(output.slice(1));
  expect((await world.system.ledger.view()).usedSlots, where).toBe(0);
  return job?.state;
}

const ports = ['jobs', 'objects', 'attempts', 'ledger'] as const;
const error = { name: 'States.Timeout', message: 'late' };
const finish = ({ system, jobId }: World, process?: FreezingProcess): Promise<void> =>
  finishJob(process?.wrap(system.deps, ports) ?? system.deps, jobId);
const fail = ({ system, jobId }: World, process?: FreezingProcess): Promise<void> =>
  failJob(process?.wrap(system.deps, ports) ?? system.deps, jobId, error, durationMs(0));
const cancel = async (world: World): Promise<void> => {
  await cancelJob(world.system, world.jobId);
  await fail(world);
};

/** Freezes everywhere; answers in which states jobs ended, and where it froze. */
async function explore(scenario: Pick<FreezeScenario<World>, 'run' | 'meanwhile' | 'fate'>) {
  const states = new Set<string | undefined>();
  const places = await freezeEverywhere({
    make: worked,
    ...scenario,
    check: async (world, where) => {
      states.add(await checkEnd(world, where));
    },
  });
  return { states: [...states].toSorted(), places };
}

describe('a Finish that froze', () => {
  it.each([
    { name: 'Fail', meanwhile: fail, ends: ['failed', 'succeeded'] },
    { name: 'a cancellation', meanwhile: cancel, ends: ['cancelled', 'succeeded'] },
    { name: 'another Finish', meanwhile: finish, ends: ['succeeded'] },
  ])('leaves the whole output or nothing of it when $name came first', async ({ meanwhile, ends }) => {
    const { states, places } = await explore({ run: finish, meanwhile, fate: 'thaws' });
    expect(states).toEqual(ends);
    expect(places).toContain('before objects.completeUpload');
    expect(places.filter((place) => place.endsWith('jobs.update'))).toHaveLength(4);
    expect(places.filter((place) => place.endsWith('objects.write'))).toHaveLength(4);
  });

  it.each([
    { name: 'Fail', meanwhile: fail, ends: ['failed', 'succeeded'] },
    { name: 'another Finish', meanwhile: finish, ends: ['succeeded'] },
  ])('and was killed there leaves nothing half done after $name', async ({ meanwhile, ends }) => {
    const { states } = await explore({ run: finish, meanwhile, fate: 'dies' });
    expect(states).toEqual(ends);
  });
});

describe('a Fail that froze', () => {
  it.each([
    { name: 'Finish', meanwhile: finish, ends: ['failed', 'succeeded'] },
    { name: 'another Fail', meanwhile: fail, ends: ['failed'] },
    { name: 'a cancellation', meanwhile: cancel, ends: ['cancelled', 'failed'] },
  ])('takes nothing from a job that ended well, when $name came first', async ({ meanwhile, ends }) => {
    const { states, places } = await explore({ run: fail, meanwhile, fate: 'thaws' });
    expect(states).toEqual(ends);
    expect(places).toContain('before objects.abortUpload');
    expect(places).toContain('before objects.remove');
  });

  it('and was killed there is done again by the next Fail', async () => {
    const { states } = await explore({
      run: fail,
      meanwhile: async (world) => {
        await finish(world).catch(() => undefined);
        await fail(world);
      },
      fate: 'dies',
    });
    expect(states).toEqual(['failed', 'succeeded']);
  });

  it('while the output was half published leaves nothing of it, or all', async () => {
    const halfPublished = async (): Promise<World> => {
      const world = await worked();
      const { objects } = world.system;
      const stuck = Object.assign(Object.create(objects) as typeof objects, {
        completeUpload: (...args: Parameters<typeof objects.completeUpload>) =>
          args[0].key.endsWith('part-00001')
            ? Promise.reject(new Error('cut off'))
            : objects.completeUpload(...args),
      });
      await expect(finishJob({ ...world.system.deps, objects: stuck }, world.jobId)).rejects.toThrow(
        'cut off',
      );
      return world;
    };
    const states = new Set<string | undefined>();
    await freezeEverywhere<World>({
      make: halfPublished,
      run: fail,
      meanwhile: finish,
      fate: 'thaws',
      check: async (world, where) => void states.add(await checkEnd(world, where)),
    });
    expect([...states].toSorted()).toEqual(['failed', 'succeeded']);
  });
});

describe('a job whose parts are all there', () => {
  async function published(successOf?: string): Promise<World> {
    const world = await worked();
    const { objects } = world.system;
    const stuck = Object.assign(Object.create(objects) as typeof objects, {
      write: (...args: Parameters<typeof objects.write>) =>
        args[0].key.endsWith('_SUCCESS') ? Promise.reject(new Error('cut off')) : objects.write(...args),
    });
    await expect(finishJob({ ...world.system.deps, objects: stuck }, world.jobId)).rejects.toThrow('cut off');
    if (successOf !== undefined) {
      const success = { bucket: 'data', key: `output/${world.jobId}/_SUCCESS` };
      await objects.write(success, Buffer.from(successOf));
      return { ...world, foreign: [...world.foreign, success.key] };
    }
    return world;
  }

  it('is brought to its end by Fail, since nothing is missing but the mark', async () => {
    const world = await published();
    await fail(world);
    expect(await checkEnd(world, 'rolled forward')).toBe('succeeded');
  });

  it.each([
    { name: 'is looked at', isCancelled: false, end: finish },
    { name: 'is looked at', isCancelled: false, end: fail },
    { name: 'is cancelled', isCancelled: true, end: fail },
  ])('is brought to its end by its ending where its execution is gone and it $name', async (look) => {
    const world = await published();
    const { system, jobId } = world;
    system.coordinator.settle(jobId, 'aborted');
    await system.clock.advance(60_000);
    const load = async (): Promise<JobRecord> => findJob(system.jobs, jobId);
    const found = look.isCancelled
      ? await cancelJob(system, jobId)
      : await reconcileJob(system, await load());
    expect(found.state).toBe('running');
    expect([...system.coordinator.endings]).toEqual([jobId]);
    // Not asked about again while its ending is at work.
    expect((await load()).seenAt).toBe(system.clock.now());
    await look.end(world);
    expect(await checkEnd(world, look.name)).toBe('succeeded');
  });

  it('fails after all where the mark is of another, and that stays', async () => {
    const world = await published('of another');
    await expect(finish(world)).rejects.toMatchObject({ name: 'Conflict' });
    await fail(world);
    const job = await world.system.jobs.load(world.jobId);
    expect(job?.state).toBe('failed');
    expect((await left(world)).toSorted()).toEqual([...world.foreign].toSorted());
  });
});
