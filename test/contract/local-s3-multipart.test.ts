import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListPartsCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3';
import type {
  CompletedPart,
  CreateMultipartUploadCommandInput,
  UploadPartCommandInput,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { BUCKET, bytes, CREDENTIALS, MIB, outcome, REGION, startBench } from './local-s3-support.ts';
import type { S3Bench } from './local-s3-support.ts';

let bench: S3Bench;

beforeAll(async () => {
  bench = await startBench();
});
afterAll(async () => {
  await bench.close();
});

async function create(key: string, extra: Partial<CreateMultipartUploadCommandInput> = {}): Promise<string> {
  const created = await bench.client.send(
    new CreateMultipartUploadCommand({ Bucket: BUCKET, Key: key, ...extra }),
  );
  return created.UploadId ?? '';
}

async function upload(
  key: string,
  uploadId: string,
  partNumber: number,
  body: Buffer | string,
  extra: Partial<UploadPartCommandInput> = {},
): Promise<CompletedPart> {
  const part = { Bucket: BUCKET, Key: key, UploadId: uploadId, PartNumber: partNumber, Body: body };
  const sent = await bench.client.send(new UploadPartCommand({ ...part, ...extra }));
  const { ETag, ChecksumCRC32, ChecksumSHA256 } = sent;
  return { PartNumber: partNumber, ETag, ChecksumCRC32, ChecksumSHA256 };
}

function complete(key: string, uploadId: string, parts: readonly CompletedPart[], extra: object = {}) {
  return bench.client.send(
    new CompleteMultipartUploadCommand({
      Bucket: BUCKET,
      Key: key,
      UploadId: uploadId,
      MultipartUpload: { Parts: [...parts] },
      ...extra,
    }),
  );
}

async function read(key: string): Promise<Buffer> {
  const got = await bench.client.send(new GetObjectCommand({ Bucket: BUCKET, Key: key }));
  return Buffer.from((await got.Body?.transformToByteArray()) ?? []);
}

describe('a multipart upload', () => {
  it('is gone with the objects of its bucket where that is emptied', async () => {
    await bench.server.createBucket('zone');
    const place = { Bucket: 'zone', Key: 'part' };
    const { UploadId } = await bench.client.send(new CreateMultipartUploadCommand(place));
    const { ETag } = await bench.client.send(
      new UploadPartCommand({ ...place, UploadId, PartNumber: 1, Body: 'x' }),
    );
    await bench.server.emptyBucket('zone');
    const MultipartUpload = { Parts: [{ PartNumber: 1, ETag }] };
    const end = new CompleteMultipartUploadCommand({ ...place, UploadId, MultipartUpload });
    expect(await outcome(bench.client.send(end))).toBe('404 NoSuchUpload');
  });

  it('becomes one object of its parts, with headers, ETag and composite checksum', async () => {
    const first = bytes(5 * MIB, 3);
    const uploadId = await create('joined', {
      ChecksumAlgorithm: 'CRC32',
      ContentType: 'text/x',
      Metadata: { m: '1' },
    });
    const two = await upload('joined', uploadId, 2, 'tail');
    const streamed = await bench.client.send(
      new UploadPartCommand({
        Bucket: BUCKET,
        Key: 'joined',
        UploadId: uploadId,
        PartNumber: 1,
        Body: Readable.from([first.subarray(0, MIB), first.subarray(MIB)]),
        ContentLength: first.length,
      }),
    );
    const { ETag, ChecksumCRC32 } = streamed;
    const done = await complete('joined', uploadId, [{ PartNumber: 1, ETag, ChecksumCRC32 }, two]);
    expect(done.ETag).toMatch(/^"[0-9a-f]{32}-2"$/);
    expect(done.ChecksumCRC32).toMatch(/^.{8}-2$/);
    const got = await bench.client.send(new GetObjectCommand({ Bucket: BUCKET, Key: 'joined' }));
    expect(got).toMatchObject({
      ContentType: 'text/x',
      Metadata: { m: '1' },
      ChecksumType: 'COMPOSITE',
      ETag: done.ETag,
    });
    const body = Buffer.from((await got.Body?.transformToByteArray()) ?? []);
    expect(body.equals(Buffer.concat([first, Buffer.from('tail')]))).toBe(true);
    expect(await readdir(join(bench.rootDir, 'buckets', BUCKET, 'uploads'))).toEqual([]);
  });

  it('has parts with ETags of 32 digits, also where these are no digests', async () => {
    const uploadId = await create('parts');
    const large = await upload('parts', uploadId, 1, bytes(5 * MIB, 3));
    const small = await upload('parts', uploadId, 2, 'a');
    const done = await complete('parts', uploadId, [large, small]);

    expect(large.ETag).toMatch(/^"[0-9a-f]{32}"$/);
    expect(small.ETag).toBe('"0cc175b9c0f1b6a831c399e269772661"');
    expect(done.ETag).toMatch(/^"[0-9a-f]{32}-2"$/);
    expect(await read('parts')).toHaveLength(5 * MIB + 1);
  });

  it('has the ETag and checksum that S3 documents', async () => {
    const uploadId = await create('known', { ChecksumAlgorithm: 'SHA256' });
    expect(await outcome(upload('known', uploadId, 1, 'hello', { ChecksumAlgorithm: 'CRC32' }))).toBe(
      '400 InvalidRequest',
    );
    const part = await upload('known', uploadId, 1, 'hello', { ChecksumAlgorithm: 'SHA256' });
    const done = await complete('known', uploadId, [part]);
    // md5 of the 16 bytes of md5("hello"), and sha256 of the 32 bytes of sha256("hello").
    expect(done.ETag).toBe('"62109206880d38a4010a98e11243924a-1"');
    expect(done.ChecksumSHA256).toBe('lZXJ35AHUUjrBoYDZd8zWEt1v/eCpRDGzUiDpBmDPVA=-1');
  });

  it('may have one empty part', async () => {
    const uploadId = await create('nothing');
    await complete('nothing', uploadId, [await upload('nothing', uploadId, 1, '')]);
    expect(await read('nothing')).toHaveLength(0);
  });

  it('carries a checksum of the whole if it was created so', async () => {
    const uploadId = await create('full', { ChecksumAlgorithm: 'CRC32', ChecksumType: 'FULL_OBJECT' });
    const part = await upload('full', uploadId, 1, '123456789');
    expect(
      await outcome(
        complete('full', uploadId, [part], { ChecksumCRC32: 'AAAAAA==', ChecksumType: 'FULL_OBJECT' }),
      ),
    ).toBe('400 BadDigest');
    const done = await complete('full', uploadId, [part], {
      ChecksumCRC32: 'y/Q5Jg==',
      ChecksumType: 'FULL_OBJECT',
    });
    expect(done).toMatchObject({ ChecksumCRC32: 'y/Q5Jg==', ChecksumType: 'FULL_OBJECT' });
  });

  it('refuses small, unknown, changed and disordered parts, and stays open', async () => {
    const uploadId = await create('picky');
    const one = await upload('picky', uploadId, 1, 'one');
    const two = await upload('picky', uploadId, 2, 'two');
    expect(await outcome(complete('picky', uploadId, [one, two]))).toBe('400 EntityTooSmall');
    expect(await outcome(complete('picky', uploadId, [two, one]))).toBe('400 InvalidPartOrder');
    expect(await outcome(complete('picky', uploadId, [one, one]))).toBe('400 InvalidPartOrder');
    expect(await outcome(complete('picky', uploadId, [{ PartNumber: 3, ETag: two.ETag }]))).toBe(
      '400 InvalidPart',
    );
    expect(await outcome(complete('picky', uploadId, [{ PartNumber: 1, ETag: two.ETag }]))).toBe(
      '400 InvalidPart',
    );
    expect(await outcome(complete('picky', uploadId, []))).toBe('400 MalformedXML');
    expect(await outcome(complete('other', uploadId, [one]))).toBe('404 NoSuchUpload');
    expect(await outcome(complete('picky', uploadId, [one]))).toBe('ok');
    expect((await read('picky')).toString()).toBe('one');
  });

  it('bears gaps between the numbers of parts that came without checksums, and of no others', async () => {
    const bare = new S3Client({
      endpoint: bench.server.endpoint,
      region: REGION,
      credentials: CREDENTIALS,
      forcePathStyle: true,
      requestChecksumCalculation: 'WHEN_REQUIRED',
    });
    onTestFinished(() => {
      bare.destroy();
    });
    const uploadId = await create('gaps');
    const send = async (PartNumber: number, Body: Buffer | string): Promise<CompletedPart> => {
      const part = new UploadPartCommand({
        Bucket: BUCKET,
        Key: 'gaps',
        UploadId: uploadId,
        PartNumber,
        Body,
      });
      return { PartNumber, ETag: (await bare.send(part)).ETag };
    };
    const first = await send(3, bytes(5 * MIB, 3));
    const known = await upload('gaps', uploadId, 7, 'known');
    expect(await outcome(complete('gaps', uploadId, [first, known]))).toBe('400 InvalidPartOrder');
    // One that does not begin with 1 has a gap before it.
    expect(await outcome(complete('gaps', uploadId, [known]))).toBe('400 InvalidPartOrder');
    expect(await outcome(complete('gaps', uploadId, [first, await send(7, 'bare')]))).toBe('ok');
    expect((await read('gaps')).subarray(5 * MIB).toString()).toBe('bare');
  });

  it('with a checksum of the whole bears gaps as well: parts have none in it', async () => {
    const uploadId = await create('whole', { ChecksumAlgorithm: 'CRC32', ChecksumType: 'FULL_OBJECT' });
    const part = await upload('whole', uploadId, 2, 'one');
    expect(await outcome(complete('whole', uploadId, [part]))).toBe('ok');
  });

  it('completed twice answers the same while its object stands, then is gone', async () => {
    const uploadId = await create('twice');
    const part = await upload('twice', uploadId, 1, 'v');
    const first = await complete('twice', uploadId, [part]);
    expect((await complete('twice', uploadId, [part])).ETag).toBe(first.ETag);
    expect(await outcome(complete('twice', uploadId, [part], { IfNoneMatch: '*' }))).toBe(
      '412 PreconditionFailed',
    );
    await bench.client.send(new PutObjectCommand({ Bucket: BUCKET, Key: 'twice', Body: 'w' }));
    expect(await outcome(complete('twice', uploadId, [part]))).toBe('404 NoSuchUpload');
    expect((await read('twice')).toString()).toBe('w');
  });

  it('that loses its condition can still be completed or aborted', async () => {
    await bench.client.send(new PutObjectCommand({ Bucket: BUCKET, Key: 'taken', Body: 'first' }));
    const uploadId = await create('taken');
    const part = await upload('taken', uploadId, 1, 'late');
    expect(await outcome(complete('taken', uploadId, [part], { IfNoneMatch: '*' }))).toBe(
      '412 PreconditionFailed',
    );
    expect((await read('taken')).toString()).toBe('first');
    const abort = new AbortMultipartUploadCommand({ Bucket: BUCKET, Key: 'taken', UploadId: uploadId });
    expect(await outcome(bench.client.send(abort))).toBe('ok');
    expect(await outcome(bench.client.send(abort))).toBe('404 NoSuchUpload');
    expect(await outcome(upload('taken', uploadId, 2, 'x'))).toBe('404 NoSuchUpload');
    expect(await outcome(upload('taken', '../../../..', 2, 'x'))).toBe('404 NoSuchUpload');
  });

  it('copies parts and ranges of other objects', async () => {
    const source = bytes(6 * MIB, 5);
    await bench.client.send(new PutObjectCommand({ Bucket: BUCKET, Key: 'from', Body: source }));
    const uploadId = await create('copied');
    const copyPart = async (partNumber: number, range?: string): Promise<CompletedPart> => {
      const copied = await bench.client.send(
        new UploadPartCopyCommand({
          Bucket: BUCKET,
          Key: 'copied',
          UploadId: uploadId,
          PartNumber: partNumber,
          CopySource: `${BUCKET}/from`,
          ...(range === undefined ? {} : { CopySourceRange: range }),
        }),
      );
      return { PartNumber: partNumber, ETag: copied.CopyPartResult?.ETag };
    };
    const parts = [await copyPart(1), await copyPart(2, 'bytes=10-19')];
    expect(await outcome(copyPart(3, 'bytes=0-99999999'))).toBe('400 InvalidArgument');
    await complete('copied', uploadId, parts);
    expect((await read('copied')).equals(Buffer.concat([source, source.subarray(10, 20)]))).toBe(true);
  });
});

describe('lists', () => {
  it('of parts come in pages, by number, the latest of each', async () => {
    const uploadId = await create('parts', { ChecksumAlgorithm: 'CRC32' });
    for (const [partNumber, text] of [
      [3, 'c'],
      [1, 'old'],
      [10, 'j'],
      [1, 'a'],
    ] as const) {
      await upload('parts', uploadId, partNumber, text);
    }
    const list = (extra: object) =>
      bench.client.send(new ListPartsCommand({ Bucket: BUCKET, Key: 'parts', UploadId: uploadId, ...extra }));
    const page = await list({ MaxParts: 2 });
    expect(page.Parts?.map((part) => [part.PartNumber, part.Size])).toEqual([
      [1, 1],
      [3, 1],
    ]);
    expect(page).toMatchObject({ IsTruncated: true, NextPartNumberMarker: '3', ChecksumAlgorithm: 'CRC32' });
    expect(page.Parts?.[0]).toMatchObject({
      ETag: '"0cc175b9c0f1b6a831c399e269772661"',
      ChecksumCRC32: '6Le+Qw==',
    });
    const rest = await list({ PartNumberMarker: '3' });
    expect(rest.Parts?.map((part) => part.PartNumber)).toEqual([10]);
    expect(rest.IsTruncated).toBe(false);
  });

  it('of uploads come in pages, by key, under a prefix', async () => {
    const ids = new Map<string, string>();
    for (const key of ['u/b', 'u/a', 'u/c', 'v']) ids.set(key, await create(key));
    const list = (extra: object) =>
      bench.client.send(new ListMultipartUploadsCommand({ Bucket: BUCKET, Prefix: 'u/', ...extra }));
    const page = await list({ MaxUploads: 2 });
    expect(page.Uploads?.map((item) => [item.Key, item.UploadId])).toEqual([
      ['u/a', ids.get('u/a')],
      ['u/b', ids.get('u/b')],
    ]);
    const rest = await list({ KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker });
    expect(rest.Uploads?.map((item) => item.Key)).toEqual(['u/c']);
    expect(rest.IsTruncated).toBe(false);
  });
});
