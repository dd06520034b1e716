import {
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  CreateSessionCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { keepExpressSessions } from '../../src/adapters/aws/express-sessions.ts';
import { S3ObjectStore } from '../../src/adapters/aws/s3-object-store.ts';
import { readPolicy } from '../../src/local/iam/policy.ts';
import type { Statement } from '../../src/local/iam/policy.ts';
import { RoleSessions } from '../../src/local/iam/roles.ts';
import { type Credentials, ownerOf, PrincipalRegistry } from '../../src/local/http/principals.ts';
import { BUCKET, bytes, CREDENTIALS, MIB, outcome, REGION, sendRaw, startBench } from './local-s3-support.ts';
import type { S3Bench } from './local-s3-support.ts';
import { collect } from './ports/builders.ts';

const zonal = 'data--use1-az4--x-s3';
const other = 'data--use1-az5--x-s3';

let bench: S3Bench;
let asked: string[];

async function start(options: Parameters<typeof startBench>[0] = {}): Promise<void> {
  asked = [];
  bench = await startBench({
    onRequest: ({ operation }) => {
      asked.push(operation);
      return undefined;
    },
    ...options,
  });
  for (const name of [zonal, other]) await bench.server.createBucket(name);
}

beforeEach(() => start());

afterEach(async () => {
  vi.useRealTimers();
  await bench.close();
});

const clientWith = (credentials: Credentials): S3Client =>
  new S3Client({
    endpoint: bench.server.endpoint,
    region: REGION,
    credentials,
    forcePathStyle: true,
    maxAttempts: 1,
  });

const put = (key: string, client = bench.client, Bucket = zonal): Promise<unknown> =>
  client.send(new PutObjectCommand({ Bucket, Key: key, Body: 'body' }));

const get = (key: string, client = bench.client, Bucket = zonal): Promise<unknown> =>
  client.send(new GetObjectCommand({ Bucket, Key: key }));

describe('a directory bucket', () => {
  it('is reached by one session for many requests, which the SDK makes by itself', async () => {
    for (const key of ['a', 'b', 'c']) await put(key);
    const { Body } = await bench.client.send(new GetObjectCommand({ Bucket: zonal, Key: 'b' }));
    expect(await Body?.transformToString()).toBe('body');
    expect(asked).toEqual(['CreateSession', 'PutObject', 'PutObject', 'PutObject', 'GetObject']);
    await put('a', bench.client, other);
    expect(asked.slice(5)).toEqual(['CreateSession', 'PutObject']);
  });

  it('refuses keys that are no session of its own, and a session as the key to another', async () => {
    const { Credentials: found } = await bench.client.send(new CreateSessionCommand({ Bucket: zonal }));
    const session = {
      accessKeyId: found?.AccessKeyId ?? '',
      secretAccessKey: found?.SecretAccessKey ?? '',
      sessionToken: found?.SessionToken ?? '',
    };
    // What a client without sessions sends: a request that is signed as of a bucket for general purposes.
    expect((await sendRaw(bench.server, { method: 'GET', path: `/${zonal}/a` })).status).toBe(400);
    expect(await outcome(put('a', clientWith({ ...CREDENTIALS, secretAccessKey: 'wrong' })))).toMatch(/^403/);
    expect(await outcome(bench.client.send(new HeadBucketCommand({ Bucket: zonal })))).toBe('ok');
    const again = new CreateSessionCommand({ Bucket: zonal });
    expect(await outcome(clientWith(session).send(again))).toBe('400 InvalidToken');
    expect(found?.Expiration?.getTime()).toBeGreaterThan(Date.now() + 290_000);
  });

  it('makes another session once one has ended', async () => {
    await put('a');
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 301_000 });
    expect(await outcome(get('a'))).toBe('ok');
    expect(asked.filter((operation) => operation === 'CreateSession')).toHaveLength(2);
  });

  it.each([-7_200_000, -600_000, 600_000, 7_200_000])(
    'is reached by one session while it lasts, and then by another, where clocks differ by %i ms',
    async (aheadMs) => {
      const client = keepExpressSessions(clientWith(CREDENTIALS), () => Date.now() + aheadMs);
      for (const key of ['a', 'b', 'c']) expect(await outcome(put(key, client))).toBe('ok');
      expect(asked.filter((operation) => operation === 'CreateSession')).toHaveLength(1);
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 301_000 });
      expect(await outcome(get('a', client))).toBe('ok');
      expect(asked.filter((operation) => operation === 'CreateSession')).toHaveLength(2);
    },
  );

  it('is reached again by a client that could not make a session, which makes one anew', async () => {
    let isAway = true;
    await bench.close();
    await start({
      onRequest: ({ operation }) => {
        asked.push(operation);
        if (operation !== 'CreateSession' || !isAway) return undefined;
        return { error: { code: 'ServiceUnavailable', message: 'away', status: 503 } };
      },
    });
    const client = keepExpressSessions(clientWith(CREDENTIALS));
    expect(await outcome(put('a', client))).toMatch(/^503/);
    isAway = false;
    expect(await outcome(put('a', client))).toBe('ok');
    expect(await outcome(get('a', client))).toBe('ok');
    expect(asked).toEqual(['CreateSession', 'CreateSession', 'PutObject', 'GetObject']);
    // A minute before a session of five runs out; what cannot be made then is made at the next request.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 245_000 });
    isAway = true;
    expect(await outcome(get('a', client))).toMatch(/^503/);
    isAway = false;
    const both = await Promise.all([outcome(get('a', client)), outcome(get('a', client))]);
    expect(both).toEqual(['ok', 'ok']);
    expect(asked.filter((operation) => operation === 'CreateSession')).toHaveLength(4);
  });

  it('has conditional writes and copies, and ETags that are no MD5', async () => {
    const first = new PutObjectCommand({ Bucket: zonal, Key: 'once', Body: 'body', IfNoneMatch: '*' });
    const { ETag } = await bench.client.send(first);
    expect(ETag).not.toBe('"841a2d689ad86bd1611447453c22c6fc"');
    expect(await outcome(bench.client.send(first))).toBe('412 PreconditionFailed');
    const copy = new CopyObjectCommand({ Bucket: other, Key: 'copy', CopySource: `${zonal}/once` });
    expect(await outcome(bench.client.send(copy))).toBe('ok');
    const toStandard = new CopyObjectCommand({ Bucket: BUCKET, Key: 'copy', CopySource: `${zonal}/once` });
    expect(await outcome(bench.client.send(toStandard))).toBe('ok');
    const { Body } = await bench.client.send(new GetObjectCommand({ Bucket: other, Key: 'copy' }));
    expect(await Body?.transformToString()).toBe('body');
  });

  it('lists what is under a prefix that ends in "/", in no order, page by page', async () => {
    const keys = Array.from({ length: 30 }, (_, number) => `jobs/a/${String(number).padStart(2, '0')}`);
    for (const key of keys) await put(key);
    const found: string[] = [];
    let token: string | undefined;
    do {
      const page = await bench.client.send(
        new ListObjectsV2Command({ Bucket: zonal, Prefix: 'jobs/', MaxKeys: 20, ContinuationToken: token }),
      );
      found.push(...(page.Contents ?? []).map(({ Key = '' }) => Key));
      token = page.NextContinuationToken;
    } while (token !== undefined);
    expect(found).not.toEqual(keys);
    expect(found.toSorted()).toEqual(keys);
    const listed = (input: object): Promise<string> =>
      outcome(bench.client.send(new ListObjectsV2Command({ Bucket: zonal, ...input })));
    expect(await listed({ Prefix: 'jobs/a' })).toBe('400 InvalidRequest');
    expect(await listed({ Delimiter: '-' })).toBe('400 InvalidRequest');
    expect(await listed({ StartAfter: 'jobs/' })).toBe('501 NotImplemented');
  });

  it('takes uploads whose parts are numbered without a gap', async () => {
    const target = { Bucket: zonal, Key: 'large' };
    const complete = async (numbers: readonly number[]): Promise<string> => {
      const { UploadId } = await bench.client.send(
        new CreateMultipartUploadCommand({ ...target, ChecksumAlgorithm: 'CRC32' }),
      );
      const Parts = [];
      for (const PartNumber of numbers) {
        const Body = bytes(PartNumber === numbers.at(-1) ? 10 : 5 * MIB, PartNumber);
        const { ETag, ChecksumCRC32 } = await bench.client.send(
          new UploadPartCommand({ ...target, UploadId, PartNumber, Body }),
        );
        Parts.push({ PartNumber, ETag, ChecksumCRC32 });
      }
      return outcome(
        bench.client.send(
          new CompleteMultipartUploadCommand({ ...target, UploadId, MultipartUpload: { Parts } }),
        ),
      );
    };
    expect(await complete([1, 3])).toBe('400 InvalidPartOrder');
    expect(await complete([1, 2])).toBe('ok');
  });

  it('takes checksums of parts that their upload was begun with, and is completed with them', async () => {
    const target = { Bucket: zonal, Key: 'large', PartNumber: 1 };
    const begin = async (input: object = {}): Promise<string | undefined> =>
      (await bench.client.send(new CreateMultipartUploadCommand({ ...target, ...input }))).UploadId;
    const unsaid = { ...target, UploadId: await begin(), Body: 'part' };
    // The SDK gives it a CRC-32.
    expect(await outcome(bench.client.send(new UploadPartCommand(unsaid)))).toBe('400 InvalidRequest');
    const said = { ...target, UploadId: await begin({ ChecksumAlgorithm: 'CRC32' }) };
    const { ETag } = await bench.client.send(new UploadPartCommand({ ...said, Body: 'part' }));
    const Parts = [{ PartNumber: 1, ETag }];
    const without = new CompleteMultipartUploadCommand({ ...said, MultipartUpload: { Parts } });
    expect(await outcome(bench.client.send(without))).toBe('400 InvalidRequest');
  });

  it.each([{}, { onHedgedPart: () => undefined }])(
    'takes what our store writes in parts (%o)',
    async (options) => {
      const store = new S3ObjectStore(bench.client, options);
      const upload = await store.beginUpload({ bucket: zonal, key: 'large' });
      const parts = [
        await store.uploadPart(upload, 1, bytes(5 * MIB, 1)),
        await store.uploadPart(upload, 2, bytes(10, 2)),
      ];
      expect(await store.completeUpload(upload, parts)).toBe('completed');
      const { ChecksumType } = await bench.client.send(
        new HeadObjectCommand({ Bucket: zonal, Key: 'large', ChecksumMode: 'ENABLED' }),
      );
      expect(ChecksumType).toBe('COMPOSITE');
    },
  );
});

