import { createHash } from 'node:crypto';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { carriedOf, uploadCarried } from '../../../src/cli/carried.ts';
import { jobOptionsSchema } from '../../../src/cli/job-options.ts';
import { prepareJob } from '../../../src/cli/prepare-job.ts';
import { scratchDir } from './fixtures.ts';

const signal = new AbortController().signal;
const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

async function specIn(files: unknown): Promise<string> {
  const cwd = await scratchDir();
  await mkdir(join(cwd, 'job/lib'), { recursive: true });
  await writeFile(join(cwd, 'in.txt'), 'x\n');
  await writeFile(join(cwd, 'job/run.sh'), '#!/bin/sh\ncat\n');
  await chmod(join(cwd, 'job/run.sh'), 0o755);
  await writeFile(join(cwd, 'job/lib/words.txt'), 'a\n');
  const stage = {
    name: 'shout',
    operator: 'exec',
    options: { command: ['run.sh'], files },
    inputs: [{ s3: ['../in.txt'] }],
  };
  await writeFile(join(cwd, 'job/spec.json'), JSON.stringify({ name: 'shout', stages: [stage] }));
  return cwd;
}

const prepare = (cwd: string) =>
  prepareJob('job/spec.json', jobOptionsSchema.parse({}), { cwd, inputs: 'any' });

describe('files beside a spec', () => {
  it('come with the job by their content, executable where they were', async () => {
    const job = await prepare(await specIn(['run.sh', 'lib']));
    expect(job.specWith(['s3://data/input/1/'], 'data').stages[0]?.options?.['files']).toEqual([
      {
        path: 'lib/words.txt',
        s3: `s3://data/input/files/${digestOf('a\n')}`,
        sha256: digestOf('a\n'),
        executable: false,
      },
      {
        path: 'run.sh',
        s3: `s3://data/input/files/${digestOf('#!/bin/sh\ncat\n')}`,
        sha256: digestOf('#!/bin/sh\ncat\n'),
        executable: true,
      },
    ]);
    expect(job.carried.map(({ sha256 }) => sha256)).toEqual([digestOf('a\n'), digestOf('#!/bin/sh\ncat\n')]);
  });

  it('come under names that inputs pass over, too, but hidden ones', async () => {
    const cwd = await specIn(['lib', 'lib/*.py']);
    for (const name of ['__init__.py', '.cache']) await writeFile(join(cwd, 'job/lib', name), 'a\n');
    const files = (await prepare(cwd)).specWith(['s3://data/input/1/'], 'data').stages[0]?.options?.['files'];
    expect(files).toMatchObject([{ path: 'lib/__init__.py' }, { path: 'lib/words.txt' }]);
  });

  it.each([
    [['no.py'], /^stages\[0\]\.options\.files no\.py cannot be read: there is no such file or directory$/],
    [
      ['../in.txt'],
      /^stages\[0\]\.options\.files: .*in\.txt must lie in .*job or below it, beside the spec$/,
    ],
    ['run.sh', /^stages\[0\] \(shout\): options\.files /],
  ])('are refused before anything starts: %j', async (files, message) => {
    await expect(prepare(await specIn(files))).rejects.toThrow(message);
  });
});

describe('what is carried', () => {
  it('is written once for each content', async () => {
    const store = new MemoryObjectStore();
    const [a, b] = [carriedOf(Buffer.from('a')), carriedOf(Buffer.from('b'))];
    await uploadCarried(store, 'data', [a, b, a], { signal });
    const keyOf = ({ sha256 }: { sha256: string }) => ({ bucket: 'data', key: `input/files/${sha256}` });
    expect(Buffer.from(await store.readAll(keyOf(b))).toString()).toBe('b');
    // Its content stands under its digest already: a second upload leaves it as it is.
    const before = await store.head(keyOf(a));
    await uploadCarried(store, 'data', [a], { signal });
    expect(await store.head(keyOf(a))).toEqual(before);
  });
});
