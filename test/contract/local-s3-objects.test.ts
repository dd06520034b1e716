import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import {
  CopyObjectCommand,
  CreateBucketCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetBucketAclCommand,
  GetBucketLocationCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListBucketsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  PutObjectTaggingCommand,
} from '@aws-sdk/client-s3';
import type { ChecksumAlgorithm } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FaultHook } from '../../src/local/http/fault-hook.ts';
import { BUCKET, bytes, clientOf, MIB, outcome, startBench } from './local-s3-support.ts';
import type { S3Bench } from './local-s3-support.ts';

let bench: S3Bench;
let fault: FaultHook | undefined;

beforeAll(async () => {
  bench = await startBench({ onRequest: (subject) => fault?.(subject) });
});
afterAll(async () => {
  await bench.close();
});

async function put(key: string, body: string | Buffer): Promise<void> {
  await bench.client.send(new PutObjectCommand({ Bucket: BUCKET, Key: key, Body: body }));
}

async function get(key: string, range?: string): Promise<Buffer> {
  const answer = await bench.client.send(
    new GetObjectCommand({ Bucket: BUCKET, Key: key, ...(range === undefined ? {} : { Range: range }) }),
  );
  return Buffer.from((await answer.Body?.transformToByteArray()) ?? []);
}

describe('buckets', () => {
  it('are made, found, listed and removed once empty', async () => {
    const { client } = bench;
    await client.send(new CreateBucketCommand({ Bucket: 'second-bucket' }));
    expect(await outcome(client.send(new CreateBucketCommand({ Bucket: 'second-bucket' })))).toBe(
      '409 BucketAlreadyOwnedByYou',
    );
    expect(await outcome(client.send(new HeadBucketCommand({ Bucket: 'second-bucket' })))).toBe('ok');
    const listed = await client.send(new ListBucketsCommand({}));
    expect(listed.Buckets?.map((bucket) => bucket.Name)).toEqual([BUCKET, 'second-bucket']);
    const location = await client.send(new GetBucketLocationCommand({ Bucket: BUCKET }));
    expect(location.LocationConstraint).toBe('eu-central-1');

    await client.send(new PutObjectCommand({ Bucket: 'second-bucket', Key: 'k', Body: 'v' }));
    expect(await outcome(client.send(new DeleteBucketCommand({ Bucket: 'second-bucket' })))).toBe(
      '409 BucketNotEmpty',
    );
    await client.send(new DeleteObjectCommand({ Bucket: 'second-bucket', Key: 'k' }));
    await client.send(new DeleteBucketCommand({ Bucket: 'second-bucket' }));
    expect(await outcome(client.send(new HeadBucketCommand({ Bucket: 'second-bucket' })))).toBe(
      '404 NotFound',
    );
    expect(await outcome(client.send(new ListObjectsV2Command({ Bucket: 'second-bucket' })))).toBe(
      '404 NoSuchBucket',
    );
  });

  it('refuse names that could lead elsewhere', async () => {
    await expect(bench.server.createBucket('../x')).rejects.toMatchObject({ code: 'InvalidBucketName' });
    await expect(bench.server.createBucket('a..b')).rejects.toMatchObject({ code: 'InvalidBucketName' });
  });
});

