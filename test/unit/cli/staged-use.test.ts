import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { makeApiClient } from '../../../src/cli/api-client.ts';
import { announceUse, clearStaged, contentToken } from '../../../src/cli/staged-use.ts';
import { uploadNeeded } from '../../../src/cli/staged-upload.ts';
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

  it.each([2, 4, 9 * 1024 * 1024])('are refused where a file of %d bytes is another by now', async (size) => {
    const store = new MemoryObjectStore();
    const [file] = await filesOf({ 'a.txt': 'one' });
    if (file === undefined) throw new Error('no file');
    const set = planStaging(bucket, [{ ...file, sizeBytes: size }], 'token');
    await expect(uploadStaged(store, set, signal)).rejects.toMatchObject({ name: 'InvalidInput' });
    expect(await keysIn(store)).toEqual([]);
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

  it('stay where a submission announces itself while somebody clears up', async () => {
    const store = new MemoryObjectStore();
    await store.write({ bucket, key: 'input/t/0-a' }, Buffer.from('x'));
    await announceUse(store, bucket, ['input/t/'], now - 60 * minuteMs);
    const list = store.list.bind(store);
    store.list = async function* (ref) {
      yield* list(ref);
      if (ref.key === 'input/t') await announceUse(store, bucket, ['input/t/'], now);
    };
    expect(await clearStaged(store, serving([]), bucket, now)).toBe(0);
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

describe('an upload that takes longer than an announcement counts', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const none = serving([]);

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'], now });
    onTestFinished(() => {
      vi.useRealTimers();
    });
  });

  /** Uploads six small files; `meanwhile` comes before the last of them does. */
  async function upload(store: MemoryObjectStore, meanwhile: () => Promise<unknown>) {
    const set = planStaging(
      bucket,
      await filesOf(Object.fromEntries(names.map((name) => [name, name]))),
      't',
    );
    const carried = { sha256: 'c'.repeat(64), bytes: Buffer.from('code') };
    const write = store.write.bind(store);
    let isOver = false;
    store.write = async (ref, ...others) => {
      if (!isOver && ref.key.endsWith('-f')) {
        isOver = true;
        await meanwhile();
      }
      return write(ref, ...others);
    };
    return uploadNeeded(store, bucket, { sets: [set], carried: [carried] }, { signal });
  }
  const staged = (store: MemoryObjectStore) =>
    keysIn(store).then((keys) => keys.filter((key) => key.startsWith('input/')));
  const all = [`input/files/${'c'.repeat(64)}`, ...names.map((name, index) => `input/t/${index}-${name}`)];

  it('is announced again and again, so that nobody takes away what has come over', async () => {
    const store = new MemoryObjectStore();
    const use = await upload(store, async () => {
      await vi.advanceTimersByTimeAsync(31 * minuteMs);
      expect(await clearStaged(store, none, bucket, Date.now())).toBe(0);
      expect(await staged(store)).not.toEqual([]);
    });
    expect(await staged(store)).toEqual(all);
    await vi.advanceTimersByTimeAsync(31 * minuteMs);
    expect(await clearStaged(store, none, bucket, Date.now())).toBe(0);
    use.settle();
    expect(vi.getTimerCount()).toBe(0);
    vi.setSystemTime(Date.now() + 11 * minuteMs);
    expect(await clearStaged(store, none, bucket, Date.now())).toBe(7);
    expect(await keysIn(store)).toEqual([]);
  });

  it('brings again what was taken away while the machine slept, and says once more that it is needed', async () => {
    const store = new MemoryObjectStore();
    let removed = 0;
    const use = await upload(store, async () => {
      vi.setSystemTime(now + 11 * minuteMs);
      removed = await clearStaged(store, none, bucket, Date.now());
    });
    expect(removed).toBeGreaterThan(0);
    expect(await staged(store)).toEqual(all);
    expect(await clearStaged(store, none, bucket, Date.now())).toBe(0);
    await use.takeBack();
    expect(vi.getTimerCount()).toBe(0);
    expect(await clearStaged(store, none, bucket, Date.now())).toBe(7);
    expect(await keysIn(store)).toEqual([]);
  });

  it('ends with one clear error where something is taken away each time', async () => {
    const store = new MemoryObjectStore();
    const list = store.list.bind(store);
    let looks = 0;
    store.list = async function* (ref) {
      if (ref.key === 'input/t/' && looks++ > 0) await store.remove(bucket, ['input/t/0-a']);
      yield* list(ref);
    };
    await expect(upload(store, () => Promise.resolve())).rejects.toMatchObject({
      name: 'ServiceUnavailable',
      message:
        'what the job needs was taken away from the local stack 4 times while it was uploaded: submit it again',
    });
    expect(looks).toBe(4);
    expect(vi.getTimerCount()).toBe(0);
  });
});
