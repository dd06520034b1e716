import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { jobOptionsSchema } from '../../../src/cli/job-options.ts';
import { prepareJob } from '../../../src/cli/prepare-job.ts';
import { scratchDir } from './fixtures.ts';

const files = {
  'sales.csv': 'region,amount\nnorth,3\n',
  'sales.ndjson': '{"region":"north","amount":3}\n',
};

async function prepared(job: string, options: object) {
  const cwd = await scratchDir();
  for (const [name, content] of Object.entries(files)) await writeFile(join(cwd, name), content);
  return prepareJob(job, jobOptionsSchema.parse(options), { cwd, inputs: 'local', slots: 2 });
}

const grep = { input: ['sales.csv'], pattern: 'north' };
const sums = { input: ['sales.ndjson'], key: ['region'], agg: ['sum:amount'] };
const sides = { input: ['sales.csv'], right: ['sales.csv'], leftKey: 'region' };
const objects = { input: ['sales.ndjson'], right: ['sales.ndjson'], leftKey: 'region' };

describe('an option that this form of a job does not read', () => {
  it.each([
    [
      'grep',
      { ...grep, partitions: '5' },
      '--partitions goes with --count: without it grep shuffles nothing',
    ],
    [
      'join',
      { ...sides, broadcast: true, partitions: '5' },
      '--partitions cannot go with --broadcast, which shuffles nothing',
    ],
    ['groupby', { ...sums, multiline: true }, '--multiline is for CSV, and --input is ndjson'],
    [
      'groupby',
      { ...sums, format: 'ndjson', multiline: true },
      '--multiline is for CSV, and --format is ndjson',
    ],
    [
      'groupby',
      { ...sums, format: 'ndjson', header: false },
      '--no-header is for CSV, and --format is ndjson, as are the rows without --rows csv',
    ],
    ['join', { ...objects, multiline: true }, '--multiline is for CSV, and --input is ndjson'],
  ])('is refused, with what it goes with: %s %j', async (job, options, message) => {
    await expect(prepared(job, options)).rejects.toMatchObject({ name: 'InvalidInput', message });
  });

  it.each([
    ['grep', { ...grep, count: true, partitions: '5' }],
    ['grep', grep],
    ['join', { ...sides, partitions: '5' }],
    ['join', { ...sides, broadcast: true }],
    ['join', { ...sides, multiline: true }],
    ['groupby', { ...sums, rows: 'csv', header: false }],
    ['groupby', { ...sums, input: ['sales.csv'], key: ['c0'], agg: ['count'], header: false }],
    ['join', { ...objects, right: ['sales.csv'], rows: 'ndjson', multiline: true }],
  ])('is none of these, which are read: %s %j', async (job, options) => {
    const ready = await prepared(job, options);
    expect(ready.specWith(['s3://data/input/1/', 's3://data/input/2/']).name).toBe(job);
  });
});
