import { describe, expect, it } from 'vitest';
import { ConflictError, InvalidInputError, NotFoundError } from '../../../src/contracts/errors.ts';
import type { ObjectRef } from '../../../src/contracts/keys.ts';
import type { ObjectStore } from '../../../src/ports/object-store.ts';
import { collect, tally } from './builders.ts';

const PART = 5 * 1024 * 1024;
let serial = 0;
const freshPrefix = (): string => `case-${++serial}/`;
const ref = (key: string): ObjectRef => ({ bucket: 'books', key });
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (data: Uint8Array): string => new TextDecoder().decode(data);
const pattern = (length: number): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => (index * 31 + (index >> 8)) & 255);
const join = (chunks: readonly Uint8Array[]): Buffer => Buffer.concat(chunks);

/** What every object store must do. `make` gives a store with a bucket `books`. */
export function describeObjectStore(name: string, make: () => ObjectStore | Promise<ObjectStore>): void {
  describe(`${name} as an object store`, () => {
    describeReading(make);
    describeWriting(make);
    describeListing(make);
    describeUploads(make);
  });
}

function describeReading(make: () => ObjectStore | Promise<ObjectStore>): void {
  it('gives back what was written, whole and in ranges', async () => {
    const store = await make();
    const place = ref(`${freshPrefix()}a`);
    const body = pattern(700_001);
    await store.write(place, body);
    expect(join(await collect(store.read(place))).equals(body)).toBe(true);
    const range = { start: 65_535, end: 200_003 };
    expect(join(await collect(store.read(place, { range }))).equals(body.subarray(65_535, 200_003))).toBe(
      true,
    );
    expect(Buffer.from(await store.readAll(place, range)).equals(body.subarray(65_535, 200_003))).toBe(true);
    expect(Buffer.from(await store.readAll(place)).equals(body)).toBe(true);
  });

  it.each([
    { range: { start: 2, end: 4 }, expected: 'cd' },
    { range: { start: 3, end: 100 }, expected: 'def' },
    { range: { start: 6, end: 10 }, expected: '' },
    { range: { start: 60, end: 100 }, expected: '' },
    { range: { start: 3, end: 3 }, expected: '' },
  ])('cuts the range $range to the object', async ({ range, expected }) => {
    const store = await make();
    const place = ref(`${freshPrefix()}a`);
    await store.write(place, bytes('abcdef'));
    expect(text(join(await collect(store.read(place, { range }))))).toBe(expected);
    expect(text(await store.readAll(place, range))).toBe(expected);
  });

  it('reads an empty object', async () => {
    const store = await make();
    const place = ref(`${freshPrefix()}a`);
    await store.write(place, new Uint8Array());
    expect(join(await collect(store.read(place)))).toHaveLength(0);
    expect(await store.readAll(place, { start: 0, end: 10 })).toHaveLength(0);
    expect(await store.head(place)).toMatchObject({ sizeBytes: 0 });
  });

  it('says that an object is not there', async () => {
    const store = await make();
    const place = ref(`${freshPrefix()}a`);
    await expect(collect(store.read(place))).rejects.toBeInstanceOf(NotFoundError);
    await expect(store.readAll(place)).rejects.toBeInstanceOf(NotFoundError);
    // A job that fails for want of it says no more than this.
    await expect(store.readAll(place)).rejects.toThrow(`s3://${place.bucket}/${place.key}`);
    expect(await store.head(place)).toBeUndefined();
  });

  it('refuses to read another version than the one asked for', async () => {
    const store = await make();
    const place = ref(`${freshPrefix()}a`);
    await store.write(place, bytes('one'));
    const etag = (await store.head(place))?.etag ?? '';
    expect(text(join(await collect(store.read(place, { etag }))))).toBe('one');
    await store.write(place, bytes('two'));
    await expect(collect(store.read(place, { etag }))).rejects.toBeInstanceOf(ConflictError);
  });

  it('lets a reader stop early, many times over', async () => {
    const store = await make();
    const place = ref(`${freshPrefix()}a`);
    await store.write(place, pattern(3_000_000));
    for (let reading = 0; reading < 60; reading++) {
      for await (const chunk of store.read(place)) {
        expect(chunk.length).toBeGreaterThan(0);
        break;
      }
    }
    expect(await store.readAll(place)).toHaveLength(3_000_000);
  });

  it('ends a reading when its signal fires', async () => {
    const store = await make();
    const place = ref(`${freshPrefix()}a`);
    await store.write(place, pattern(8_000_000));
    const abort = new AbortController();
    const reading = async (): Promise<void> => {
      for await (const chunk of store.read(place, { signal: abort.signal })) {
        expect(chunk.length).toBeGreaterThan(0);
        abort.abort();
      }
    };
    await expect(reading()).rejects.toHaveProperty('name', 'AbortError');
  });
}

