import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  CreateBucketCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Credentials, RequestFacts } from '../../src/local/http/principals.ts';
import { PrincipalRegistry } from '../../src/local/http/principals.ts';
import { startS3Server } from '../../src/local/s3/server.ts';
import type { S3Server } from '../../src/local/s3/server.ts';

const OWNER = { accessKeyId: 'AKIAOWNER', secretAccessKey: 'secret-of-the-owner' };
const ROLE = { accessKeyId: 'ASIAROLE', secretAccessKey: 'secret-of-the-role', sessionToken: 'token-1' };
const region = 'us-east-1';

let dir: string;
let registry: PrincipalRegistry;
let server: S3Server;
let asked: RequestFacts[];
let mayList: boolean;

const clientOf = (credentials: Credentials): S3Client =>
  new S3Client({ endpoint: server.endpoint, region, credentials, forcePathStyle: true, maxAttempts: 1 });

const nameOf = async (outcome: Promise<unknown>): Promise<string> => {
  try {
    await outcome;
    return 'served';
  } catch (cause) {
    return (cause as Error).name;
  }
};

const read = (credentials: Credentials): Promise<string> =>
  nameOf(clientOf(credentials).send(new GetObjectCommand({ Bucket: 'books', Key: 'a' })));

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'outrider-principals-'));
  asked = [];
  mayList = false;
  registry = new PrincipalRegistry();
  registry.add({ credentials: OWNER, principal: { name: 'owner', arn: 'arn:aws:iam::000000000000:user/o' } });
  registry.add({
    credentials: ROLE,
    principal: {
      name: 'reader',
      arn: 'arn:aws:sts::000000000000:assumed-role/reader/s',
      authorize: (facts) => {
        asked.push(facts);
        return /^(GetObject|DeleteObjects)$/.test(facts.operation) ||
          facts.resource === 'books/mine' ||
          (mayList && facts.operation === 'ListObjectsV2')
          ? undefined
          : `reader may not ${facts.operation}`;
      },
    },
  });
  server = await startS3Server({ rootDir: dir, credentials: OWNER, principals: registry, region });
  const owner = clientOf(OWNER);
  await owner.send(new CreateBucketCommand({ Bucket: 'books' }));
  for (const Key of ['a', 'mine'])
    await owner.send(new PutObjectCommand({ Bucket: 'books', Key, Body: 'x' }));
});

afterEach(async () => {
  await server.close();
  await rm(dir, { recursive: true, force: true });
});

describe('PrincipalRegistry', () => {
  it('serves every pair in it, and no other', async () => {
    expect(await read(OWNER)).toBe('served');
    expect(await read(ROLE)).toBe('served');
    expect(await read({ ...OWNER, secretAccessKey: ROLE.secretAccessKey })).toBe('SignatureDoesNotMatch');
    expect(await read({ ...OWNER, accessKeyId: 'AKIAOTHER' })).toBe('InvalidAccessKeyId');
  });

  it('wants the session token of temporary keys, that one and none else', async () => {
    const { accessKeyId, secretAccessKey } = ROLE;
    expect(await read({ accessKeyId, secretAccessKey })).toBe('InvalidToken');
    expect(await read({ ...ROLE, sessionToken: 'token-2' })).toBe('InvalidToken');
  });

  it('refuses keys that have expired or were removed', async () => {
    const old = { accessKeyId: 'ASIAOLD', secretAccessKey: 'old', sessionToken: 't' };
    const principal = { name: 'old', arn: 'arn:aws:sts::000000000000:assumed-role/old/s' };
    registry.add({ credentials: old, principal, expiresAtMs: Date.now() - 1 });
    expect(await read(old)).toBe('ExpiredToken');
    registry.remove(ROLE.accessKeyId);
    expect(await read(ROLE)).toBe('InvalidAccessKeyId');
  });

  it('does not give an id that is taken to another', () => {
    const principal = { name: 'thief', arn: 'arn:aws:iam::000000000000:user/thief' };
    expect(() => {
      registry.add({ credentials: { ...OWNER, secretAccessKey: 'mine' }, principal });
    }).toThrow('access key id AKIAOWNER is taken');
  });

  it('asks the policy of whoever signed, with what the request wants', async () => {
    await read(ROLE);
    expect(asked).toMatchObject([{ service: 's3', operation: 'GetObject', resource: 'books/a' }]);
    const put = clientOf(ROLE).send(new PutObjectCommand({ Bucket: 'books', Key: 'a', Body: 'y' }));
    await expect(put).rejects.toThrow('reader may not PutObject');
  });

  it('tells nobody that a key is not there who may not list its bucket', async () => {
    const get = (credentials: Credentials, Key: string): Promise<string> =>
      nameOf(clientOf(credentials).send(new GetObjectCommand({ Bucket: 'books', Key })));
    expect(await get(OWNER, 'none')).toBe('NoSuchKey');
    expect(await get(ROLE, 'none')).toBe('AccessDenied');
    mayList = true;
    expect(await get(ROLE, 'none')).toBe('NoSuchKey');
    expect(asked.at(-1)).toMatchObject({ service: 's3', operation: 'ListObjectsV2', resource: 'books' });
  });

  it('asks for every key of a deletion of many', async () => {
    const answer = await clientOf(ROLE).send(
      new DeleteObjectsCommand({ Bucket: 'books', Delete: { Objects: [{ Key: 'a' }, { Key: 'mine' }] } }),
    );
    expect(answer.Deleted).toEqual([{ Key: 'mine' }]);
    expect(answer.Errors).toMatchObject([{ Key: 'a', Code: 'AccessDenied' }]);
    expect(await read(OWNER)).toBe('served');
  });
});