describe('objects', () => {
  it('come back with bytes, ETag, type and metadata', async () => {
    const sent = await bench.client.send(
      new PutObjectCommand({
        Bucket: BUCKET,
        Key: 'meta',
        Body: 'hello',
        ContentType: 'text/plain',
        ContentEncoding: 'identity',
        Metadata: { owner: 'me', note: 'a  b' },
      }),
    );
    expect(sent.ETag).toBe('"5d41402abc4b2a76b9719d911017c592"');
    const got = await bench.client.send(new GetObjectCommand({ Bucket: BUCKET, Key: 'meta' }));
    expect(await got.Body?.transformToString()).toBe('hello');
    expect(got).toMatchObject({
      ETag: '"5d41402abc4b2a76b9719d911017c592"',
      ContentLength: 5,
      ContentType: 'text/plain',
      ContentEncoding: 'identity',
      Metadata: { owner: 'me', note: 'a  b' },
      ChecksumCRC32: 'NhCmhg==',
      ChecksumType: 'FULL_OBJECT',
    });
    const head = await bench.client.send(new HeadObjectCommand({ Bucket: BUCKET, Key: 'meta' }));
    expect(head).toMatchObject({ ContentLength: 5, ContentType: 'text/plain', Metadata: { owner: 'me' } });
  });

  it('that are large are known by an MD5 where one was sent, and else by what nobody takes for a digest', async () => {
    const Body = bytes(MIB, 5);
    const md5 = createHash('md5').update(Body);
    const put = { Bucket: BUCKET, Key: 'large', Body };
    const ContentMD5 = md5.copy().digest('base64');
    const known = await bench.client.send(new PutObjectCommand({ ...put, ContentMD5 }));
    const unknown = await bench.client.send(new PutObjectCommand(put));
    const head = await bench.client.send(new HeadObjectCommand({ Bucket: BUCKET, Key: 'large' }));

    expect(known.ETag).toBe(`"${md5.digest('hex')}"`);
    expect(unknown.ETag).toMatch(/^"[0-9a-f]{32}-1"$/);
    expect(head.ETag).toBe(unknown.ETag);
    const wrong = { ...put, ContentMD5: 'AAAAAAAAAAAAAAAAAAAAAA==' };
    expect(await outcome(bench.client.send(new PutObjectCommand(wrong)))).toBe('400 BadDigest');
    const damaged = { ...put, ChecksumCRC32: 'AAAAAA==' };
    expect(await outcome(bench.client.send(new PutObjectCommand(damaged)))).toBe('400 BadDigest');
    expect((await get('large')).equals(Body)).toBe(true);
  });

  it.each([
    'plain',
    'a/../../../etc/passwd',
    '/leading//double/',
    '..',
    './.',
    'percent%2F%zz',
    'plus+and space&<>"\'`',
    'ünï/日本語/🦀',
    'new\nline\ttab',
    'x'.repeat(1024),
  ])('may have the key %j', async (key) => {
    await put(key, key);
    expect((await get(key)).toString()).toBe(key);
    const listed = await bench.client.send(new ListObjectsV2Command({ Bucket: BUCKET, Prefix: key }));
    expect(listed.Contents?.map((object) => object.Key)).toEqual([key]);
    await bench.client.send(
      new DeleteObjectsCommand({ Bucket: BUCKET, Delete: { Objects: [{ Key: key }] } }),
    );
    expect(await outcome(get(key))).toBe('404 NoSuchKey');
  });

  it('refuse a key beyond 1,024 bytes', async () => {
    expect(await outcome(put('é'.repeat(513), ''))).toBe('400 KeyTooLongError');
  });

  it('may be empty', async () => {
    await put('empty', '');
    expect(await get('empty')).toHaveLength(0);
    expect(await outcome(get('empty', 'bytes=0-0'))).toBe('416 InvalidRange');
  });

  it.each([
    ['bytes=0-3', '0123'],
    ['bytes=4-', '456789'],
    ['bytes=-3', '789'],
    ['bytes=-50', '0123456789'],
    ['bytes=8-99', '89'],
    ['bytes=9-9', '9'],
    ['bytes=5-2', '0123456789'],
  ])('answer the range %s', async (range, expected) => {
    await put('digits', '0123456789');
    expect((await get('digits', range)).toString()).toBe(expected);
  });

  it('answer 416 past their end and tell their size', async () => {
    await put('digits', '0123456789');
    expect(await outcome(get('digits', 'bytes=10-'))).toBe('416 InvalidRange');
    expect(await outcome(get('digits', 'bytes=-0'))).toBe('416 InvalidRange');
    const part = await bench.client.send(
      new GetObjectCommand({ Bucket: BUCKET, Key: 'digits', Range: 'bytes=2-4' }),
    );
    expect(part).toMatchObject({ ContentRange: 'bytes 2-4/10', ContentLength: 3 });
    expect(part.$metadata.httpStatusCode).toBe(206);
    await part.Body?.transformToByteArray();
  });

  it('stream in and out, larger than any buffer', async () => {
    const body = bytes(9 * MIB + 17);
    const pieces = Array.from({ length: 10 }, (_, at) => body.subarray(at * MIB, (at + 1) * MIB));
    await bench.client.send(
      new PutObjectCommand({
        Bucket: BUCKET,
        Key: 'big',
        Body: Readable.from(pieces),
        ContentLength: body.length,
      }),
    );
    expect((await get('big')).equals(body)).toBe(true);
    expect((await get('big', 'bytes=1000000-5000000')).equals(body.subarray(1_000_000, 5_000_001))).toBe(
      true,
    );
  });

  it('are read by 64 at once', async () => {
    const body = bytes(MIB, 7);
    await put('shared', body);
    const wanted = createHash('sha1').update(body).digest('hex');
    const reads = await Promise.all(Array.from({ length: 64 }, () => get('shared')));
    expect(new Set(reads.map((read) => createHash('sha1').update(read).digest('hex')))).toEqual(
      new Set([wanted]),
    );
  });

  it('obey conditions of reads', async () => {
    await put('cond', 'v');
    const etag = '"9e3669d19b675bd57058fd4664205d2a"';
    const read = (extra: object): Promise<string> =>
      outcome(bench.client.send(new GetObjectCommand({ Bucket: BUCKET, Key: 'cond', ...extra })));
    expect(await read({ IfMatch: etag })).toBe('ok');
    expect(await read({ IfMatch: '"0"' })).toBe('412 PreconditionFailed');
    expect(await read({ IfNoneMatch: '"0"' })).toBe('ok');
    expect(await read({ IfNoneMatch: etag })).toMatch(/^304 /);
    expect(await read({ IfUnmodifiedSince: new Date(0) })).toBe('412 PreconditionFailed');
    expect(await read({ IfModifiedSince: new Date('2100-01-01') })).toMatch(/^304 /);
  });

  it('obey conditions of writes and deletes', async () => {
    const write = (body: string, extra: object): Promise<string> =>
      outcome(bench.client.send(new PutObjectCommand({ Bucket: BUCKET, Key: 'cas', Body: body, ...extra })));
    const etagOfA = '"0cc175b9c0f1b6a831c399e269772661"';
    expect(await write('a', { IfMatch: etagOfA })).toBe('404 NoSuchKey');
    expect(await write('a', { IfNoneMatch: '*' })).toBe('ok');
    expect(await write('b', { IfNoneMatch: '*' })).toBe('412 PreconditionFailed');
    expect(await write('b', { IfMatch: etagOfA })).toBe('ok');
    expect(await write('c', { IfMatch: etagOfA })).toBe('412 PreconditionFailed');
    expect(await write('c', { IfNoneMatch: etagOfA })).toBe('501 NotImplemented');
    expect((await get('cas')).toString()).toBe('b');
    const remove = bench.client.send(
      new DeleteObjectCommand({ Bucket: BUCKET, Key: 'cas', IfMatch: etagOfA }),
    );
    expect(await outcome(remove)).toBe('412 PreconditionFailed');
  });

  it('copy with their metadata, or with new', async () => {
    const key = 'copy of/ü+1';
    const source = `${BUCKET}/${encodeURIComponent('src ü')}`;
    await bench.client.send(
      new PutObjectCommand({
        Bucket: BUCKET,
        Key: 'src ü',
        Body: 'abc',
        Metadata: { a: '1' },
        ContentType: 'text/a',
      }),
    );
    const copy = (extra: object) =>
      bench.client.send(new CopyObjectCommand({ Bucket: BUCKET, Key: key, CopySource: source, ...extra }));
    expect((await copy({})).CopyObjectResult).toMatchObject({ ETag: '"900150983cd24fb0d6963f7d28e17f72"' });
    const head = () => bench.client.send(new HeadObjectCommand({ Bucket: BUCKET, Key: key }));
    expect(await head()).toMatchObject({ Metadata: { a: '1' }, ContentType: 'text/a', ContentLength: 3 });
    await copy({ MetadataDirective: 'REPLACE', Metadata: { b: '2' }, ContentType: 'text/b' });
    expect(await head()).toMatchObject({ Metadata: { b: '2' }, ContentType: 'text/b' });
    expect(await outcome(copy({ CopySourceIfMatch: '"0"' }))).toBe('412 PreconditionFailed');
    expect(await outcome(copy({ CopySource: `${BUCKET}/absent` }))).toBe('404 NoSuchKey');
  });

  it('are deleted in a batch, absent ones too', async () => {
    await put('d/1', '1');
    await put('d/2', '2');
    const Objects = [{ Key: 'd/1' }, { Key: 'd/absent' }, { Key: 'd/2' }];
    const answer = await bench.client.send(new DeleteObjectsCommand({ Bucket: BUCKET, Delete: { Objects } }));
    expect(answer.Deleted?.map((deleted) => deleted.Key)).toEqual(['d/1', 'd/absent', 'd/2']);
    const left = await bench.client.send(new ListObjectsV2Command({ Bucket: BUCKET, Prefix: 'd/' }));
    expect(left.KeyCount).toBe(0);
  });
});

