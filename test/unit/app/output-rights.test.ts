import { describe, expect, it } from 'vitest';
import { failJob } from '../../../src/app/fail-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { AccessDeniedError } from '../../../src/contracts/errors.ts';
import { attemptIdOf, type JobId } from '../../../src/contracts/ids.ts';
import { durationMs } from '../../../src/contracts/units.ts';
import type { ObjectStore } from '../../../src/ports/object-store.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';
import { spoiltStore } from '../../support/spoilt-store.ts';

const error = { name: 'JobFailed', message: 'a task failed' };

/** A job under way that has slots, data and an upload in a bucket of its user's. */
async function underWay(): Promise<{ system: ScriptedSystem; jobId: JobId }> {
  const system = new ScriptedSystem();
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one two three'));
  const spec = {
    name: 'find',
    output: 's3://users/out/',
    stages: [
      {
        name: 'find',
        operator: 'grep' as const,
        options: { pattern: 'o' },
        inputs: [{ s3: ['s3://data/in/'] }],
      },
    ],
  };
  const { jobId } = await submitJob(system, { spec });
  await planJob(system.deps, jobId);
  const now = system.clock.now();
  await system.ledger.resize(jobId, 2, { totalSlots: 4, now, length: durationMs(60_000) });
  const space = { jobId, shards: 1 };
  const attemptId = attemptIdOf('find', 0, 0);
  await system.attempts.create(space, attemptId, now);
  await system.attempts.claim(space, attemptId, { node: 'n', zone: 'z' }, now);
  const ref = { bucket: 'users', key: 'out/part-00000' };
  const { uploadId } = await system.objects.beginUpload(ref);
  await system.attempts.noteUpload(space, attemptId, { since: now, uploadId }, now);
  return { system, jobId };
}

/** Objects of a bucket whose owner has taken a right back. */
function without(objects: ObjectStore, right: 'abortUpload' | 'list'): ObjectStore {
  return new Proxy(objects, {
    get: (target, name) => {
      const own: unknown = Reflect.get(target, name);
      if (typeof own !== 'function') return own;
      return (...args: unknown[]): unknown => {
        const [ref] = args;
        const isTheirs = typeof ref === 'object' && ref !== null && 'bucket' in ref && ref.bucket === 'users';
        if (name === right && isTheirs) throw new AccessDeniedError(`access denied: ${right} on s3://users`);
        return Reflect.apply(own, target, args);
      };
    },
  });
}

it('a job whose attempt nobody can read gives up the upload that this one noted', async () => {
  const { system, jobId } = await underWay();
  const attempts = spoiltStore(system.attempts, { attempt: () => true });
  await failJob({ ...system.deps, attempts }, jobId, error, durationMs(0));
  const uploads = [];
  for await (const upload of system.objects.listUploads({ bucket: 'users', key: '' })) uploads.push(upload);
  expect(uploads).toEqual([]);
});

describe.each(['abortUpload', 'list'] as const)(
  'a job that may no more %s where its output lies',
  (right) => {
    it('ends, says so, and gives back all else that it held', async () => {
      const { system, jobId } = await underWay();
      const deps = { ...system.deps, objects: without(system.objects, right) };
      await expect(failJob(deps, jobId, error, durationMs(0))).rejects.toThrow(
        `access denied: ${right} on s3://users`,
      );
      expect((await system.jobs.load(jobId))?.state).toBe('failed');
      expect((await system.ledger.view()).usedSlots).toBe(0);
      expect((await system.jobs.loadClaims('users')).claims).toEqual([]);
      const left = [];
      for await (const { key } of system.objects.list({ bucket: 'data', key: 'jobs/' })) left.push(key);
      expect(left).toEqual([]);
      // Once the right is there again the next to look takes back the rest.
      await failJob(system.deps, jobId, error, durationMs(0));
      const uploads = [];
      for await (const upload of system.objects.listUploads({ bucket: 'users', key: '' }))
        uploads.push(upload);
      expect(uploads).toEqual([]);
    });
  },
);