describe('the right to a session', () => {
  const arn = `arn:aws:s3express:${REGION}:000000000000:bucket/${zonal}`;

  /** A client with the keys of a role that has these statements. */
  async function clientOfRole(...statements: readonly object[]): Promise<S3Client> {
    await bench.close();
    const principals = new PrincipalRegistry();
    principals.add({ credentials: CREDENTIALS, principal: ownerOf(CREDENTIALS) });
    const read = readPolicy({ Version: '2012-10-17', Statement: statements });
    const role = {
      name: 'role',
      arn: 'arn:aws:iam::000000000000:role/role',
      trust: [],
      statements: read as readonly Statement[],
      maxSessionSeconds: 3_600,
    };
    const around = {
      region: REGION,
      accountId: '000000000000',
      partitionKeys: new Map(),
      taskRoles: new Map(),
    };
    const sessions = new RoleSessions(principals, [role], around);
    await start({ principals });
    return clientWith(sessions.open({ role, name: 'name', tags: new Map(), policy: undefined }));
  }

  it('gives the whole bucket, and no other one', async () => {
    const client = await clientOfRole({ Effect: 'Allow', Action: 's3express:CreateSession', Resource: arn });
    expect(await outcome(put('a', client))).toBe('ok');
    expect(await outcome(get('a', client))).toBe('ok');
    const remove = new DeleteObjectsCommand({ Bucket: zonal, Delete: { Objects: [{ Key: 'a' }] } });
    expect(await outcome(client.send(remove))).toBe('ok');
    expect(await outcome(get('a', client))).toBe('404 NoSuchKey');
    expect(await outcome(put('a', client, other))).toMatch(/^403/);
  });

  it('is not that to objects, which directory buckets do not know', async () => {
    const client = await clientOfRole({ Effect: 'Allow', Action: 's3:*', Resource: '*' });
    expect(await outcome(put('a', client))).toMatch(/^403/);
    expect(await outcome(put('a', client, BUCKET))).toBe('ok');
  });

  it('may be that to read only', async () => {
    const client = await clientOfRole({
      ...{ Effect: 'Allow', Action: 's3express:CreateSession', Resource: arn },
      Condition: { StringEquals: { 's3express:SessionMode': 'ReadOnly' } },
    });
    await put('a');
    expect(await outcome(get('a', client))).toBe('ok');
    expect(await outcome(put('b', client))).toMatch(/^403/);
  });

  it('is enough, to read, for a copy to another kind of bucket, and for none into it', async () => {
    const client = await clientOfRole(
      {
        ...{ Effect: 'Allow', Action: 's3express:CreateSession', Resource: arn },
        Condition: { StringEquals: { 's3express:SessionMode': 'ReadOnly' } },
      },
      { Effect: 'Allow', Action: 's3:PutObject', Resource: `arn:aws:s3:::${BUCKET}/jobs/*` },
    );
    await put('a');
    await put('a', bench.client, other);
    const copy = (CopySource: string, Key: string, Bucket = BUCKET): Promise<string> =>
      outcome(client.send(new CopyObjectCommand({ CopySource, Bucket, Key })));
    expect(await copy(`${zonal}/a`, 'jobs/a')).toBe('ok');
    expect(await copy(`${zonal}/a`, 'a')).toMatch(/^403/);
    expect(await copy(`${other}/a`, 'jobs/a')).toMatch(/^403/);
    expect(await copy(`${zonal}/a`, 'b', zonal)).toMatch(/^403/);
  });
});

describe('the store of objects on a directory bucket', () => {
  it('writes once, reads ranges, finds and removes all under a prefix', async () => {
    const store = new S3ObjectStore(bench.client);
    const ref = { bucket: zonal, key: 'jobs/a/data/x' };
    expect(await store.write(ref, bytes(100), { ifAbsent: true })).toBe('written');
    expect(await store.write(ref, bytes(100), { ifAbsent: true })).toBe('exists');
    expect(Buffer.from(await store.readAll(ref, { start: 10, end: 20 }))).toEqual(
      bytes(100).subarray(10, 20),
    );
    const upload = await store.beginUpload({ bucket: zonal, key: 'jobs/a/data/y' });
    const prefix = { bucket: zonal, key: 'jobs/a/' };
    expect(await collect(store.listUploads(prefix))).toEqual([upload]);
    await store.abortUpload(upload);
    expect((await collect(store.list(prefix))).map(({ key }) => key)).toEqual([ref.key]);
    await store.remove(zonal, [ref.key]);
    expect(await store.head(ref)).toBeUndefined();
  });
});
