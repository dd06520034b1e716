import { mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { objectFilesOf } from '../../../src/local/s3/object-files.ts';
import { objectPath, ObjectStore, type Bucket } from '../../../src/local/s3/object-store.ts';
import { createUpload, findUpload, listUploads } from '../../../src/local/s3/upload-store.ts';

async function storeOf(...keys: readonly string[]) {
  const dir = await mkdtemp(join(tmpdir(), 'outrider-torn-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const rootDir = join(dir, 's3');
  const store = await ObjectStore.open(rootDir);
  await store.createBucket('bucket', 1);
  for (const key of keys) {
    const path = join(dir, 'in');
    await writeFile(path, key);
    await objectFilesOf(store).adopt({ bucket: 'bucket', key }, path, key.length);
  }
  const bucket = await store.bucket('bucket');
  store.close();
  return { rootDir, bucket };
}

async function reopened(rootDir: string) {
  const store = await ObjectStore.open(rootDir);
  onTestFinished(() => {
    store.close();
  });
  const bucket = await store.bucket('bucket');
  return { store, bucket };
}

const keysIn = (bucket: Bucket): string[] =>
  bucket.index
    .list({ prefix: '', delimiter: '', after: '', maxKeys: 10 })
    .entries.flatMap((entry) => (entry.kind === 'object' ? [entry.key] : []));

describe('a store of objects whose files a crash has torn', () => {
  const endings: readonly (readonly [string, (path: string) => Promise<void>])[] = [
    ['cut to nothing', (path) => truncate(path, 0)],
    ['cut short', (path) => truncate(path, 40)],
    ['filled with zeros', (path) => writeFile(path, Buffer.alloc(200))],
    ['said to know more than it holds', (path) => writeFile(path, '\u007f\u007f\u007f\u007fORS3OBJ1')],
    ['without its metadata', (path) => writeFile(path, '{"key":1}\0\0\0\u0009ORS3OBJ1')],
  ];
  it.each(endings)('opens with all others where one is %s, which it sets aside', async (_, tear) => {
    const { rootDir, bucket: before } = await storeOf('one', 'two');
    const path = objectPath(before, 'one');
    await tear(path);
    const torn = await readFile(path);
    const { store, bucket } = await reopened(rootDir);
    expect(keysIn(bucket)).toEqual(['two']);
    await expect(store.openObject(bucket, 'one')).rejects.toMatchObject({ status: 404, code: 'NoSuchKey' });
    const [aside = ''] = store.setAside;
    expect(store.setAside).toHaveLength(1);
    expect(await readFile(aside)).toEqual(torn);
    // It is told once.
    store.close();
    expect((await reopened(rootDir)).store.setAside).toEqual([]);
  });

  it('opens a bucket whose note is torn, with its objects', async () => {
    const { rootDir, bucket: before } = await storeOf('one');
    await truncate(join(before.dir, 'bucket.json'), 0);
    const { store, bucket } = await reopened(rootDir);
    expect(keysIn(bucket)).toEqual(['one']);
    expect(bucket.createdMs).toBeGreaterThan(1_600_000_000_000);
    // Nothing of it is lost.
    expect(store.setAside).toEqual([]);
    store.close();
    expect((await reopened(rootDir)).bucket.createdMs).toBe(bucket.createdMs);
  });

  it('has the objects of a bucket whose note is gone, once that is made again', async () => {
    const { rootDir, bucket: before } = await storeOf('one');
    await rm(join(before.dir, 'bucket.json'));
    const store = await ObjectStore.open(rootDir);
    onTestFinished(() => {
      store.close();
    });
    expect(await store.createBucket('bucket', 1)).toBe(true);
    expect(keysIn(await store.bucket('bucket'))).toEqual(['one']);
  });

  it('has no upload any more whose note is torn or gone, and keeps nothing of it once it is opened again', async () => {
    const { rootDir } = await storeOf();
    const { store, bucket } = await reopened(rootDir);
    const note = { initiatedMs: 1, headers: {}, userMetadata: {} };
    const torn = await createUpload(bucket, store.scratch, { ...note, key: 'torn' });
    const whole = await createUpload(bucket, store.scratch, { ...note, key: 'whole' });
    await truncate(join(bucket.dir, 'uploads', torn.uploadId, 'upload.json'), 5);
    expect(await listUploads(bucket)).toEqual([whole]);
    await expect(findUpload(bucket, 'torn', torn.uploadId)).rejects.toMatchObject({ code: 'NoSuchUpload' });
    // Nor one that was being removed: its note goes first.
    const removed = await createUpload(bucket, store.scratch, { ...note, key: 'removed' });
    const dirOf = (uploadId: string): string => join(bucket.dir, 'uploads', uploadId);
    await rm(join(dirOf(removed.uploadId), 'upload.json'));
    await writeFile(join(dirOf(removed.uploadId), '00001.part'), 'part');
    expect(await readdir(dirOf(torn.uploadId))).toEqual(['upload.json']);
    store.close();
    const { bucket: again } = await reopened(rootDir);
    expect(await listUploads(again)).toEqual([whole]);
    expect(await readdir(join(bucket.dir, 'uploads'))).toEqual([whole.uploadId]);
  });

  it('opens where the folder of uploads is gone', async () => {
    const { rootDir, bucket: before } = await storeOf('one');
    await rm(join(before.dir, 'uploads'), { recursive: true });
    const { store, bucket } = await reopened(rootDir);
    expect(keysIn(bucket)).toEqual(['one']);
    const note = { initiatedMs: 1, headers: {}, userMetadata: {} };
    const upload = await createUpload(bucket, store.scratch, { ...note, key: 'new' });
    expect(await listUploads(bucket)).toEqual([upload]);
  });

  it('leaves an upload whose note cannot be read, and opens with all else', async () => {
    const { rootDir, bucket: before } = await storeOf('one');
    const [unread, lost] = ['0'.repeat(32), 'f'.repeat(32)];
    // Read as a file, a directory fails as a broken disk does.
    await mkdir(join(before.dir, 'uploads', unread, 'upload.json'), { recursive: true });
    await mkdir(join(before.dir, 'uploads', lost));
    const { bucket } = await reopened(rootDir);
    expect(keysIn(bucket)).toEqual(['one']);
    expect(await readdir(join(bucket.dir, 'uploads'))).toEqual([unread]);
  });

  it('lists all uploads but those whose notes cannot be read, and what is none', async () => {
    const { rootDir } = await storeOf();
    const { store, bucket } = await reopened(rootDir);
    const note = { initiatedMs: 1, headers: {}, userMetadata: {} };
    const upload = await createUpload(bucket, store.scratch, { ...note, key: 'whole' });
    await mkdir(join(bucket.dir, 'uploads', '0'.repeat(32), 'upload.json'), { recursive: true });
    await writeFile(join(bucket.dir, 'uploads', 'notes.txt'), '');
    expect(await listUploads(bucket)).toEqual([upload]);
    await expect(findUpload(bucket, 'whole', '0'.repeat(32))).rejects.toMatchObject({ code: 'EISDIR' });
  });
});
