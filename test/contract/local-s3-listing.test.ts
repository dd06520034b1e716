import { ListObjectsV2Command, paginateListObjectsV2, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startBench } from './local-s3-support.ts';
import type { S3Bench } from './local-s3-support.ts';

let bench: S3Bench;

beforeAll(async () => {
  bench = await startBench();
});
afterAll(async () => {
  await bench.close();
});

describe('listing', () => {
  beforeAll(async () => {
    await bench.server.createBucket('listed');
    const keys = ['a', 'b/1', 'b/2', 'b/c/3', 'b0', '\u{1f980}', '\uff5e', 'z z', 'z+z'];
    for (const key of keys)
      await bench.client.send(new PutObjectCommand({ Bucket: 'listed', Key: key, Body: key }));
  });

  const list = (extra: object) => bench.client.send(new ListObjectsV2Command({ Bucket: 'listed', ...extra }));

  it('is in the order of UTF-8 bytes', async () => {
    const page = await list({});
    expect(page.Contents?.map((object) => object.Key)).toEqual([
      'a',
      'b/1',
      'b/2',
      'b/c/3',
      'b0',
      'z z',
      'z+z',
      '\uff5e',
      '\u{1f980}',
    ]);
    expect(page.Contents?.[0]).toMatchObject({ Size: 1, ETag: '"0cc175b9c0f1b6a831c399e269772661"' });
    expect(page).toMatchObject({ IsTruncated: false, KeyCount: 9, MaxKeys: 1000 });
  });

  it('folds keys at the delimiter', async () => {
    const top = await list({ Delimiter: '/' });
    expect(top.CommonPrefixes).toEqual([{ Prefix: 'b/' }]);
    expect(top.Contents?.map((object) => object.Key)).toEqual([
      'a',
      'b0',
      'z z',
      'z+z',
      '\uff5e',
      '\u{1f980}',
    ]);
    const under = await list({ Delimiter: '/', Prefix: 'b/' });
    expect(under.CommonPrefixes).toEqual([{ Prefix: 'b/c/' }]);
    expect(under.Contents?.map((object) => object.Key)).toEqual(['b/1', 'b/2']);
  });

  it('starts after a key, present or not', async () => {
    expect((await list({ StartAfter: 'b/2', MaxKeys: 2 })).Contents?.map((o) => o.Key)).toEqual([
      'b/c/3',
      'b0',
    ]);
    expect((await list({ StartAfter: 'b/1x', MaxKeys: 1 })).Contents?.map((o) => o.Key)).toEqual(['b/2']);
  });

  it.each([1, 2, 3])('gives the same in pages of %i', async (pageSize) => {
    const seen: (string | undefined)[] = [];
    const pages = paginateListObjectsV2(
      { client: bench.client, pageSize },
      { Bucket: 'listed', Delimiter: '/' },
    );
    for await (const page of pages) {
      expect(page.KeyCount).toBeLessThanOrEqual(pageSize);
      seen.push(
        ...(page.Contents ?? []).map((o) => o.Key),
        ...(page.CommonPrefixes ?? []).map((p) => p.Prefix),
      );
    }
    expect(new Set(seen)).toEqual(new Set(['a', 'b/', 'b0', 'z z', 'z+z', '\uff5e', '\u{1f980}']));
    expect(seen).toHaveLength(7);
  });

  it('encodes names as URLs when asked', async () => {
    const page = await list({ EncodingType: 'url', Prefix: 'z' });
    expect(page.Contents?.map((object) => object.Key)).toEqual(['z+z', 'z%2Bz']);
    expect((await list({ MaxKeys: 0 })).KeyCount).toBe(0);
  });
});
