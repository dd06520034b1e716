import { appendFile, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { HeadObjectCommand, ListPartsCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { S3ObjectStore } from '../../src/adapters/aws/s3-object-store.ts';
import { HandedObjects } from '../../src/adapters/node/handed-objects.ts';
import { HandingClient } from '../../src/adapters/node/handing-client.ts';
import { ConflictError, NotFoundError } from '../../src/contracts/errors.ts';
import { HandedQuery } from '../../src/contracts/handed-files.ts';
import type { RequestTally } from '../../src/contracts/requests.ts';
import { PrincipalRegistry, ownerOf } from '../../src/local/http/principals.ts';
import type { FaultSubject } from '../../src/local/http/fault-hook.ts';
import { describeObjectStore } from './ports/object-store-suite.ts';
import { BUCKET, bytes, CREDENTIALS, MIB, outcome, REGION, sendRaw, startBench } from './local-s3-support.ts';
import type { S3Bench } from './local-s3-support.ts';

const PART = 5 * MIB;
const ref = (key: string) => ({ bucket: BUCKET, key });

let bench: S3Bench;
let store: HandedObjects;
let asked: FaultSubject[];
let counted: RequestTally[];

const handingClient = (credentials = CREDENTIALS): HandingClient =>
  new HandingClient({
    endpoint: bench.server.endpoint,
    region: REGION,
    credentials: () => Promise.resolve(credentials),
  });

async function start(options: Parameters<typeof startBench>[0] = {}): Promise<void> {
  asked = [];
  counted = [];
  bench = await startBench({
    handsFiles: true,
    onRequest: (subject) => {
      asked.push(subject);
      return undefined;
    },
    ...options,
  });
  store = handed();
}

const handed = (client = handingClient()): HandedObjects =>
  new HandedObjects(new S3ObjectStore(bench.client), client, (tally) => counted.push(tally));

beforeEach(() => start());
afterEach(() => bench.close());

const operations = (): string[] => asked.splice(0).map(({ operation }) => operation);
const whole = async (key: string): Promise<Buffer> => {
  const chunks: Uint8Array[] = [];
  for await (const chunk of store.read(ref(key))) chunks.push(chunk);
  return Buffer.concat(chunks);
};
const stored = async (): Promise<string[]> => {
  const found = await readdir(join(bench.rootDir, 'buckets', BUCKET), { recursive: true });
  return found.filter((name) => !/^(objects(\/..)?|uploads|bucket\.json)$/.test(name));
};
const put = (key: string, body: Uint8Array) =>
  bench.client.send(new PutObjectCommand({ Bucket: BUCKET, Key: key, Body: body }));

describeObjectStore('S3 that hands files', async () => {
  await bench.server.createBucket('books');
  return store;
});

describe('reading by files', () => {
  it.each([1, MIB, MIB + 1, 3 * MIB + 5])('gives the bytes of an object of %i', async (sizeBytes) => {
    const content = bytes(sizeBytes);
    await put('a', content);
    operations();
    expect((await whole('a')).equals(content)).toBe(true);
    expect(Buffer.from(await store.readAll(ref('a'))).equals(content)).toBe(true);
    expect(operations()).toEqual(['HandFiles', 'HandFiles']);
    expect(counted).toEqual([{ get: 1 }, { get: 1 }]);
  });

  it('asks once for objects that are read at once, and gives each its own', async () => {
    const keys = Array.from({ length: 20 }, (_, index) => `many/${String(index)} +ü`);
    for (const key of keys) await put(key, Buffer.from(key));
    operations();
    const read = await Promise.all(keys.map(async (key) => (await whole(key)).toString()));
    expect(read).toEqual(keys);
    expect(operations()).toEqual(['HandFiles']);
  });

  it('leaves to S3 what is not there, or not the version that was asked for', async () => {
    await put('a', bytes(10));
    await expect(store.readAll(ref('none'))).rejects.toThrow(NotFoundError);
    const read = store.read(ref('a'), { etag: '"another"' });
    await expect(read[Symbol.asyncIterator]().next()).rejects.toThrow(ConflictError);
  });

  it('reads on in the object that it began with where another comes into its place', async () => {
    const first = bytes(2 * MIB);
    await put('a', first);
    const chunks: Uint8Array[] = [];
    for await (const chunk of store.read(ref('a'))) {
      if (chunks.length === 0) await put('a', bytes(2 * MIB, 7));
      chunks.push(chunk);
    }
    expect(Buffer.concat(chunks).equals(first)).toBe(true);
  });

  it('does not take another file for the one that was handed', async () => {
    const content = bytes(2_000);
    await put('a', content);
    const client = handingClient();
    const file = await client.fileOf(ref('a'));
    if (file === undefined) throw new Error('no file was handed');
    // Written anew between answer and reading: the same place and size, another file.
    await writeFile(`${file.path}.new`, bytes(3_000, 5));
    await rename(`${file.path}.new`, file.path);
    client.fileOf = () => Promise.resolve(file);
    await expect(handed(client).readAll(ref('a'))).rejects.toThrow(/reading s3:\/\/data\/a failed/);
    await rm(file.path);
    await expect(handed(client).readAll(ref('a'))).rejects.toThrow(NotFoundError);
  });

  it('hands nothing that the caller may not read', async () => {
    await bench.close();
    const principals = new PrincipalRegistry();
    principals.add({ credentials: CREDENTIALS, principal: ownerOf(CREDENTIALS) });
    const other = { accessKeyId: 'AKIDOTHER', secretAccessKey: 'other-secret' };
    const authorize = ({ operation, resource }: { operation: string; resource: string }) =>
      operation === 'HandFiles' || resource === `${BUCKET}/mine` ? undefined : 'no';
    principals.add({ credentials: other, principal: { ...ownerOf(other), authorize } });
    await start({ principals });
    await put('mine', bytes(5));
    await put('yours', bytes(5));
    const client = handingClient(other);
    const files = await Promise.all(['mine', 'yours', 'none'].map((key) => client.fileOf(ref(key))));
    expect(files.map((file) => file?.sizeBytes)).toEqual([5, undefined, undefined]);
    const stranger = handingClient({ accessKeyId: 'AKIDLOCAL', secretAccessKey: 'guessed' });
    expect(await stranger.fileOf(ref('mine'))).toBeUndefined();
  });

  it('goes by requests where S3 hands no files', async () => {
    await bench.close();
    await start({ handsFiles: false });
    await put('a', bytes(2 * MIB));
    operations();
    expect((await whole('a')).equals(bytes(2 * MIB))).toBe(true);
    expect(operations()).toEqual(['GetObject']);
    expect(counted).toEqual([]);
  });
});

describe('parts by files', () => {
  const content = bytes(2 * PART + 300_000);
  const partOf = (number: number): Uint8Array => content.subarray((number - 1) * PART, number * PART);

  it('become the object without a copy, and leave nothing else', async () => {
    const upload = await store.beginUpload(ref('a'), { of: 'me' });
    const parts = [1, 2, 3].map((number) => store.uploadPart(upload, number, partOf(number)));
    const sent = await Promise.all(parts);
    const listed = await bench.client.send(
      new ListPartsCommand({ Bucket: BUCKET, Key: 'a', UploadId: upload.uploadId }),
    );
    expect(listed.Parts?.map(({ Size }) => Size)).toEqual([PART, PART, 300_000]);
    expect(listed.Parts?.map(({ ETag }) => ETag)).toEqual(sent.map(({ etag }) => etag));
    expect(await store.completeUpload(upload, sent, { ifAbsent: true })).toBe('completed');

    expect((await whole('a')).equals(content)).toBe(true);
    const head = await bench.client.send(new HeadObjectCommand({ Bucket: BUCKET, Key: 'a' }));
    expect(head.ContentLength).toBe(content.length);
    expect(head.ETag).toMatch(/^"[0-9a-f]{32}-3"$/);
    expect(head.Metadata).toEqual({ of: 'me' });
    expect(await stored()).toHaveLength(1);
    expect(asked.map(({ operation }) => operation)).not.toContain('UploadPart');
    expect(counted).toEqual([{ put: 1 }, { put: 1 }, { put: 1 }, { get: 1 }]);
  });

  it('are those that are listed, in their order, whatever else was sent', async () => {
    const upload = await store.beginUpload(ref('a'));
    const sent = [];
    for (const number of [1, 2, 3]) sent.push(await store.uploadPart(upload, number, partOf(number)));
    const again = await store.uploadPart(upload, 2, bytes(PART, 9));
    const listed = sent.map((part) => (part.number === 2 ? again : part));
    expect(await store.completeUpload(upload, listed)).toBe('completed');
    const wanted = Buffer.concat([partOf(1), bytes(PART, 9), partOf(3)]);
    expect((await whole('a')).equals(wanted)).toBe(true);
    expect(await stored()).toHaveLength(1);
  });

  it('may be fewer than were sent', async () => {
    const upload = await store.beginUpload(ref('a'));
    const sent = [];
    for (const number of [1, 2, 3]) sent.push(await store.uploadPart(upload, number, partOf(number)));
    expect(await store.completeUpload(upload, sent.slice(0, 2))).toBe('completed');
    expect((await whole('a')).equals(content.subarray(0, 2 * PART))).toBe(true);
  });

  it('can be completed later where an object was in the way', async () => {
    const upload = await store.beginUpload(ref('a'));
    const sent = [];
    for (const number of [1, 2, 3]) sent.push(await store.uploadPart(upload, number, partOf(number)));
    await put('a', bytes(3));
    expect(await store.completeUpload(upload, sent, { ifAbsent: true })).toBe('exists');
    expect((await whole('a')).equals(bytes(3))).toBe(true);
    await store.remove(BUCKET, ['a']);
    expect(await store.completeUpload(upload, sent, { ifAbsent: true })).toBe('completed');
    expect((await whole('a')).equals(content)).toBe(true);
  });

  it('are copied where the file of the upload holds more than them', async () => {
    const upload = await store.beginUpload(ref('a'));
    const sent = [await store.uploadPart(upload, 1, partOf(1))];
    await appendFile(join(bench.rootDir, 'buckets', BUCKET, 'uploads', upload.uploadId, 'room'), 'more');
    expect(await store.completeUpload(upload, sent)).toBe('completed');
    expect((await whole('a')).equals(Buffer.from(partOf(1)))).toBe(true);
    const [name = ''] = await stored();
    expect((await readFile(join(bench.rootDir, 'buckets', BUCKET, name))).includes('more')).toBe(false);
  });

  it('go with an upload that is given up', async () => {
    const upload = await store.beginUpload(ref('a'));
    await store.uploadPart(upload, 1, partOf(1));
    await store.abortUpload(upload);
    await expect(store.uploadPart(upload, 2, partOf(2))).rejects.toThrow();
    expect(await stored()).toEqual([]);
  });

  it('have one file, which only the first that asks is told', async () => {
    const upload = await store.beginUpload(ref('a'));
    const client = handingClient();
    expect(await client.roomOf(upload)).toContain(upload.uploadId);
    expect(await client.roomOf(upload)).toBeUndefined();
    // Another process, with the same upload: by requests.
    const sent = [await store.uploadPart(upload, 1, partOf(1))];
    expect(await store.completeUpload(upload, sent)).toBe('completed');
    expect((await whole('a')).equals(Buffer.from(partOf(1)))).toBe(true);
  });

  it.each([
    ['bytes that are not there', { at: 0, sizeBytes: 10 }, '400 IncompleteBody'],
    ['a negative place', { at: -1, sizeBytes: 1 }, '400 MalformedJSON'],
    ['no place', {}, '400 MalformedJSON'],
  ])('are not made of %s', async (_, body, expected) => {
    const upload = await store.beginUpload(ref('a'));
    await handingClient().roomOf(upload);
    const answer = await sendRaw(bench.server, {
      method: 'POST',
      path: `/${BUCKET}/a`,
      query: { [HandedQuery.part]: '', partNumber: '1', uploadId: upload.uploadId },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    expect(`${String(answer.status)} ${/<Code>(\w+)/.exec(text)?.[1] ?? ''}`).toBe(expected);
  });

  it('are refused where S3 hands no files', async () => {
    await bench.close();
    await start({ handsFiles: false });
    const upload = await store.beginUpload(ref('a'));
    const sent = [await store.uploadPart(upload, 1, partOf(1))];
    expect(await outcome(store.completeUpload(upload, sent))).toBe('ok');
    expect(operations()).toContain('UploadPart');
  });
});
