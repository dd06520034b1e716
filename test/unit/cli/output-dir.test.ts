import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { checkOutputDir, downloadOutput, type Bringing } from '../../../src/cli/output-dir.ts';
import type { ObjectFiles } from '../../../src/local/s3/object-files.ts';
import { startS3Server } from '../../../src/local/s3/server.ts';
import { jobRecord } from '../report/report-records.ts';
import { bucket, never, outputKey, succeeded } from './fake-stack.ts';
import { scratchDir } from './fixtures.ts';

const texts = { 'part-00000': 'a\t1\nb\t2\n', 'part-00001': '', _SUCCESS: '{}' } as const;

/** A store whose objects are files beside the directory for the output, which has an earlier one. */
async function scene() {
  const cwd = await scratchDir();
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
  const server = await startS3Server({ rootDir: join(cwd, 's3'), credentials, region: 'us-east-1' });
  onTestFinished(() => server.close());
  await server.createBucket(bucket);
  for (const [name, text] of Object.entries(texts)) {
    const path = join(cwd, name);
    await writeFile(path, text);
    await server.files.adopt({ bucket, key: `${outputKey}${name}` }, path, text.length);
  }
  const out = join(cwd, 'out');
  await mkdir(out);
  for (const name of ['part-00000', 'part-00007', '_SUCCESS']) await writeFile(join(out, name), 'earlier');
  const moving: Bringing = {
    bring: (ref, path) => server.files.bring(ref, path, { isMoved: true }),
    giveBack: (ref, path) => server.files.giveBack(ref, path),
  };
  const download = (changes: Partial<Bringing>) =>
    downloadOutput(() => new MemoryObjectStore(), jobRecord(succeeded), out, never, {
      force: true,
      bringing: { ...moving, ...changes },
    });
  return { cwd, out, moving, download, files: server.files };
}

/** The texts of the objects. */
async function objects(files: ObjectFiles, cwd: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const name of Object.keys(texts)) {
    const path = join(cwd, `again-${name}`);
    await files.bring({ bucket, key: `${outputKey}${name}` }, path);
    found[name] = await readFile(path, 'utf8');
  }
  return found;
}

async function earlierIn(out: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const name of (await readdir(out)).toSorted()) found[name] = await readFile(join(out, name), 'utf8');
  return found;
}

const earlier = { _SUCCESS: 'earlier', 'part-00000': 'earlier', 'part-00007': 'earlier' };

describe('an output whose objects become its files', () => {
  it('takes the place of an earlier one', async () => {
    const { out, download } = await scene();
    expect(await download({})).toEqual([join(out, 'part-00000'), join(out, 'part-00001')]);
    expect(await earlierIn(out)).toEqual(texts);
  });

  it('is whole in the store where the last object cannot be brought', async () => {
    const { cwd, out, moving, download, files } = await scene();
    const failing: Bringing['bring'] = (ref, path, signal) =>
      ref.key.endsWith('_SUCCESS')
        ? Promise.reject(Object.assign(new Error('EIO: i/o error'), { code: 'EIO' }))
        : moving.bring(ref, path, signal);
    await expect(download({ bring: failing })).rejects.toMatchObject({
      name: 'InvalidInput',
      message: `the output cannot be written to ${out}: EIO: i/o error`,
    });
    expect(await earlierIn(out)).toEqual(earlier);
    expect(await objects(files, cwd)).toEqual(texts);
  });

  it.each(['.part-00007.earlier', 'part-00001'])(
    'is whole in the store where %s comes in the way meanwhile, and so is the earlier one',
    async (name) => {
      const { cwd, out, moving, download, files } = await scene();
      const inTheWay: Bringing['bring'] = async (ref, path, signal) => {
        if (ref.key.endsWith('_SUCCESS')) await mkdir(join(out, name, 'full'), { recursive: true });
        await moving.bring(ref, path, signal);
      };
      await expect(download({ bring: inTheWay })).rejects.toThrow(
        `cannot be written to ${out}: it is a directory`,
      );
      expect((await readdir(out)).toSorted()).toEqual([name, ...Object.keys(earlier)].toSorted());
      for (const each of Object.keys(earlier))
        expect(await readFile(join(out, each), 'utf8')).toBe('earlier');
      expect(await objects(files, cwd)).toEqual(texts);
    },
  );

  it('stays, and is named, as far as the store does not take it back', async () => {
    const { out, moving, download } = await scene();
    const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
    const failing: Partial<Bringing> = {
      bring: (ref, path, signal) =>
        ref.key.endsWith('_SUCCESS') ? Promise.reject(full) : moving.bring(ref, path, signal),
      giveBack: (ref, path) =>
        ref.key.endsWith('part-00000') ? Promise.reject(full) : moving.giveBack(ref, path),
    };
    await expect(download(failing)).rejects.toMatchObject({
      message: `the output cannot be written to ${out}: the disk is full; what could not be put back stays there: .part-00000.partial`,
    });
    expect(await earlierIn(out)).toEqual({ '.part-00000.partial': 'a\t1\nb\t2\n', ...earlier });
  });
});

