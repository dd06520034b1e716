import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { objectStoreOf } from '../../../src/cli/embedded-stack.ts';
import { sizeJob } from '../../../src/cli/plan-sizes.ts';
import { AccessDeniedError, StoreUnavailableError } from '../../../src/contracts/errors.ts';
import { builtinJob } from '../../../src/operators/builtin-jobs.ts';
import type { ObjectStore } from '../../../src/ports/object-store.ts';
import { FakeService } from './fake-service.ts';

const MiB = 1024 * 1024;

/** A service with two objects of 3 MiB below `s3://data/logs/`, which commands take for a deployed one. */
async function deployed() {
  const service = new FakeService();
  await service.start();
  const { connection } = service;
  if (connection === undefined) throw new Error('not started');
  const store = objectStoreOf(connection);
  for (const name of ['a.txt', 'b.txt'])
    await store.write({ bucket: 'data', key: `logs/${name}` }, Buffer.alloc(3 * MiB, 'word\n'));
  const target = service.asDeployed();
  return { service, plan: (...args: readonly string[]) => service.run('plan', ...args, ...target) };
}

describe('a plan by a deployed service', () => {
  it('is asked for with what lies in S3 now, cut as the job would be', async () => {
    const { service, plan } = await deployed();
    const { exitCode, err } = await plan('wordcount', '--input', 's3://data/logs/', '--split-size', '1MiB');
    expect([exitCode, err]).toEqual([0, '']);
    expect(service.bodies).toMatchObject([
      {
        spec: { stages: [{ inputs: [{ s3: ['s3://data/logs/'] }] }, {}] },
        stages: { tokenize: { tasks: 6, bytes: 6 * MiB } },
      },
    ]);
  });

  it.each([
    ['s3://data/losg/', 'there is no object under s3://data/losg/'],
    ['s3://data/logs/c.txt', 'there is no object s3://data/logs/c.txt'],
    ['s3://nowhere/logs/', 'there is no bucket for s3://nowhere/logs/'],
  ])('is none for an input that is not there: %s', async (uri, message) => {
    const { service, plan } = await deployed();
    const { exitCode, err } = await plan('wordcount', '--input', uri);
    expect([exitCode, err]).toEqual([2, `outrider: stages[0].inputs[0].s3[0]: ${message}\n`]);
    expect(service.bodies).toEqual([]);
  });

  it('has the format of rows looked for, as their submission has', async () => {
    const { service, plan } = await deployed();
    await writeFile(join(service.cwd, 'r.ndjson'), '{"k":1}\n');
    const { connection } = service;
    if (connection === undefined) throw new Error('not started');
    await objectStoreOf(connection).write({ bucket: 'data', key: 'rows/r.ndjson' }, Buffer.from('{"k":1}\n'));
    const { err } = await plan('groupby', '--input', 's3://data/rows/', '--key', 'k', '--agg', 'count');
    expect(err).toBe('');
    expect(service.bodies).toMatchObject([{ spec: { stages: [{ inputs: [{ format: 'ndjson' }] }, {}] } }]);
  });
});

describe('how large a job is whose inputs lie in S3', () => {
  const spec = builtinJob('wordcount', { inputs: ['s3://bbb/logs/'], partitions: 2 });
  const prepared = { sets: [], carried: [], specWith: () => spec };
  const failing = (error: Error): ObjectStore =>
    ({
      list: () => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(error) }) }),
    }) as unknown as ObjectStore;

  it('is not known to who may not list them, and that is said', async () => {
    const denied = new AccessDeniedError('may not s3:ListBucket on b');
    expect(await sizeJob(prepared, failing(denied))).toMatchObject({
      stages: {},
      unsized: 'stages[0].inputs[0].s3[0]: may not s3:ListBucket on b',
    });
  });

  it('is not known where nobody is there to be asked, and that is said', async () => {
    expect(await sizeJob(prepared, undefined)).toMatchObject({
      stages: {},
      unsized: 's3://bbb/logs/ was not listed, as no service is asked',
    });
  });

  it('is not taken for unknown where S3 does not answer now', async () => {
    const away = new StoreUnavailableError('list in S3 failed');
    await expect(sizeJob(prepared, failing(away))).rejects.toBe(away);
  });
});
