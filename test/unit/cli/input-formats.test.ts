import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { checkFormats, formatOf } from '../../../src/cli/input-formats.ts';
import { jobOptionsSchema } from '../../../src/cli/job-options.ts';
import { prepareJob } from '../../../src/cli/prepare-job.ts';
import { codecOfKey } from '../../../src/core/model/splits.ts';
import { scratchDir } from './fixtures.ts';

const csv = 'region,amount\nnorth,3\n';
const ndjson = '{"region":"north","amount":3}\n';
const files: Readonly<Record<string, string | Buffer>> = {
  'sales.csv': csv,
  'quoted.csv': '\uFEFF"region","a ""big""\namount"\nnorth,3\n',
  'sales.csv.gz': gzipSync(csv),
  'packed.csv': gzipSync(csv),
  'plain.csv.gz': csv,
  'sales.ndjson': ndjson,
  'sales.jsonl.gz': gzipSync(ndjson),
  'sales.txt': ndjson,
  'wrong.csv': ndjson,
  'list.ndjson': '[{"region":"north"}]',
  'sales.parquet': 'PAR1xxxx',
  'tabs.csv': 'region\tamount\nnorth\t3\n',
  'empty.csv': '',
};

async function prepared(job: string, options: object) {
  const cwd = await scratchDir();
  for (const [name, content] of Object.entries(files)) await writeFile(join(cwd, name), content);
  return prepareJob(job, jobOptionsSchema.parse(options), { cwd, inputs: 'local', slots: 2 });
}

const groupby = (input: string, more: object = {}) =>
  prepared('groupby', { input: [input], key: ['region'], agg: ['count,sum:amount'], ...more });

async function formatRead(input: string, more: object = {}): Promise<unknown> {
  const job = await groupby(input, more);
  const first = job.specWith(['s3://data/input/1/']).stages[0]?.inputs[0];
  return first !== undefined && 's3' in first ? first.format : undefined;
}

describe('the format of local inputs', () => {
  it.each([
    ['sales.csv', 'csv'],
    ['sales.csv.gz', 'csv'],
    ['sales.ndjson', 'ndjson'],
    ['sales.jsonl.gz', 'ndjson'],
    ['sales.txt', 'ndjson'],
    ['empty.csv', 'csv'],
  ])('is known by the name of %s, or its first bytes', async (input, format) => {
    expect(await formatRead(input)).toBe(format);
  });

  it.each([
    ['wrong.csv', {}, /^--input: .*wrong\.csv looks like NDJSON and not like CSV: give --format ndjson$/],
    [
      'sales.csv',
      { format: 'ndjson' },
      /^--input: .*sales\.csv does not look like NDJSON, whose lines begin with "\{": give --format csv where it is CSV$/,
    ],
    ['list.ndjson', {}, /^--input: .*list\.ndjson is one JSON list and not NDJSON.* jq -c/],
    [
      'sales.parquet',
      {},
      /^--input: .*sales\.parquet is a Parquet file, which is not read: convert it first, with DuckDB for one: COPY/,
    ],
    [
      'packed.csv',
      {},
      /^--input: .*packed\.csv is packed with gzip: name it packed\.csv\.gz, so that it is unpacked$/,
    ],
    ['plain.csv.gz', {}, /^--input: .*plain\.csv\.gz is not packed with gzip, though its name says so/],
    ['sales.*', {}, /^--input holds files of more than one kind, such as sales\.csv and sales\./],
  ])('is refused with a hint where it does not fit: %s', async (input, more, message) => {
    await expect(groupby(input, more)).rejects.toThrow(message);
  });

  it('is looked at for jobs on text, too: what is packed must be unpacked', async () => {
    await expect(prepared('wordcount', { input: ['packed.csv'] })).rejects.toThrow('is packed with gzip');
  });
});

describe('files whose names say that they are packed', () => {
  const gzip = ['gz', 'gzip', 'GZ', 'Gzip'];
  const others = ['zst', 'zstd', 'ZST', 'bz2', 'bzip2', 'BZ2'];

  it.each([...gzip, ...others])('are read by what is before the ending: .%s', async (ending) => {
    const cwd = await scratchDir();
    const packed = gzip.includes(ending) ? gzipSync(csv) : Buffer.from('what only a worker unpacks');
    const path = join(cwd, `sales.csv.${ending}`);
    await writeFile(path, packed);
    const inputs = [{ path, sizeBytes: packed.length }];
    expect(codecOfKey(path)).toBeDefined();
    expect(await formatOf('--input', inputs)).toBe('csv');
    const wanted = { header: true, option: '--input', formatOption: '--format' };
    const columns = [{ name: 'region', option: '--key' }];
    await checkFormats(inputs, { ...wanted, format: 'csv', columns });
    await checkFormats(inputs, { ...wanted, format: 'text', columns: [] });
  });

  it.each(gzip)('are refused where they are not: .%s', async (ending) => {
    const path = join(await scratchDir(), `sales.csv.${ending}`);
    await writeFile(path, csv);
    const wanted = { header: true, option: '--input', formatOption: '--format', columns: [] };
    await expect(
      checkFormats([{ path, sizeBytes: csv.length }], { ...wanted, format: 'csv' }),
    ).rejects.toThrow('is not packed with gzip, though its name says so');
  });
});

