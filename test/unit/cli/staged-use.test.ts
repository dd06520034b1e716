import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { makeApiClient } from '../../../src/cli/api-client.ts';
import { announceUse, clearStaged, contentToken } from '../../../src/cli/staged-use.ts';
import { planStaging, uploadStaged } from '../../../src/cli/staging.ts';
import { jobSpecSchema } from '../../../src/contracts/job-spec.ts';
import type { JobRecord } from '../../../src/contracts/records.ts';
import { jobRecord } from '../report/report-records.ts';
import { scratchDir } from './fixtures.ts';

const signal = new AbortController().signal;
const bucket = 'data';
const minuteMs = 60_000;
const now = Date.UTC(2026, 0, 1);

async function filesOf(contents: Readonly<Record<string, string>>) {
  const dir = await scratchDir();
  const files = [];
  for (const [name, content] of Object.entries(contents)) {
    await mkdir(join(dir, name, '..'), { recursive: true });
    await writeFile(join(dir, name), content);
    files.push({ path: join(dir, name), sizeBytes: content.length });
  }
  return files;
}

const tokenOf = async (contents: Readonly<Record<string, string>>): Promise<string> =>
  contentToken(await filesOf(contents), signal);

/** A service that knows these jobs. */
const serving = (jobs: readonly JobRecord[]) => ({
  ...makeApiClient({
    apiUrl: 'http://127.0.0.1:1',
    region: 'x',
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
  }),
  list: () => Promise.resolve({ jobs }),
});

const reading = (uri: string, state: JobRecord['state']): JobRecord =>
  jobRecord({
    state,
    spec: jobSpecSchema.parse({
      name: 'j',
      stages: [{ name: 's', operator: 'tokenize', inputs: [{ s3: [uri] }] }],
    }),
  });

async function keysIn(store: MemoryObjectStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list({ bucket, key: '' })) keys.push(key);
  return keys;
}

describe('staged inputs', () => {
  it('have one name for the same names, order and contents, wherever they lie', async () => {
    const token = await tokenOf({ 'a.txt': 'one', 'b.txt': 'two' });
    expect(token).toMatch(/^[0-9a-f]{24}$/);
    expect(await tokenOf({ 'a.txt': 'one', 'b.txt': 'two' })).toBe(token);
    for (const other of [
      { 'a.txt': 'one', 'b.txt': 'twO' },
      { 'a.txt': 'one', 'c.txt': 'two' },
      { 'b.txt': 'two', 'a.txt': 'one' },
      { 'a.txt': 'one' },
    ])
      expect(await tokenOf(other)).not.toBe(token);
  });

  it('are uploaded once, and what is missing of them again', async () => {
    const files = await filesOf({ 'a.txt': 'one', 'b.txt': 'two' });
    const store = new MemoryObjectStore();
    const set = planStaging(bucket, files, 'token');
    let bytes = 0;
    const upload = () => uploadStaged(store, set, signal, (more) => (bytes += more));
    await upload();
    expect(bytes).toBe(6);
    await upload();
    expect(bytes).toBe(6);
    await store.remove(bucket, [set.objects[1]?.key ?? '']);
    await upload();
    expect(bytes).toBe(9);
  });

  it('are removed once neither an unfinished job nor a submission needs them', async () => {
    const store = new MemoryObjectStore();
    const put = (key: string) => store.write({ bucket, key }, Buffer.from('x'));
    for (const token of ['read', 'ended', 'announced', 'forgotten']) await put(`input/${token}/0-a.txt`);
    await put('input/files/aaaa');
    await put('jobs/j/plan.json');
    await announceUse(store, bucket, ['input/read/', 'input/ended/'], now - 60 * minuteMs);
    await announceUse(store, bucket, ['input/announced/'], now - 9 * minuteMs);
    await announceUse(store, bucket, ['input/forgotten/', 'input/files/aaaa'], now - 11 * minuteMs);
    const client = serving([
      reading('s3://data/input/read/', 'running'),
      reading('s3://data/input/ended/', 'succeeded'),
    ]);
    expect(await clearStaged(store, client, bucket, now)).toBe(3);
    expect((await keysIn(store)).filter((key) => !key.startsWith('jobs/staged-'))).toEqual([
      'input/announced/0-a.txt',
      'input/read/0-a.txt',
      'jobs/j/plan.json',
    ]);
    // Of the marks the old ones go, too.
    expect((await keysIn(store)).filter((key) => key.startsWith('jobs/staged-uses/'))).toHaveLength(1);
  });

  it('are all that is removed: what somebody else has put beside them stays', async () => {
    const store = new MemoryObjectStore();
    const own = ['input/files/mine.csv', 'input/lines', 'input/sales/2026.csv', 'input/token-2/a.txt'];
    for (const key of [...own, 'input/token/0-a.txt']) await store.write({ bucket, key }, Buffer.from('x'));
    await announceUse(store, bucket, ['input/token/'], now - 60 * minuteMs);
    expect(await clearStaged(store, serving([]), bucket, now)).toBe(1);
    expect(await keysIn(store)).toEqual(own);
  });

  it('stay where two submissions use them and one of them has ended', async () => {
    const store = new MemoryObjectStore();
    await store.write({ bucket, key: 'input/t/0-a' }, Buffer.from('x'));
    const first = await announceUse(store, bucket, ['input/t/'], now);
    const second = await announceUse(store, bucket, ['input/t/'], now);
    await first();
    expect(await clearStaged(store, serving([]), bucket, now)).toBe(0);
    await second();
    expect(await clearStaged(store, serving([]), bucket, now)).toBe(1);
    expect(await keysIn(store)).toEqual([]);
  });

  it('stay where not all jobs are known', async () => {
    const store = new MemoryObjectStore();
    await store.write({ bucket, key: 'input/t/0-a' }, Buffer.from('x'));
    const client = {
      ...serving([]),
      list: () => Promise.resolve({ jobs: [], unreadable: [{ jobId: 'j', message: 'torn' }] }),
    };
    expect(await clearStaged(store, client, bucket, now)).toBe(0);
  });
});