function describeWriting(make: () => ObjectStore | Promise<ObjectStore>): void {
  it('keeps metadata, and an etag that tells contents apart', async () => {
    const store = await make();
    const place = ref(`${freshPrefix()}a`);
    const metadata = { 'outrider-attempt': 'job/map/0/1' };
    await store.write(place, bytes('one'), { metadata });
    const first = await store.head(place);
    expect(first).toMatchObject({ key: place.key, sizeBytes: 3, metadata });
    await store.write(place, bytes('two'), { metadata, ifAbsent: false });
    expect((await store.head(place))?.etag).not.toBe(first?.etag);
  });

  it('lets exactly one of twenty rivals write an absent object, and keeps its bytes', async () => {
    const store = await make();
    const place = ref(`${freshPrefix()}a`);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, rival) =>
        store.write(place, bytes(`rival ${rival}`), { ifAbsent: true, metadata: { by: String(rival) } }),
      ),
    );
    expect(tally(answers)).toEqual({ written: 1, exists: 19 });
    const winner = answers.indexOf('written');
    expect(text(await store.readAll(place))).toBe(`rival ${winner}`);
    expect((await store.head(place))?.metadata).toEqual({ by: String(winner) });
  });

  it('copies an object as it was seen, metadata too, and over none that is there', async () => {
    const store = await make();
    const prefix = freshPrefix();
    const [from, to] = [ref(`${prefix}a`), ref(`${prefix}b/a copy`)];
    await store.write(from, bytes('one'), { metadata: { made: 'once' } });
    const seen = { ...from, etag: (await store.head(from))?.etag ?? '' };
    expect(await store.copy(seen, to)).toBe('copied');
    expect(await store.head(to)).toMatchObject({ sizeBytes: 3, metadata: { made: 'once' } });
    await store.write(from, bytes('another'));
    expect(await store.copy(seen, to)).toBe('exists');
    expect(text(await store.readAll(to))).toBe('one');
    await expect(store.copy(seen, ref(`${prefix}c`))).rejects.toThrow(ConflictError);
    await store.remove('books', [from.key]);
    expect(await store.copy(seen, ref(`${prefix}c`))).toBe('gone');
    expect(await store.head(ref(`${prefix}c`))).toBeUndefined();
  });

  it('does not see later changes of the bytes that it was given', async () => {
    const store = await make();
    const place = ref(`${freshPrefix()}a`);
    const body = bytes('one');
    await store.write(place, body);
    body.fill(0);
    expect(text(await store.readAll(place))).toBe('one');
  });
}

function describeListing(make: () => ObjectStore | Promise<ObjectStore>): void {
  it('lists by prefix in byte order of UTF-8, with sizes', async () => {
    const store = await make();
    const prefix = freshPrefix();
    // U+1F600 sorts after U+FF5E in UTF-8, but before it in UTF-16.
    const names = ['B', 'a b+c', 'a/b', 'a/ä', 'a\u0001', '\uff5e', '\u{1f600}'];
    await Promise.all(names.map((name, index) => store.write(ref(prefix + name), pattern(index))));
    await store.write(ref(`${prefix.slice(0, -1)}-other/a`), bytes('x'));
    const listed = await collect(store.list(ref(prefix)));
    const expected = names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect(listed.map(({ key }) => key.slice(prefix.length))).toEqual(expected);
    for (const { key, sizeBytes } of listed) expect(sizeBytes).toBe(names.indexOf(key.slice(prefix.length)));
    expect((await collect(store.list(ref(`${prefix}a/`)))).map(({ key }) => key)).toEqual([
      `${prefix}a/b`,
      `${prefix}a/ä`,
    ]);
    expect(await collect(store.list(ref(`${prefix}none`)))).toEqual([]);
  });

  it('lists and removes more objects than one page or one request holds', async () => {
    const store = await make();
    const prefix = freshPrefix();
    const keys = Array.from({ length: 1_050 }, (_, index) => `${prefix}${String(index).padStart(5, '0')}`);
    for (let from = 0; from < keys.length; from += 50) {
      await Promise.all(keys.slice(from, from + 50).map((key) => store.write(ref(key), bytes('x'))));
    }
    expect((await collect(store.list(ref(prefix)))).map(({ key }) => key)).toEqual(keys);
    await store.remove('books', [...keys.slice(1), `${prefix}never-there`]);
    expect((await collect(store.list(ref(prefix)))).map(({ key }) => key)).toEqual(keys.slice(0, 1));
    await store.remove('books', []);
    await store.remove('books', keys);
    expect(await collect(store.list(ref(prefix)))).toEqual([]);
  }, 30_000);
}