describe('checksums', () => {
  // The check values of the CRC catalogue, and the test vectors of FIPS 180.
  it.each([
    ['CRC32', 'ChecksumCRC32', '123456789', 'y/Q5Jg=='],
    ['CRC32C', 'ChecksumCRC32C', '123456789', '4waSgw=='],
    ['CRC64NVME', 'ChecksumCRC64NVME', '123456789', 'rosUhgp5mIg='],
    ['SHA1', 'ChecksumSHA1', 'abc', 'qZk+NkcGgWq6PiVxeFDCbJzQ2J0='],
    ['SHA256', 'ChecksumSHA256', 'abc', 'ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='],
  ] as const)(
    '%s is verified, stored and answered, in a header or behind a stream',
    async (name, field, text, value) => {
      const algorithm: ChecksumAlgorithm = name;
      const streamed = { Body: Readable.from([Buffer.from(text)]), ContentLength: text.length };
      for (const body of [{ Body: text }, streamed]) {
        await bench.client.send(
          new PutObjectCommand({ Bucket: BUCKET, Key: 'sum', ChecksumAlgorithm: algorithm, ...body }),
        );
        const got = await bench.client.send(
          new GetObjectCommand({ Bucket: BUCKET, Key: 'sum', ChecksumMode: 'ENABLED' }),
        );
        expect(await got.Body?.transformToString()).toBe(text);
        expect(got[field]).toBe(value);
      }
    },
  );

  it('that are wrong store nothing', async () => {
    const write = (extra: object): Promise<string> =>
      outcome(
        bench.client.send(new PutObjectCommand({ Bucket: BUCKET, Key: 'wrong', Body: 'abc', ...extra })),
      );
    expect(await write({ ChecksumCRC32: 'AAAAAA==' })).toBe('400 BadDigest');
    expect(await write({ ChecksumSHA256: 'ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa1=' })).toBe(
      '400 BadDigest',
    );
    expect(await write({ ContentMD5: 'AAAAAAAAAAAAAAAAAAAAAA==' })).toBe('400 BadDigest');
    expect(await write({ ContentMD5: 'AAAA' })).toBe('400 InvalidDigest');
    expect(await outcome(get('wrong'))).toBe('404 NoSuchKey');
    expect(await readdir(join(bench.rootDir, 'scratch'))).toEqual([]);
  });
});

