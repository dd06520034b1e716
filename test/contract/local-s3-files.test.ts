import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { appendFile, chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { BUCKET, bytes, MIB, outcome, startBench } from './local-s3-support.ts';
import type { S3Bench } from './local-s3-support.ts';

let bench: S3Bench;
let dir: string;

beforeEach(async () => {
  bench = await startBench();
  dir = await mkdtemp(join(tmpdir(), 'local-s3-files-'));
});

afterEach(async () => {
  await bench.close();
  await rm(dir, { recursive: true, force: true });
});

const read = async (key: string, range?: string): Promise<Buffer> => {
  const answer = await bench.client.send(new GetObjectCommand({ Bucket: BUCKET, Key: key, Range: range }));
  return Buffer.from((await answer.Body?.transformToByteArray()) ?? []);
};

const scratch = (): Promise<string[]> => readdir(join(bench.rootDir, 'scratch'));

describe('a file that is adopted', () => {
  it.each([
    ['empty', 0],
    ['small', 19],
    ['as large as one piece', MIB],
    ['larger', 5 * MIB + 3],
  ])('is an object like others: %s', async (_, sizeBytes) => {
    const path = join(dir, 'file');
    const content = bytes(sizeBytes);
    await writeFile(path, content);
    await chmod(path, 0o444);
    const object = { bucket: BUCKET, key: 'input/a' };

    expect(await bench.server.files.adopt(object, path, sizeBytes)).toBe('adopted');

    expect((await read('input/a')).equals(content)).toBe(true);
    if (sizeBytes > 2) expect((await read('input/a', 'bytes=1-2')).equals(content.subarray(1, 3))).toBe(true);
    const head = await bench.client.send(
      new HeadObjectCommand({ Bucket: BUCKET, Key: 'input/a', ChecksumMode: 'ENABLED' }),
    );
    expect(head.ContentLength).toBe(sizeBytes);
    // The form of ETags that are no MD5 of the object; and no checksum, since none was sent.
    expect(head.ETag).toMatch(/^"[0-9a-f]{32}-1"$/);
    expect(head.ChecksumCRC32).toBeUndefined();
    const listed = await bench.client.send(new ListObjectsV2Command({ Bucket: BUCKET }));
    expect(listed.Contents).toMatchObject([{ Key: 'input/a', Size: sizeBytes, ETag: head.ETag }]);
    const stale = new GetObjectCommand({ Bucket: BUCKET, Key: 'input/a', IfMatch: '"0"' });
    expect(await outcome(bench.client.send(stale))).toBe('412 PreconditionFailed');
    expect(await scratch()).toEqual([]);
    const again = await bench.another();
    const found = await again.client.send(new HeadObjectCommand({ Bucket: BUCKET, Key: 'input/a' }));
    expect(found.ETag).toBe(head.ETag);
  });

  it.each([100, 3 * MIB])('stays as it was when the file of %i bytes is written to', async (sizeBytes) => {
    const path = join(dir, 'file');
    const content = bytes(sizeBytes);
    await writeFile(path, content);
    await bench.server.files.adopt({ bucket: BUCKET, key: 'a' }, path, sizeBytes);
    await appendFile(path, 'more');
    await writeFile(path, Buffer.alloc(sizeBytes, 'x'), { flag: 'r+' });
    expect((await read('a')).equals(content)).toBe(true);
  });

  it('has another ETag each time, and takes the place of the object before', async () => {
    const path = join(dir, 'file');
    const etags = new Set<string | undefined>();
    for (const text of ['one', 'two', 'two']) {
      await writeFile(path, text);
      await bench.server.files.adopt({ bucket: BUCKET, key: 'a' }, path, 3);
      etags.add((await bench.client.send(new HeadObjectCommand({ Bucket: BUCKET, Key: 'a' }))).ETag);
      expect((await read('a')).toString()).toBe(text);
    }
    expect(etags.size).toBe(3);
  });

  it.each([
    ['longer', 10, 11],
    ['shorter', 10, 9],
    ['longer, and large', 2 * MIB, 2 * MIB + 1],
    ['shorter, and large', 2 * MIB, 2 * MIB - 1],
    ['not empty any more', 0, 1],
  ])('is none where it is %s than it was found', async (_, foundBytes, sizeBytes) => {
    const path = join(dir, 'file');
    await writeFile(path, bytes(sizeBytes));
    expect(await bench.server.files.adopt({ bucket: BUCKET, key: 'a' }, path, foundBytes)).toBe('changed');
    expect(await outcome(read('a'))).toBe('404 NoSuchKey');
    expect(await scratch()).toEqual([]);
  });

  it('is none where somebody writes to it meanwhile', async () => {
    const path = join(dir, 'file');
    const sizeBytes = 96 * MIB;
    await writeFile(path, Buffer.alloc(sizeBytes));
    // Of the same length before and after, and with the time of modification set back.
    const script = `const fs = require('node:fs'); const fd = fs.openSync(process.argv[1], 'r+');
      for (let n = 0; ; n++) { fs.writeSync(fd, String(n % 10), 5); fs.futimesSync(fd, 1, 1); if (n === 10) console.log('on'); }`;
    const writer = spawn(process.execPath, ['-e', script, path]);
    try {
      await once(writer.stdout, 'data');
      expect(await bench.server.files.adopt({ bucket: BUCKET, key: 'a' }, path, sizeBytes)).toBe('changed');
    } finally {
      writer.kill('SIGKILL');
    }
    expect(await outcome(read('a'))).toBe('404 NoSuchKey');
    expect(await scratch()).toEqual([]);
  });

  it.each([3, 2 * MIB])(
    'is none where it is gone, or something else by now (%i bytes)',
    async (sizeBytes) => {
      const adopt = (name: string): Promise<string> =>
        bench.server.files.adopt({ bucket: BUCKET, key: 'a' }, join(dir, name), sizeBytes);
      await expect(adopt('gone')).rejects.toMatchObject({ code: 'ENOENT' });
      await mkdir(join(dir, 'directory'));
      const ofDirectory = await adopt('directory').catch((error: unknown) => error);
      expect(ofDirectory === 'changed' || (ofDirectory as { code?: string }).code === 'EISDIR').toBe(true);
      await once(spawn('mkfifo', [join(dir, 'pipe')]), 'exit');
      expect(await adopt('pipe')).toBe('changed');
      expect(await scratch()).toEqual([]);
    },
  );
});

describe('an object that is brought', () => {
  const put = (key: string, content: Buffer): Promise<unknown> =>
    bench.client.send(
      new PutObjectCommand({ Bucket: BUCKET, Key: key, Body: content, Metadata: { long: 'x'.repeat(2000) } }),
    );

  it.each([0, 7, 3 * MIB + 1])('is the file, of %i bytes', async (sizeBytes) => {
    const content = bytes(sizeBytes);
    await put('out/part', content);
    const path = join(dir, 'part');
    await writeFile(path, 'what was there, and was longer than nothing');
    await bench.server.files.bring({ bucket: BUCKET, key: 'out/part' }, path);
    expect((await readFile(path)).equals(content)).toBe(true);
    expect((await read('out/part')).equals(content)).toBe(true);

    await bench.server.files.bring({ bucket: BUCKET, key: 'out/part' }, path, { isMoved: true });
    expect((await readFile(path)).equals(content)).toBe(true);
    expect(await outcome(read('out/part'))).toBe('404 NoSuchKey');
    const listed = await bench.client.send(new ListObjectsV2Command({ Bucket: BUCKET }));
    expect(listed.KeyCount).toBe(0);
  });

  it.each([0, 7, 3 * MIB + 1])(
    'is the object again once its file is given back, of %i bytes',
    async (sizeBytes) => {
      const content = bytes(sizeBytes);
      const object = { bucket: BUCKET, key: 'out/part' };
      const path = join(dir, 'part');
      await put('out/part', content);
      await bench.server.files.bring(object, path, { isMoved: true });
      await chmod(path, 0o644);

      await bench.server.files.giveBack(object, path);

      expect(await readdir(dir)).toEqual([]);
      expect((await read('out/part')).equals(content)).toBe(true);
      const listed = await bench.client.send(new ListObjectsV2Command({ Bucket: BUCKET }));
      expect(listed.Contents?.map(({ Key, Size }) => [Key, Size])).toEqual([['out/part', sizeBytes]]);
    },
  );

  it('is as it was where a copy of it is given back, or nothing', async () => {
    await put('a', Buffer.from('content'));
    const path = join(dir, 'a');
    await writeFile(path, 'half');
    for (const key of ['a', 'a', 'none']) await bench.server.files.giveBack({ bucket: BUCKET, key }, path);
    expect(await readdir(dir)).toEqual([]);
    expect((await read('a')).toString()).toBe('content');
    expect(await outcome(read('none'))).toBe('404 NoSuchKey');
  });

  it.runIf(existsSync('/dev/shm'))(
    'stays where its file had to be copied to another file system',
    async () => {
      const other = await mkdtemp('/dev/shm/outrider-test-');
      onTestFinished(() => rm(other, { recursive: true, force: true }));
      if ((await stat(other)).dev === (await stat(dir)).dev) return;
      await put('a', Buffer.from('content'));
      await bench.server.files.bring({ bucket: BUCKET, key: 'a' }, join(other, 'a'), { isMoved: true });
      expect(await readFile(join(other, 'a'), 'utf8')).toBe('content');
      expect((await read('a')).toString()).toBe('content');
    },
  );

  it('leaves the object alone that was copied, whatever is done to the file', async () => {
    await put('a', Buffer.from('content'));
    const path = join(dir, 'a');
    await bench.server.files.bring({ bucket: BUCKET, key: 'a' }, path);
    await writeFile(path, 'another');
    expect((await read('a')).toString()).toBe('content');
    expect((await stat(path)).nlink).toBe(1);
  });

  it('is refused where there is none', async () => {
    const missing = bench.server.files.bring({ bucket: BUCKET, key: 'none' }, join(dir, 'none'));
    await expect(missing).rejects.toMatchObject({ code: 'NoSuchKey' });
    expect(await readdir(dir)).toEqual([]);
  });
});