function describeUploads(make: () => ObjectStore | Promise<ObjectStore>): void {
  it('shows an upload in parts only when it is complete', async () => {
    const store = await make();
    const place = ref(`${freshPrefix()}a`);
    const upload = await store.beginUpload(place, { by: 'me' });
    const second = await store.uploadPart(upload, 2, bytes('tail'));
    await store.uploadPart(upload, 1, pattern(10));
    const first = await store.uploadPart(upload, 1, pattern(PART));
    expect(await store.head(place)).toBeUndefined();
    expect(await collect(store.listUploads(place))).toEqual([upload]);
    expect(await store.completeUpload(upload, [first, second], { ifAbsent: true })).toBe('completed');
    expect(await store.head(place)).toMatchObject({ sizeBytes: PART + 4, metadata: { by: 'me' } });
    expect(text(await store.readAll(place, { start: PART, end: PART + 4 }))).toBe('tail');
    expect(await collect(store.listUploads(place))).toEqual([]);
  });

  it('leaves the object alone when an upload is completed again, or was aborted', async () => {
    const store = await make();
    const place = ref(`${freshPrefix()}a`);
    const done = await store.beginUpload(place);
    const part = await store.uploadPart(done, 1, bytes('x'));
    await store.completeUpload(done, [part]);
    expect(['completed', 'gone']).toContain(await store.completeUpload(done, [part]));
    const dropped = await store.beginUpload(place);
    await store.uploadPart(dropped, 1, bytes('y'));
    await store.abortUpload(dropped);
    await store.abortUpload(dropped);
    expect(await store.completeUpload(dropped, [part])).toBe('gone');
    await expect(store.uploadPart(dropped, 1, bytes('z'))).rejects.toBeInstanceOf(NotFoundError);
    expect(text(await store.readAll(place))).toBe('x');
  });

  it('lets exactly one of ten rival uploads become the object', async () => {
    const store = await make();
    const place = ref(`${freshPrefix()}a`);
    const rivals = await Promise.all(
      Array.from({ length: 10 }, async (_, rival) => {
        const upload = await store.beginUpload(place);
        return { upload, part: await store.uploadPart(upload, 1, bytes(`rival ${rival}`)) };
      }),
    );
    const answers = await Promise.all(
      rivals.map(({ upload, part }) => store.completeUpload(upload, [part], { ifAbsent: true })),
    );
    expect(tally(answers)).toEqual({ completed: 1, exists: 9 });
    expect(text(await store.readAll(place))).toBe(`rival ${answers.indexOf('completed')}`);
    await Promise.all(rivals.map(({ upload }) => store.abortUpload(upload)));
    expect(await collect(store.listUploads(place))).toEqual([]);
  });

  it('refuses parts that are too small or not what was uploaded', async () => {
    const store = await make();
    const upload = await store.beginUpload(ref(`${freshPrefix()}a`));
    const first = await store.uploadPart(upload, 1, bytes('small'));
    const second = await store.uploadPart(upload, 2, bytes('last'));
    await expect(store.completeUpload(upload, [first, second])).rejects.toBeInstanceOf(InvalidInputError);
    await expect(store.completeUpload(upload, [{ number: 1, etag: second.etag }])).rejects.toBeInstanceOf(
      InvalidInputError,
    );
  });

  it('lists uploads under a prefix only', async () => {
    const store = await make();
    const prefix = freshPrefix();
    const inside = await Promise.all(['a', 'b', 'b'].map((name) => store.beginUpload(ref(prefix + name))));
    await store.beginUpload(ref(freshPrefix()));
    const listed = await collect(store.listUploads(ref(prefix)));
    const ids = (uploads: readonly { uploadId: string }[]): string[] =>
      uploads.map(({ uploadId }) => uploadId).toSorted();
    expect(ids(listed)).toEqual(ids(inside));
  });
}