describe('what is not there', () => {
  it('is refused, not passed over', async () => {
    const { client } = bench;
    const Tagging = { TagSet: [{ Key: 'a', Value: 'b' }] };
    expect(await outcome(client.send(new GetBucketAclCommand({ Bucket: BUCKET })))).toBe(
      '501 NotImplemented',
    );
    expect(
      await outcome(client.send(new PutObjectTaggingCommand({ Bucket: BUCKET, Key: 'k', Tagging }))),
    ).toBe('501 NotImplemented');
    const tagged = new PutObjectCommand({ Bucket: BUCKET, Key: 'k', Body: '', Tagging: 'a=b' });
    expect(await outcome(client.send(tagged))).toBe('501 NotImplemented');
    const locked = new PutObjectCommand({
      Bucket: BUCKET,
      Key: 'k',
      Body: '',
      ServerSideEncryption: 'aws:kms',
    });
    expect(await outcome(client.send(locked))).toBe('501 NotImplemented');
  });
});

describe('faults', () => {
  it('are injected by operation and key', async () => {
    await put('slow', 'v');
    fault = ({ operation, resource }) => {
      if (operation !== 'GetObject') return undefined;
      return resource === 'data/slow' ? { error: { status: 503, code: 'SlowDown' } } : { drop: true };
    };
    try {
      expect(await outcome(get('slow'))).toBe('503 SlowDown');
      expect(await outcome(get('other'))).toMatch(/^none |ECONNRESET|TimeoutError/);
      expect(await outcome(put('slow', 'w'))).toBe('ok');
    } finally {
      fault = undefined;
    }
    expect((await get('slow')).toString()).toBe('w');
  });
});

it('says in words that the disk is full, by a status upon which clients try again', async () => {
  const noSpace = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  let fullFor = 1;
  fault = () => {
    if (fullFor-- > 0) throw noSpace;
    return undefined;
  };
  const retrying = clientOf(bench.server, 2);
  try {
    await expect(put('late', 'v')).rejects.toMatchObject({
      name: 'StorageFull',
      message:
        'the disk is full where the stack keeps its data: make room there, and try again (ENOSPC: no space left on device, write)',
      $metadata: { httpStatusCode: 500 },
    });
    fullFor = 1;
    const { $metadata } = await retrying.send(
      new PutObjectCommand({ Bucket: BUCKET, Key: 'late', Body: 'v' }),
    );
    expect($metadata.attempts).toBe(2);
  } finally {
    fault = undefined;
    retrying.destroy();
  }
});

describe('a restart', () => {
  it('finds all objects again', async () => {
    await put('kept/one', '1');
    const { server } = await bench.another();
    const client = clientOf(server);
    const listed = await client.send(new ListObjectsV2Command({ Bucket: BUCKET, Prefix: 'kept/' }));
    expect(listed.Contents?.map((object) => object.Key)).toEqual(['kept/one']);
    client.destroy();
  });
});
