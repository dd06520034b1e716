import { beforeEach, describe, expect, it } from 'vitest';
import { submitJob } from '../../../src/app/submit-job.ts';
import {
  InvalidInputError,
  StoreUnavailableError,
  UnreadableRecordError,
} from '../../../src/contracts/errors.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { JobRecord } from '../../../src/contracts/records.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

const dayMs = 86_400_000;
const spec = {
  name: 'words',
  stages: [{ name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'] }] }],
};
const request = { spec, clientToken: 'nightly' };

let system: ScriptedSystem;

beforeEach(() => {
  system = new ScriptedSystem();
});

/** The system with some calls of one of its parts replaced. */
const withCalls = (part: 'jobs' | 'coordinator', calls: object): ScriptedSystem =>
  Object.assign(Object.create(system) as ScriptedSystem, {
    [part]: Object.assign(Object.create(system[part]) as object, calls),
  });

/** Fails once in place of a call, as a process that dies just before it. */
const dying = (): Promise<never> => Promise.reject(new Error('died'));

/** Lets a job run to its end. */
async function end(jobId: JobId): Promise<void> {
  system.coordinator.settle(jobId, 'succeeded');
  await system.jobs.update(jobId, ['submitted'], { state: 'succeeded', endedAt: system.clock.now() });
}

const recorded = async (): Promise<readonly JobRecord[]> => (await system.jobs.list({ limit: 100 })).jobs;

describe('a client token', () => {
  it('stands for one job and one execution while its record is kept, also after the job has ended', async () => {
    const first = await submitJob(system, request);
    expect(first.started).toBe(true);
    await end(first.jobId);
    await system.clock.advance(30 * dayMs - 1);
    expect(await submitJob(system, request)).toEqual({ jobId: first.jobId, started: false });
    expect(await system.coordinator.status(first.jobId)).toBe('succeeded');
    expect(await recorded()).toHaveLength(1);
  });

  it('starts a new job under a new name once the time of its record is up, though it is still seen', async () => {
    const first = await submitJob(system, request);
    await end(first.jobId);
    await system.clock.advance(30 * dayMs);
    const second = await submitJob(system, request);
    expect(second.started).toBe(true);
    expect(second.jobId).not.toBe(first.jobId);
    expect(await system.coordinator.status(second.jobId)).toBe('running');
    expect(await submitJob(system, request)).toEqual({ jobId: second.jobId, started: false });
  });

  it('starts a new job where the record was dropped before the claim of the token', async () => {
    const first = await submitJob(system, request);
    await end(first.jobId);
    const dropped = withCalls('jobs', {
      load: (jobId: JobId) => (jobId === first.jobId ? Promise.resolve(undefined) : system.jobs.load(jobId)),
    });
    const second = await submitJob(dropped, request);
    expect(second.started).toBe(true);
    expect(second.jobId).not.toBe(first.jobId);
    expect(await system.coordinator.status(second.jobId)).toBe('running');
    expect(await submitJob(dropped, request)).toEqual({ jobId: second.jobId, started: false });
  });

  it.each([
    ['its record', 'jobs', { create: dying }],
    ['its execution', 'coordinator', { start: dying }],
  ] as const)('completes a submission that died before %s was there', async (_what, part, calls) => {
    await expect(submitJob(withCalls(part, calls), request)).rejects.toThrow('died');
    const { jobId } = await submitJob(system, request);
    expect(await system.coordinator.status(jobId)).toBe('running');
    expect((await recorded()).map((job) => job.jobId)).toEqual([jobId]);
  });

  it('stands for the job of a submission that makes its record and starts it between two looks of another', async () => {
    const gate = Promise.withResolvers<undefined>();
    const claimed = Promise.withResolvers<undefined>();
    const first = submitJob(
      withCalls('jobs', {
        create: async (job: JobRecord) => {
          claimed.resolve(undefined);
          await gate.promise;
          return system.jobs.create(job);
        },
      }),
      request,
    );
    await claimed.promise;
    // The other has found the token claimed and no record; when it asks for an execution, there is one.
    const status = async (jobId: JobId) => {
      gate.resolve(undefined);
      await first;
      return system.coordinator.status(jobId);
    };
    const { jobId } = await submitJob(withCalls('coordinator', { status }), request);
    expect(jobId).toBe((await first).jobId);
    expect(await recorded()).toHaveLength(1);
  });

  it('starts one job for twenty submissions at once, also where the token is claimed anew', async () => {
    for (const round of [1, 2]) {
      const answers = await Promise.all(Array.from({ length: 20 }, () => submitJob(system, request)));
      expect(new Set(answers.map(({ jobId }) => jobId)).size).toBe(1);
      expect(answers.filter(({ started }) => started)).toHaveLength(1);
      expect(await recorded()).toHaveLength(round);
      for (const { jobId } of answers.slice(0, 1)) await end(jobId);
      await system.clock.advance(30 * dayMs);
    }
  });

  describe('of a job whose spec a later version refuses', () => {
    /** A later version of the service, over the same records. */
    const later = (): ScriptedSystem =>
      Object.assign(Object.create(system) as ScriptedSystem, {
        checkOperator: () => {
          throw new InvalidInputError('options.words must be left out', { field: 'options.words' });
        },
      });
    const refusal = /stages\[0\] \(map\): options\.words must be left out/;

    it('stands for that job, also once it has ended, until its record is gone', async () => {
      const { jobId } = await submitJob(system, request);
      expect(await submitJob(later(), request)).toEqual({ jobId, started: false });
      await end(jobId);
      expect(await submitJob(later(), request)).toEqual({ jobId, started: false });
      await system.clock.advance(30 * dayMs);
      await expect(submitJob(later(), request)).rejects.toThrow(refusal);
      expect(await recorded()).toHaveLength(1);
    });

    it('starts that job where the first submission died before it had', async () => {
      await expect(submitJob(withCalls('coordinator', { start: dying }), request)).rejects.toThrow('died');
      const { jobId } = await submitJob(later(), request);
      expect(await system.coordinator.status(jobId)).toBe('running');
    });

    it('is refused with another spec, without a token, and where no job came of it', async () => {
      await submitJob(system, request);
      const other = { ...spec, budget: 1 };
      await expect(submitJob(later(), { ...request, spec: other })).rejects.toThrow(refusal);
      await expect(submitJob(later(), { spec })).rejects.toThrow(refusal);
      const dead = { ...request, clientToken: 'dead' };
      await expect(submitJob(withCalls('jobs', { create: dying }), dead)).rejects.toThrow('died');
      await expect(submitJob(later(), dead)).rejects.toThrow(refusal);
      expect(await recorded()).toHaveLength(1);
    });

    it('is refused for what is wrong with it where nobody can tell what its token stands for', async () => {
      const jobOfToken = () => Promise.reject(new StoreUnavailableError('the store is away'));
      const away = Object.assign(later(), { jobs: withCalls('jobs', { jobOfToken }).jobs });
      await expect(submitJob(away, request)).rejects.toThrow(refusal);
    });

    it('is told what is wrong with the record of its job, not with its spec', async () => {
      await submitJob(system, request);
      const load = () => Promise.reject(new UnreadableRecordError('the record of the job cannot be read'));
      const broken = Object.assign(later(), { jobs: withCalls('jobs', { load }).jobs });
      await expect(submitJob(broken, request)).rejects.toThrow('the record of the job cannot be read');
    });

    it('claims no token for what it refuses', async () => {
      const claimToken = () => Promise.reject(new Error('claimed'));
      const seen = Object.assign(later(), { jobs: withCalls('jobs', { claimToken }).jobs });
      await expect(submitJob(seen, request)).rejects.toThrow(refusal);
    });
  });

  it('belongs to one name of job: the same text under another name is another token', async () => {
    const first = await submitJob(system, request);
    const second = await submitJob(system, { ...request, spec: { ...spec, name: 'other' } });
    expect(second.started).toBe(true);
    expect([first.jobId, second.jobId]).toEqual([
      expect.stringMatching(/^words-[0-9a-f]{12}$/),
      expect.stringMatching(/^other-[0-9a-f]{12}$/),
    ]);
  });
});

describe('a submission without a token whose job cannot be started', () => {
  const named = { spec: { ...spec, output: 's3://mine/out/' } };
  const refused = (): Promise<never> => Promise.reject(new Error('Rate exceeded'));

  it('leaves its output to the next try', async () => {
    await expect(submitJob(withCalls('coordinator', { start: refused }), named)).rejects.toThrow(
      'Rate exceeded',
    );
    expect(await recorded()).toMatchObject([
      { state: 'failed', error: { message: 'its execution could not be started: Rate exceeded' } },
    ]);
    const again = await submitJob(system, named);
    expect(again.started).toBe(true);
    expect(await system.coordinator.status(again.jobId)).toBe('running');
  });

  it('is answered as any other where the job has begun all the same', async () => {
    const start = async (jobId: JobId): Promise<never> => {
      await system.jobs.update(jobId, ['submitted'], { state: 'running' });
      return refused();
    };
    const { jobId } = await submitJob(withCalls('coordinator', { start }), named);
    expect(await recorded()).toMatchObject([{ jobId, state: 'running' }]);
  });

  it('tells why the job could not be started where the store fails as well', async () => {
    const update = (): Promise<never> => Promise.reject(new Error('the store is away'));
    const away = Object.assign(withCalls('coordinator', { start: refused }), {
      jobs: withCalls('jobs', { update }).jobs,
    });
    await expect(submitJob(away, named)).rejects.toThrow('Rate exceeded');
  });
});

it('starts a job of its own for each submission without a token', async () => {
  const answers = [await submitJob(system, { spec }), await submitJob(system, { spec })];
  expect(answers.map(({ started }) => started)).toEqual([true, true]);
  expect(new Set(answers.map(({ jobId }) => jobId)).size).toBe(2);
});
