import { beforeEach, describe, expect, it } from 'vitest';
import { answer } from '../../../functions/api/routes.ts';
import { cancelJob } from '../../../src/app/change-job.ts';
import { failJob } from '../../../src/app/fail-job.ts';
import { finishJob } from '../../../src/app/finish-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { runScheduler } from '../../../src/app/run-scheduler.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { freezeEverywhere } from '../../support/freezing.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

let system: ScriptedSystem;

async function fresh(): Promise<ScriptedSystem> {
  const made = new ScriptedSystem();
  await made.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one two three'));
  return made;
}

beforeEach(async () => {
  system = await fresh();
});

const writesTo = (output: string | undefined): JobSpecInput => ({
  name: 'words',
  stages: [
    { name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'], splitBytes: 4 }], partitions: 2 },
    { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
  ],
  ...(output === undefined ? {} : { output }),
});

const submit = async (output: string, clientToken?: string, at = system): Promise<JobId> =>
  (await submitJob(at, { spec: writesTo(output), ...(clientToken === undefined ? {} : { clientToken }) }))
    .jobId;
const error = { name: 'Unknown', message: 'no' };
/** What is said of an output; of a submission the field is one of the request, of Plan one of the job. */
const heldBy = (holder: JobId, field = 'spec.output'): object => ({
  name: 'Conflict',
  message: expect.stringContaining(`belongs to ${holder}`) as string,
  details: { field, jobId: holder },
});

describe('the output of an unfinished job', () => {
  it.each([
    ['s3://results/a/b/', 's3://results/a/b/'],
    ['s3://results/a/b/', 's3://results/a/b/c/'],
    ['s3://results/a/b/', 's3://results/a/'],
    ['s3://results/a/b/', 's3://results/'],
    ['s3://results/', 's3://results/a/b/'],
    ['s3://results/a//b/', 's3://results/a//'],
    ['s3://results/ä %2F#?/', 's3://results/ä %2F#?/+ü/'],
  ])('%s keeps a second job out of %s', async (first, second) => {
    const holder = await submit(first);
    await expect(submit(second)).rejects.toMatchObject(heldBy(holder));
    expect((await system.jobs.list({ limit: 10 })).jobs).toHaveLength(1);
  });

  it.each([
    ['s3://results/a/b/', 's3://results/a/bc/'],
    ['s3://results/a/b/', 's3://results/a/c/'],
    ['s3://results/a/b/', 's3://others/a/b/'],
    ['s3://results/a/b/', 's3://results/a/b%2Fc/'],
    ['s3://results/a/b/', 's3://results//a/b/'],
    ['s3://results/a/b/', 's3://results/A/b/'],
    ['s3://data/out/', 's3://data/output/results/'],
  ])('%s leaves %s to others', async (first, second) => {
    expect(await submit(first)).not.toBe(await submit(second));
  });

  it('is refused with 409, the field and the job that holds it', async () => {
    const holder = await submit('s3://results/a/');
    const { statusCode, body } = await answer(system, {
      httpMethod: 'POST',
      resource: '/jobs',
      pathParameters: null,
      queryStringParameters: null,
      body: JSON.stringify({ spec: writesTo('s3://results/a/b/') }),
      isBase64Encoded: false,
    });
    expect(statusCode).toBe(409);
    expect(JSON.parse(body)).toEqual({
      error: 'Conflict',
      message: `output must not overlap that of an unfinished job: s3://results/a/ belongs to ${holder}`,
      field: 'spec.output',
    });
  });

  it('goes to one of twenty that ask at once', async () => {
    const answers = await Promise.allSettled(
      Array.from({ length: 20 }, (_, rival) => submit(`s3://results/a/${rival % 2 === 0 ? '' : 'b/'}`)),
    );
    const taken = answers.filter(({ status }) => status === 'fulfilled');
    // Those under `a/b/` are all alike; one above or one below is left, and never both.
    expect(taken).toHaveLength(1);
    expect((await system.jobs.list({ limit: 100 })).jobs).toHaveLength(1);
  });

  it('is claimed by forty jobs at once where they are apart', async () => {
    const ids = await Promise.all(Array.from({ length: 40 }, (_, each) => submit(`s3://results/${each}/`)));
    expect(new Set(ids).size).toBe(40);
    expect((await system.jobs.loadClaims('results')).claims).toHaveLength(40);
  });

  it('is free again when the job succeeded, failed or was cancelled', async () => {
    const first = await submit('s3://results/a/');
    await planJob(system.deps, first);
    const residency = { owner: 'first', until: later(system.clock.now(), durationMs(60_000)) };
    await system.whileTimePasses(runScheduler(system.deps, first, residency));
    await finishJob(system.deps, first);
    expect((await system.jobs.loadClaims('results')).claims).toEqual([]);
    const second = await submit('s3://results/a/b/');
    await failJob(system.deps, second, error, durationMs(0));
    const third = await submit('s3://results/a/b/');
    await cancelJob(system, third);
    await failJob(system.deps, third, error, durationMs(0));
    expect((await system.jobs.load(third))?.state).toBe('cancelled');
    await submit('s3://results/a/b/');
  });

  it('is taken over from a job that has ended and did not give it back', async () => {
    const first = await submit('s3://results/a/');
    await planJob(system.deps, first);
    await system.jobs.update(first, ['running'], { state: 'failed' });
    const second = await submit('s3://results/a/b/');
    expect((await system.jobs.loadClaims('results')).claims.map(({ jobId }) => jobId)).toEqual([second]);
  });

  it('stays with its job when that is submitted again, and the answer is the same once the job has ended', async () => {
    const first = await submit('s3://results/a/', 'token');
    expect(await submit('s3://results/a/', 'token')).toBe(first);
    await failJob(system.deps, first, error, durationMs(0));
    const second = await submit('s3://results/a/');
    expect(await submit('s3://results/a/', 'token')).toBe(first);
    await expect(submit('s3://results/a/')).rejects.toMatchObject(heldBy(second));
  });
});

describe('a submitter that did not come all the way', () => {
  it('loses the output a minute after it died, and no sooner to a rival that was quick', async () => {
    const dying = Object.assign(Object.create(system) as ScriptedSystem, {
      jobs: Object.assign(Object.create(system.jobs) as typeof system.jobs, {
        create: () => Promise.reject(new Error('killed')),
      }),
    });
    await expect(submit('s3://results/a/', 'token', dying)).rejects.toThrow('killed');
    await expect(submit('s3://results/a/b/')).rejects.toMatchObject({ name: 'Conflict' });
    expect((await system.jobs.list({ limit: 10 })).jobs).toEqual([]);
    await system.clock.advance(60_000);
    await submit('s3://results/a/b/');
  });

  it('takes up its own claim when it tries again with the same token', async () => {
    const dying = Object.assign(Object.create(system) as ScriptedSystem, {
      jobs: Object.assign(Object.create(system.jobs) as typeof system.jobs, {
        create: () => Promise.reject(new Error('killed')),
      }),
    });
    await expect(submit('s3://results/a/', 'token', dying)).rejects.toThrow('killed');
    const jobId = await submit('s3://results/a/', 'token');
    expect((await system.jobs.loadClaims('results')).claims.map((claim) => claim.jobId)).toEqual([jobId]);
  });

  it('never shares the output with a rival that came while it was frozen, wherever that was', async () => {
    await freezeEverywhere<{ at: ScriptedSystem; rival?: JobId; late?: JobId }>({
      make: async () => ({ at: await fresh() }),
      run: async (world, process) => {
        const { jobs, coordinator, clock, ids, checkOperator } = world.at;
        const ports = { jobs, coordinator, clock, ids, checkOperator, dataBucket: 'data' };
        const frozen = process.wrap(ports, ['jobs', 'coordinator']);
        world.late = (
          await submitJob(frozen, { spec: writesTo('s3://results/a/'), clientToken: 'late' })
        ).jobId;
      },
      meanwhile: async (world) => {
        await world.at.clock.advance(120_000);
        world.rival = await submit('s3://results/a/b/', undefined, world.at);
        await planJob(world.at.deps, world.rival);
      },
      fate: 'thaws',
      check: async ({ at, rival, late }, where) => {
        if (late !== undefined && rival !== undefined) {
          await expect(planJob(at.deps, late), where).rejects.toMatchObject(heldBy(rival, 'output'));
        } else if (late !== undefined) await planJob(at.deps, late);
        else if (rival === undefined) throw new Error(`${where}: nobody has the output`);
        const { jobs } = await at.jobs.list({ limit: 10 });
        expect(jobs.filter(({ state }) => state === 'running').length, where).toBe(1);
      },
    });
  });
});

describe('outputs that no job may have', () => {
  it.each([
    's3://data/',
    's3://data/jobs/',
    's3://data/jobs/words-0123456789ab/',
    's3://data/jobs/words-0123456789ab/data/',
    's3://data/input/',
    's3://data/input/0a1b2c/',
    's3://data/forecasts/',
    's3://data/forecasts/words/',
    's3://data/output/',
    's3://data/output/words-0123456789ab/',
    's3://data/output/words-0123456789ab/part/',
  ])('%s is refused before anything is written', async (output) => {
    await expect(submit(output)).rejects.toMatchObject({
      name: 'InvalidInput',
      message: expect.stringMatching(/^output must lie outside s3:\/\/data\/.*the system's own$/) as string,
      details: { field: 'spec.output' },
    });
    expect((await system.jobs.list({ limit: 10 })).jobs).toEqual([]);
    expect((await system.jobs.loadClaims('data')).claims).toEqual([]);
  });

  it.each(['s3://other/jobs/', 's3://data/jobs2/', 's3://data/output/mine/', 's3://data/my/jobs/'])(
    '%s is none of them',
    async (output) => {
      await submit(output);
    },
  );

  it('and those that hold what the job reads are refused by name', async () => {
    for (const output of ['s3://data/in/out/', 's3://data/in/'])
      await expect(submit(output)).rejects.toMatchObject({
        name: 'InvalidInput',
        message: `stages[0].inputs[0].s3[0] must lie apart from the output ${output}`,
        details: { field: 'spec.stages[0].inputs[0].s3[0]' },
      });
    const whole = writesTo(undefined);
    const inputs = [{ s3: ['s3://data/in/a', 's3://data/'] }];
    const stages = [{ ...whole.stages[0], inputs }, whole.stages[1]] as JobSpecInput['stages'];
    await expect(submitJob(system, { spec: { ...whole, stages } })).rejects.toThrow(
      /^stages\[0\]\.inputs\[0\]\.s3\[1\] must lie apart from the output s3:\/\/data\/output\/words-/,
    );
    expect((await system.jobs.list({ limit: 10 })).jobs).toEqual([]);
    expect((await system.jobs.loadClaims('data')).claims).toEqual([]);
  });
});

describe('a job without an output of its own choice', () => {
  it('needs no claim: nobody else can name its place', async () => {
    await submitJob(system, { spec: writesTo(undefined) });
    await submitJob(system, { spec: writesTo(undefined) });
    expect((await system.jobs.loadClaims('data')).claims).toEqual([]);
  });
});