describe('columns that a job needs', () => {
  it.each([
    [
      'sales.csv',
      { key: ['regoin'] },
      /^--key: .*sales\.csv has no column "regoin"; its columns are region, amount; did you mean "region"\?$/,
    ],
    [
      'sales.csv.gz',
      { agg: ['sum:price'] },
      /^--agg: .* has no column "price"; its columns are region, amount$/,
    ],
    ['sales.csv', { header: false }, /^--key: .* has no column "region"; its columns are c0, c1$/],
    ['tabs.csv', {}, /has no column "region"; .*; fields must be between commas$/],
  ])('are looked for before anything is uploaded: %s %j', async (input, more, message) => {
    await expect(groupby(input, more)).rejects.toThrow(message);
  });

  it('are found in quotes, behind a byte order mark and over line ends', async () => {
    const agg = ['sum:a "big"\namount'];
    await expect(groupby('quoted.csv', { agg }).then(() => 'taken')).resolves.toBe('taken');
  });

  it.each([
    [{ leftKey: 'id' }, /^--left-key: .*sales\.csv has no column "id"/],
    [{ leftKey: 'region', rightKey: 'name' }, /^--right-key: .*sales\.csv\.gz has no column "name"/],
  ])('are those of both sides of a join: %j', async (keys, message) => {
    const sides = { input: ['sales.csv'], right: ['sales.csv.gz'] };
    await expect(prepared('join', { ...sides, ...keys })).rejects.toThrow(message);
  });
});

describe('inputs on S3 that the client may read', () => {
  const program =
    "import { job, read } from 'outrider'; export default job('x', read.csv({ columns: ['regoin'] }).write.ndjson());";
  const spec = (uri: string) => ({
    name: 'x',
    stages: [
      {
        name: 'group',
        operator: 'groupby-map',
        options: { key: ['a'], aggregates: [{ as: 'n', op: 'count' }] },
        inputs: [{ s3: [uri], format: 'csv' }],
      },
    ],
  });

  async function submitted(job: string, options: object, objects: MemoryObjectStore) {
    const cwd = await scratchDir();
    await writeFile(join(cwd, 'job.mjs'), program);
    await writeFile(join(cwd, 'job.json'), JSON.stringify(spec('s3://sales/wrong.csv')));
    for (const [key, content] of Object.entries(files)) {
      await objects.write({ bucket: 'sales', key }, Buffer.from(content));
      await objects.write({ bucket: 'sales', key: `${key}/0` }, Buffer.from(content));
    }
    return prepareJob(job, jobOptionsSchema.parse(options), { cwd, inputs: 's3', objects });
  }
  const aggregated = { key: ['region'], agg: ['sum:amount'] };

  it('are looked at before the job is submitted, one by one and below prefixes', async () => {
    const objects = new MemoryObjectStore();
    const job = await submitted('groupby', { input: ['s3://sales/sales.ndjson'], ...aggregated }, objects);
    expect(job.specWith([]).stages[0]?.inputs[0]).toMatchObject({ format: 'ndjson' });
    await expect(
      submitted('groupby', { input: ['s3://sales/sales.csv/'], ...aggregated, key: ['regoin'] }, objects),
    ).rejects.toThrow(
      '--key: s3://sales/sales.csv/0 has no column "regoin"; its columns are region, amount; did you mean "region"?',
    );
    await expect(
      submitted('groupby', { input: ['s3://sales/wrong.csv'], ...aggregated }, objects),
    ).rejects.toThrow(
      '--input: s3://sales/wrong.csv looks like NDJSON and not like CSV: give --format ndjson',
    );
    await expect(submitted('job.json', {}, objects)).rejects.toThrow(
      /inputs\[0\].* s3:\/\/sales\/wrong.csv looks like NDJSON/,
    );
    await expect(submitted('job.mjs', { input: ['s3://sales/sales.csv'] }, objects)).rejects.toThrow(
      'columns of read.csv in job.mjs: s3://sales/sales.csv has no column "regoin"',
    );
  });

  it('must have addresses of S3', async () => {
    const wrong = submitted(
      'groupby',
      { input: ['s3://no_bucket/x'], ...aggregated },
      new MemoryObjectStore(),
    );
    await expect(wrong).rejects.toThrow('--input s3://no_bucket/x must look like s3://bucket/key');
  });

  it('are left to the job where the client may not, or they are not there', async () => {
    class Closed extends MemoryObjectStore {
      override readAll(): Promise<Uint8Array> {
        return Promise.reject(new Error('Access Denied'));
      }
      override head(): Promise<undefined> {
        return Promise.reject(new Error('Access Denied'));
      }
    }
    for (const input of [
      's3://sales/wrong.csv',
      's3://sales/wrong.csv/',
      's3://sales/none.csv',
      's3://nowhere/',
    ])
      await expect(
        submitted('groupby', { input: [input], ...aggregated }, new Closed()),
      ).resolves.toBeDefined();
  });
});