it('names three of the files that stay, and how many there are besides', async () => {
  const { out, moving, download } = await scene();
  const inTheWay: Bringing['bring'] = async (ref, path, signal) => {
    if (ref.key.endsWith('_SUCCESS')) await mkdir(join(out, 'part-00001/full'), { recursive: true });
    await moving.bring(ref, path, signal);
  };
  const giveBack: Bringing['giveBack'] = () => Promise.reject(new Error('EIO: i/o error'));
  await expect(download({ bring: inTheWay, giveBack })).rejects.toMatchObject({
    name: 'InvalidInput',
    message:
      `the output cannot be written to ${out}: it is a directory; what could not be put back stays there: ` +
      'part-00000, .part-00001.partial, ._SUCCESS.partial and 1 more',
    details: { parts: 3 },
  });
  expect(await readFile(join(out, '.part-00000.earlier'), 'utf8')).toBe('earlier');
});

describe('an output of which the list of parts alone tells', () => {
  const { jobId } = jobRecord();
  const key = (index: number): string => `${outputKey}part-0000${String(index)}`;

  /** What comes of a job with two parts, by a list of those keys. */
  async function listed(list: { readonly jobId: string; readonly keys: readonly string[] }) {
    const cwd = await scratchDir();
    const store = new MemoryObjectStore();
    for (const each of [key(0), key(1), 'payroll/2026.csv', `${outputKey}.envrc`])
      await store.write({ bucket, key: each }, Buffer.from('x'));
    const parts = list.keys.map((each) => ({ key: each, sizeBytes: 1 }));
    const text = JSON.stringify({ jobId: list.jobId, parts });
    await store.write({ bucket, key: `${outputKey}_SUCCESS` }, Buffer.from(text));
    const job = jobRecord({ ...succeeded, parts: [], partTotals: { count: 2, sizeBytes: 2 } });
    const out = join(cwd, 'a/out');
    return { cwd, out, brought: downloadOutput(() => store, job, out, never) };
  }

  it('comes whole', async () => {
    const { out, brought } = await listed({ jobId, keys: [key(0), key(1)] });
    expect(await brought).toEqual([join(out, 'part-00000'), join(out, 'part-00001')]);
    expect((await readdir(out)).toSorted()).toEqual(['_SUCCESS', 'part-00000', 'part-00001']);
  });

  const notFirst = (there: string): string => `parts[0].key is "${there}" and not "${key(0)}"`;
  it.each([
    [
      'another job',
      { jobId: 'other-0123456789ab', keys: [key(0), key(1)] },
      'its jobId is "other-0123456789ab"',
    ],
    ['too few parts', { jobId, keys: [key(0)] }, 'it names 1 part of 2'],
    ['a name of its own', { jobId, keys: [`${outputKey}.envrc`, key(1)] }, notFirst(`${outputKey}.envrc`)],
    ['other objects', { jobId, keys: ['payroll/2026.csv', key(1)] }, notFirst('payroll/2026.csv')],
    ['the directory above', { jobId, keys: ['x/..', key(1)] }, notFirst('x/..')],
    ['a part twice', { jobId, keys: [key(0), key(0)] }, `parts[1].key is "${key(0)}" and not "${key(1)}"`],
  ])('is refused where that names %s, and leaves nothing', async (_what, list, why) => {
    const { cwd, brought } = await listed(list);
    await expect(brought).rejects.toMatchObject({
      name: 'UnreadableRecord',
      message: `s3://data/${outputKey}_SUCCESS is not as job ${jobId} wrote it: ${why}`,
    });
    expect(await readdir(cwd)).toEqual([]);
  });
});

it('refuses a directory among what --force would replace', async () => {
  const cwd = await scratchDir();
  await mkdir(join(cwd, 'out/part-00007'), { recursive: true });
  await expect(checkOutputDir('out', cwd, { force: true })).rejects.toThrow(
    '--output out holds part-00007, which is no output of a job',
  );
});
