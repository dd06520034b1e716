import { describe, expect, it } from 'vitest';
import { failJob } from '../../../src/app/fail-job.ts';
import { finishJob } from '../../../src/app/finish-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { runScheduler } from '../../../src/app/run-scheduler.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { InvalidInputError } from '../../../src/contracts/errors.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import { sourceManifestLineSchema } from '../../../src/contracts/plan.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { freezeEverywhere } from '../../support/freezing.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

const spec: JobSpecInput = {
  name: 'words',
  stages: [
    { name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'], splitBytes: 4 }], partitions: 2 },
    { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
  ],
};

interface World {
  readonly system: ScriptedSystem;
  readonly jobId: JobId;
  /** Keys of the input objects that attempts of the first stage were sent to read. */
  readonly read: Set<string>;
}

async function submitted(): Promise<World> {
  const system = new ScriptedSystem();
  const read = new Set<string>();
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one two three'));
  const { jobId } = await submitJob(system, { spec, clientToken: 'token' });
  system.onLaunch = async (payload) => {
    expect(await system.objects.head({ bucket: 'data', key: payload.stageKey })).toBeDefined();
    for (const { key, start, end } of payload.inputs) {
      if (payload.attemptId.startsWith('reduce')) continue;
      const line = await system.objects.readAll({ bucket: 'data', key }, { start, end });
      const { segments } = sourceManifestLineSchema.parse(JSON.parse(Buffer.from(line).toString()));
      for (const segment of segments) read.add(segment.key);
    }
    await system.succeed(payload);
    return 'accepted';
  };
  return { system, jobId, read };
}

async function keysOf({ system }: World): Promise<string[]> {
  const found = [];
  for await (const { key } of system.objects.list({ bucket: 'data', key: '' })) found.push(key);
  return found;
}

async function schedule({ system, jobId }: World): Promise<void> {
  const residency = { owner: 'first', until: later(system.clock.now(), durationMs(60_000)) };
  await system.whileTimePasses(runScheduler(system.deps, jobId, residency));
}

/** Plan as the state machine repeats it: to its end. */
async function replan(world: World): Promise<void> {
  await planJob(world.system.deps, world.jobId);
}

const outputOf = (jobId: JobId): string[] =>
  ['_SUCCESS', 'part-00000', 'part-00001'].map((name) => `output/${jobId}/${name}`);

describe('what S3 says of a bucket', () => {
  it.each([
    ['in', 'stages[0].inputs[0].s3[0]: the bucket data lies elsewhere'],
    ['output', 'output: the bucket data lies elsewhere'],
  ])('is told with the field that names it: %s', async (place, message) => {
    const { system, jobId } = await submitted();
    const { objects } = system;
    const list = objects.list.bind(objects);
    objects.list = (ref) => {
      if (ref.key.startsWith(place)) throw new InvalidInputError('the bucket data lies elsewhere', {});
      return list(ref);
    };
    await expect(planJob(system.deps, jobId)).rejects.toThrow(message);
  });
});

describe('slots that a job asks to be its own', () => {
  const plan = async (guaranteedSlots: number, system = new ScriptedSystem()) => {
    await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one two'));
    const stages = [
      { name: 'map', operator: 'tokenize' as const, inputs: [{ s3: ['s3://data/in/'] }] },
      {
        name: 'reduce',
        operator: 'sum-counts' as const,
        inputs: [{ stage: 'map', pattern: 'all-to-all' as const }],
      },
    ];
    const { jobId } = await submitJob(system, { spec: { name: 'words', guaranteedSlots, stages } });
    await planJob({ ...system.deps, totalSlots: 900 }, jobId);
    return system.jobs.load(jobId);
  };

  it('are told in its record, as far as nobody else was guaranteed them before', async () => {
    const system = new ScriptedSystem();
    const { store, ledger } = { store: system.deps.jobs, ledger: system.deps.ledger };
    const context = { totalSlots: 4, now: system.clock.now(), length: durationMs(60_000), live: 0 };
    await ledger.resize('other-000000000000' as JobId, 1, { ...context, guaranteed: 3 });
    const job = await plan(2, system);
    if (job === undefined) throw new Error('the job vanished');
    await schedule({ system, jobId: job.jobId, read: new Set() });
    expect(await store.load(job.jobId)).toMatchObject({ guaranteedSlots: 1, spec: { guaranteedSlots: 2 } });
    expect((await ledger.view()).grants).toMatchObject({
      'other-000000000000': { guaranteed: 3 },
      [job.jobId]: { guaranteed: 1 },
    });
  });

  it('are at most those of the deployment', async () => {
    await expect(plan(901)).rejects.toMatchObject({
      message: 'guaranteedSlots must be at most 900, the slots of this deployment, not 901',
      details: { field: 'guaranteedSlots' },
    });
    expect(await plan(900)).toMatchObject({ state: 'running', spec: { guaranteedSlots: 900 } });
    await expect(plan(0)).rejects.toThrow(/guaranteedSlots must be at least 1/);
  });
});

describe('a Plan that froze', () => {
  it('changes nothing that a job planned meanwhile reads, wherever it froze', async () => {
    const places = await freezeEverywhere<World>({
      make: submitted,
      run: ({ system, jobId }, process) => planJob(process.wrap(system.deps, ['jobs', 'objects']), jobId),
      meanwhile: async (world) => {
        await replan(world);
        // What the frozen Plan would list now is another input than the one that was taken.
        await world.system.objects.write({ bucket: 'data', key: 'in/b' }, Buffer.from('late'));
      },
      fate: 'thaws',
      check: async (world, where) => {
        const { planNonce } = (await world.system.jobs.load(world.jobId)) ?? {};
        const plans = (await keysOf(world)).filter((key) => key.startsWith('jobs/'));
        expect(plans, where).not.toEqual([]);
        for (const key of plans)
          expect(key, where).toContain(`jobs/${world.jobId}/plans/${planNonce ?? ''}/`);
        await schedule(world);
        await finishJob(world.system.deps, world.jobId);
        expect([...world.read], where).toEqual(['in/a']);
        expect(await keysOf(world), where).toEqual(['in/a', 'in/b', ...outputOf(world.jobId)]);
      },
    });
    expect(places).toContain('before jobs.update');
    expect(places).toContain('after jobs.update');
    expect(places.filter((place) => place.endsWith('objects.write'))).toHaveLength(8);
  });

  it.each(['failed', 'succeeded'] as const)('leaves nothing where the job has %s meanwhile', async (end) => {
    await freezeEverywhere<World>({
      make: submitted,
      run: ({ system, jobId }, process) => planJob(process.wrap(system.deps, ['jobs', 'objects']), jobId),
      meanwhile: async (world) => {
        const { deps } = world.system;
        if (end === 'failed') {
          await failJob(deps, world.jobId, { name: 'States.Timeout', message: 'late' }, durationMs(0));
          return;
        }
        await replan(world);
        await schedule(world);
        await finishJob(deps, world.jobId);
      },
      fate: 'thaws',
      check: async (world, where) => {
        expect(await world.system.jobs.load(world.jobId), where).toMatchObject({ state: end });
        expect(await keysOf(world), where).toEqual([
          'in/a',
          ...(end === 'succeeded' ? outputOf(world.jobId) : []),
        ]);
      },
    });
  });

  it('is done again by the next Plan where it was killed', async () => {
    await freezeEverywhere<World>({
      make: submitted,
      run: ({ system, jobId }, process) => planJob(process.wrap(system.deps, ['jobs', 'objects']), jobId),
      meanwhile: async (world) => {
        await replan(world);
        await schedule(world);
        await finishJob(world.system.deps, world.jobId);
      },
      fate: 'dies',
      check: async (world, where) => {
        expect(await keysOf(world), where).toEqual(['in/a', ...outputOf(world.jobId)]);
      },
    });
  });
});

describe('Plan', () => {
  it('returns at once where the job has been planned', async () => {
    const world = await submitted();
    await replan(world);
    const before = await keysOf(world);
    await replan(world);
    expect(await keysOf(world)).toEqual(before);
  });

  it('removes what it has written where it cannot write all', async () => {
    const world = await submitted();
    const objects = Object.assign(Object.create(world.system.objects) as typeof world.system.objects, {
      write: (...args: Parameters<typeof world.system.objects.write>) =>
        args[0].key.endsWith('plan.json')
          ? Promise.reject(new Error('no more room'))
          : world.system.objects.write(...args),
    });
    await expect(planJob({ ...world.system.deps, objects }, world.jobId)).rejects.toThrow('no more room');
    expect(await keysOf(world)).toEqual(['in/a']);
    await replan(world);
    expect(await world.system.jobs.load(world.jobId)).toMatchObject({ state: 'running' });
  });

  it('keeps the plan that was taken although the answer to its write was lost and a change came between', async () => {
    const world = await submitted();
    const { jobs } = world.system;
    const lossy = Object.assign(Object.create(jobs) as typeof jobs, {
      update: async (...args: Parameters<typeof jobs.update>) => {
        await jobs.update(...args);
        return jobs.update(...args);
      },
    });
    await planJob({ ...world.system.deps, jobs: lossy }, world.jobId);
    await schedule(world);
    expect([...world.read]).toEqual(['in/a']);
  });
});
