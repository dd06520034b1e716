import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { prepareJobFile } from '../../../src/cli/job-file/prepare-job-file.ts';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import { builtinJob } from '../../../src/operators/builtin-jobs.ts';
import { specOnHost } from '../../support/carried-code.ts';
import { MemoryHost } from '../../support/memory-host.ts';

const people = 'id,name\n1,"Ann\nLee"\n2,Bo\n3,Cy\n2,"Di ""D"" Fox"\n';
const orders = 'id,what\n1,tea\n2,"milk\nand\nhoney"\n';

/** What the last stage tells of its records, and the output. */
async function ended(spec: JobSpecInput, host: MemoryHost): Promise<{ records: unknown; output: string }> {
  const { job, output } = await host.run({ ...spec, policy: 'none' });
  expect(job.error).toBeUndefined();
  return { records: job.stages.at(-1)?.recordsOut, output: output.toString() };
}

async function hostOf(): Promise<MemoryHost> {
  const host = new MemoryHost();
  await host.put('people', Buffer.from(people));
  await host.put('orders', Buffer.from(orders));
  return host;
}

const inputs = ['s3://input/people'];
const csv = { format: 'csv', multiline: true } as const;
const sides = { inputs, right: ['s3://input/orders'], leftKey: 'id', rightKey: 'id', ...csv };

describe('records out of a final stage into CSV are its rows: a header is none, and a row of several lines is one', () => {
  it.each([
    [
      'a group-by',
      4,
      builtinJob('groupby', { inputs, key: ['name'], aggregates: [{ op: 'count', as: 'n' }], ...csv }),
    ],
    ['a join by shuffle', 3, builtinJob('join', { ...sides, partitions: 2 })],
    ['a join by broadcast', 3, builtinJob('join', { ...sides, broadcast: true })],
  ])('of %s', async (_, rows, spec) => {
    const { records, output } = await ended(spec, await hostOf());
    expect(output.split('\n').length - 1).toBeGreaterThan(rows + 1);
    expect(records).toBe(rows);
  });

  it('of SQL', async () => {
    const stage = {
      ...{
        name: 'all',
        operator: 'sql' as const,
        options: { query: 'SELECT * FROM input ORDER BY id', output: 'csv' },
      },
      inputs: [{ s3: inputs, ...csv }],
    };
    const { records, output } = await ended({ name: 'all', stages: [stage] }, await hostOf());
    expect(output.split('\n')[0]).toBe('id,name');
    expect(records).toBe(4);
  });

  it('of code of one’s own', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'outrider-records-'));
    onTestFinished(() => rm(directory, { recursive: true }));
    await writeFile(
      join(directory, 'job.mjs'),
      `import { job, read } from 'outrider';
       export default job('rows', read.csv({ input: 'people', multiline: true }).write.csv(['id', 'name']));`,
    );
    const options = { input: ['people=s3://input/people'], header: true };
    const prepared = await prepareJobFile('job.mjs', options, { cwd: directory, inputs: 's3' });
    const host = await hostOf();
    const { records, output } = await ended(await specOnHost(host, prepared), host);
    expect(output).toBe(people);
    expect(records).toBe(4);
  });
});
