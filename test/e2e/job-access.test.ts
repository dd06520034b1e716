import { readFile } from 'node:fs/promises';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { fromTemporaryCredentials } from '@aws-sdk/credential-providers';
import {
  AbortMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import {
  BatchGetCommand,
  BatchWriteCommand,
  DeleteCommand,
  DynamoDBDocumentClient,
  ExecuteStatementCommand,
  GetCommand,
  PutCommand,
  QueryCommand,
  ScanCommand,
  TransactWriteCommand,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { OutputName, ParameterName } from '../../src/contracts/settings.ts';
import { attemptIdOf, type JobId } from '../../src/contracts/ids.ts';
import { attemptDataKey } from '../../src/contracts/keys.ts';
import { EmbeddedSystem, makeLogs } from '../support/embedded-system.ts';

/** What an attacker holds: clients that sign with somebody's keys. */
interface Attacker {
  readonly s3: S3Client;
  readonly records: DynamoDBDocumentClient;
}
type Keys = Readonly<Record<'accessKeyId' | 'secretAccessKey' | 'sessionToken', string>>;

let system: EmbeddedSystem;
let bucket: string;
let TableName: string;
let mine: string;
let other: string;
let done: string;
let asJob: Attacker;
let asOwner: Attacker;

/** Where the first attempt of the first map task of a job writes. */
const dataOf = (jobId: string): string => attemptDataKey(jobId as JobId, attemptIdOf('map', 0, 0));

/** Writes data for its second stage, which then waits until the job is cancelled. */
const waiting = (name: string, input: string): JobSpecInput => ({
  name,
  stages: [
    {
      name: 'map',
      operator: 'exec',
      options: { command: ['cat'] },
      inputs: [{ s3: [input] }],
      partitions: 1,
    },
    {
      name: 'wait',
      operator: 'exec',
      options: { command: ['sleep', '600'] },
      inputs: [{ stage: 'map', pattern: 'all-to-all' }],
    },
  ],
});

function attackerWith(credentials: Keys | EmbeddedSystem['stack']['credentials']): Attacker {
  const { region, environment } = system.stack;
  const common = { region, credentials, maxAttempts: 1 };
  const endpoint = (service: string): string => environment[`AWS_ENDPOINT_URL_${service}`] ?? '';
  return {
    s3: new S3Client({ ...common, endpoint: endpoint('S3'), forcePathStyle: true }),
    records: DynamoDBDocumentClient.from(new DynamoDBClient({ ...common, endpoint: endpoint('DYNAMODB') })),
  };
}

/** `served`, or the name of the refusal. */
async function outcomeOf(sent: Promise<unknown>): Promise<string> {
  try {
    await sent;
    return 'served';
  } catch (cause) {
    return cause instanceof Error ? cause.name : String(cause);
  }
}

const keysSchema = z.looseObject({
  accessKeyId: z.string(),
  secretAccessKey: z.string(),
  sessionToken: z.string(),
});

async function item(pk: string, sk: string): Promise<Record<string, unknown> | undefined> {
  return (await asOwner.records.send(new GetCommand({ TableName, Key: { pk, sk } }))).Item;
}

/** The session that the attempts of a running job work with. */
async function sessionOf(jobId: string): Promise<Keys> {
  const { word } = z.looseObject({ word: z.string() }).parse(await item(`JOB#${jobId}`, 'ACCESS'));
  return keysSchema.parse(await item(`ACCESS#${word}`, 'SESSION'));
}

/** Until a job waits in its second stage; its first has written data by then. */
async function underWay(jobId: string): Promise<string> {
  await system.until(`${jobId} to wait`, async () => {
    const { attempts } = await system.outcomes(jobId);
    return attempts.find(({ attemptId, state }) => attemptId.startsWith('wait/') && state === 'running');
  });
  return jobId;
}

/** Partition of an attempt of a job, whatever its shards. */
async function partitionOf(jobId: string): Promise<string> {
  const { shards } = await system.api.job(jobId);
  for (let shard = 0; shard < (shards ?? 0); shard++) {
    const pk = `J#${jobId}#${String(shard)}`;
    if ((await item(pk, `A#${attemptIdOf('wait', 0, 0)}`)) !== undefined) return pk;
  }
  throw new Error(`no shard of ${jobId} holds its attempt`);
}

beforeAll(async () => {
  system = await EmbeddedSystem.start({ slots: 3, parameters: { [ParameterName.heartbeatMs]: '500' } });
  ({ bucket } = system);
  TableName = system.stack.outputs[OutputName.table] ?? '';
  asOwner = attackerWith(system.stack.credentials);
  const input = await system.put('lines', Buffer.from('one\ntwo\n'));
  const finished = await system.ended(
    await system.submit({
      name: 'a',
      stages: [{ name: 'copy', operator: 'exec', options: { command: ['cat'] }, inputs: [{ s3: [input] }] }],
    }),
  );
  expect(finished.state).toBe('succeeded');
  done = finished.jobId;
  [mine, other] = (await Promise.all(
    ['a', 'b'].map(async (name) => underWay(await system.submit(waiting(name, input)))),
  )) as [string, string];
  asJob = attackerWith(await sessionOf(mine));
}, 240_000);

afterAll(async () => {
  for (const jobId of [mine, other]) await system.api.cancel(jobId);
  for (const jobId of [mine, other]) await system.ended(jobId);
  await system.stop();
}, 240_000);

describe('the session of a job', () => {
  it('reads the records of its tasks, and changes them', async () => {
    const Key = { pk: await partitionOf(mine), sk: 'A#wait/0/0' };
    const found = await asJob.records.send(new GetCommand({ TableName, Key }));
    expect(found.Item).toMatchObject({ state: 'running' });
    const touch = new UpdateCommand({
      TableName,
      Key,
      UpdateExpression: 'SET touched = :yes',
      ExpressionAttributeValues: { ':yes': true },
    });
    expect(await outcomeOf(asJob.records.send(touch))).toBe('served');
  });

  it.each([
    ["another job's attempt", async () => ({ pk: await partitionOf(other), sk: 'A#wait/0/0' })],
    ['a job whose id goes on where its own ends', () => ({ pk: `J#${mine}1#0`, sk: 'A#wait/0/0' })],
    ['its own record', () => ({ pk: `JOB#${mine}`, sk: 'META' })],
    ['its own lease', () => ({ pk: `JOB#${mine}`, sk: 'LEASE' })],
    ['the word of its own session', () => ({ pk: `JOB#${mine}`, sk: 'ACCESS' })],
    ['its own decision log', () => ({ pk: `LOG#${mine}`, sk: '0000000001' })],
    ['the ledger of slots', () => ({ pk: 'LEDGER', sk: 'CAPACITY' })],
    ['a holding in it', () => ({ pk: 'LEDGER', sk: 'JOB#a-job' })],
    ['statistics', () => ({ pk: 'STATISTICS', sk: 'STRAGGLERS#1' })],
  ])('neither reads nor writes %s', async (_, keyOf) => {
    const Key = await keyOf();
    const { records } = asJob;
    const before = await item(Key.pk, Key.sk);
    const update = {
      TableName,
      Key,
      UpdateExpression: 'SET harmed = :yes',
      ExpressionAttributeValues: { ':yes': true },
    };
    const outcomes = [
      outcomeOf(records.send(new GetCommand({ TableName, Key }))),
      outcomeOf(records.send(new UpdateCommand(update))),
      outcomeOf(records.send(new PutCommand({ TableName, Item: { ...Key, harmed: true } }))),
      outcomeOf(records.send(new DeleteCommand({ TableName, Key }))),
    ];
    expect(await Promise.all(outcomes)).toEqual(Array(4).fill('AccessDeniedException'));
    const after = await item(Key.pk, Key.sk);
    expect(after === undefined).toBe(before === undefined);
    expect(after ?? {}).not.toHaveProperty('harmed');
  });

  it('reaches no records by any other call, its own neither', async () => {
    const { records } = asJob;
    const Key = { pk: await partitionOf(mine), sk: 'A#wait/0/0' };
    const outcomes = [
      records.send(new ScanCommand({ TableName })),
      records.send(
        new QueryCommand({
          TableName,
          KeyConditionExpression: 'pk = :pk',
          ExpressionAttributeValues: { ':pk': Key.pk },
        }),
      ),
      records.send(new BatchGetCommand({ RequestItems: { [TableName]: { Keys: [Key] } } })),
      records.send(new BatchWriteCommand({ RequestItems: { [TableName]: [{ PutRequest: { Item: Key } }] } })),
      records.send(new TransactWriteCommand({ TransactItems: [{ Put: { TableName, Item: Key } }] })),
      records.send(new ExecuteStatementCommand({ Statement: `SELECT * FROM "${TableName}"` })),
    ].map(outcomeOf);
    expect(await Promise.all(outcomes)).toEqual(Array(6).fill('AccessDeniedException'));
  });

  it('reads inputs and its own data, writes and removes its data, and uploads to its output', async () => {
    const { s3 } = asJob;
    const own = { Bucket: bucket, Key: `jobs/${mine}/data/map/0/9` };
    const begun = await s3.send(
      new CreateMultipartUploadCommand({ Bucket: bucket, Key: `output/${mine}/part-00009` }),
    );
    const outcomes = [
      s3.send(new GetObjectCommand({ Bucket: bucket, Key: 'input/lines' })),
      s3.send(new GetObjectCommand({ Bucket: bucket, Key: dataOf(mine) })),
      s3.send(new PutObjectCommand({ ...own, Body: 'x' })),
      s3.send(
        new AbortMultipartUploadCommand({
          Bucket: bucket,
          Key: `output/${mine}/part-00009`,
          UploadId: begun.UploadId,
        }),
      ),
    ].map(outcomeOf);
    expect(await Promise.all(outcomes)).toEqual(Array(4).fill('served'));
    expect(await outcomeOf(s3.send(new DeleteObjectCommand(own)))).toBe('served');
  });

  it("neither reads nor writes nor removes another job's data", async () => {
    const { s3 } = asJob;
    const theirs = { Bucket: bucket, Key: dataOf(other) };
    expect(await outcomeOf(asOwner.s3.send(new GetObjectCommand(theirs)))).toBe('served');
    const outcomes = [
      s3.send(new GetObjectCommand(theirs)),
      s3.send(new PutObjectCommand({ ...theirs, Body: 'x' })),
      s3.send(new DeleteObjectCommand(theirs)),
      s3.send(new CreateMultipartUploadCommand(theirs)),
      s3.send(
        new CopyObjectCommand({
          Bucket: bucket,
          Key: `jobs/${mine}/data/stolen`,
          CopySource: `${theirs.Bucket}/${theirs.Key}`,
        }),
      ),
      s3.send(new GetObjectCommand({ Bucket: bucket, Key: dataOf(`${mine}1`) })),
    ].map(outcomeOf);
    expect(await Promise.all(outcomes)).toEqual(Array(6).fill('AccessDenied'));
    const batch = await s3.send(
      new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects: [{ Key: theirs.Key }] } }),
    );
    expect(batch.Errors?.map(({ Code }) => Code)).toEqual(['AccessDenied']);
    expect(await outcomeOf(asOwner.s3.send(new GetObjectCommand(theirs)))).toBe('served');
  });

  it('changes no plan, no input and no output of others, and removes nothing of its own output', async () => {
    const { s3 } = asJob;
    const put = (Key: string) => s3.send(new PutObjectCommand({ Bucket: bucket, Key, Body: 'x' }));
    const remove = (Key: string) => s3.send(new DeleteObjectCommand({ Bucket: bucket, Key }));
    const outcomes = [
      put(`jobs/${mine}/plan.json`),
      put(`jobs/${mine}/stages/wait.json`),
      put('input/lines'),
      put(`output/${done}/part-00000`),
      put(`output/${other}/part-00000`),
      put(`output/${mine}1/part-00000`),
      put('anything'),
      remove('input/lines'),
      remove(`output/${done}/part-00000`),
      remove(`output/${done}/_SUCCESS`),
      remove(`output/${mine}/part-00000`),
      remove(`jobs/${mine}/plan.json`),
    ].map(outcomeOf);
    expect(await Promise.all(outcomes)).toEqual(Array(12).fill('AccessDenied'));
    const kept = await asOwner.s3.send(
      new GetObjectCommand({ Bucket: bucket, Key: `output/${done}/part-00000` }),
    );
    expect(await kept.Body?.transformToString()).toBe('one\ntwo\n');
  });

  it('lists nothing', async () => {
    const { s3 } = asJob;
    const outcomes = [
      s3.send(new ListObjectsV2Command({ Bucket: bucket })),
      s3.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: `jobs/${mine}/` })),
      s3.send(new ListMultipartUploadsCommand({ Bucket: bucket })),
    ].map(outcomeOf);
    expect(await Promise.all(outcomes)).toEqual(Array(3).fill('AccessDenied'));
  });

  it('makes no further sessions', async () => {
    const RoleArn = 'arn:aws:iam::000000000000:role/OutriderCoordinator-JobAccessRole';
    const assume = fromTemporaryCredentials({
      masterCredentials: await sessionOf(mine),
      params: { RoleArn, RoleSessionName: 'thief', Tags: [{ Key: 'outrider-job', Value: other }] },
      clientConfig: {
        region: system.stack.region,
        endpoint: system.stack.environment['AWS_ENDPOINT_URL_STS'] ?? '',
        maxAttempts: 1,
      },
    });
    expect(await outcomeOf(assume())).toBe('AccessDenied');
  });
});

/** The environment of a worker's process; Linux only. */
async function ownKeysOfWorker(): Promise<Keys> {
  const [worker] = system.processes('worker');
  const text = await readFile(`/proc/${String(worker?.pid)}/environ`, 'utf8');
  const variables = new Map(
    text.split('\0').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
  return {
    accessKeyId: variables.get('AWS_ACCESS_KEY_ID') ?? '',
    secretAccessKey: variables.get('AWS_SECRET_ACCESS_KEY') ?? '',
    sessionToken: variables.get('AWS_SESSION_TOKEN') ?? '',
  };
}

describe.runIf(process.platform === 'linux')("a worker's own role", () => {
  it('leads to the session of a job whose word is known, and to nothing else', async () => {
    const { s3, records } = attackerWith(await ownKeysOfWorker());
    const get = (pk: string, sk: string) => records.send(new GetCommand({ TableName, Key: { pk, sk } }));
    const { word } = z.looseObject({ word: z.string() }).parse(await item(`JOB#${mine}`, 'ACCESS'));
    expect(await outcomeOf(get(`ACCESS#${word}`, 'SESSION'))).toBe('served');
    const partition = await partitionOf(mine);
    const outcomes = [
      get(`JOB#${mine}`, 'ACCESS'),
      get(`JOB#${mine}`, 'META'),
      get(partition, 'A#wait/0/0'),
      records.send(new ScanCommand({ TableName })),
      records.send(
        new QueryCommand({
          TableName,
          KeyConditionExpression: 'pk = :pk',
          ExpressionAttributeValues: { ':pk': `ACCESS#${word}` },
        }),
      ),
      records.send(new PutCommand({ TableName, Item: { pk: `ACCESS#${word}`, sk: 'SESSION' } })),
      s3.send(new GetObjectCommand({ Bucket: bucket, Key: 'input/lines' })),
      s3.send(new PutObjectCommand({ Bucket: bucket, Key: `jobs/${mine}/data/x`, Body: 'x' })),
      s3.send(new ListObjectsV2Command({ Bucket: bucket })),
    ].map(outcomeOf);
    expect(await Promise.all(outcomes)).toEqual([
      ...Array(6).fill('AccessDeniedException'),
      ...Array(3).fill('AccessDenied'),
    ]);
  });
});

describe('what a running job shows', () => {
  it('holds its keys neither in its logs nor in what the API tells', async () => {
    const job = await system.api.job(mine);
    const { lines } = await makeLogs(system.stack).read(job.jobId, { since: job.createdAt, limit: 10_000 });
    expect(lines.some(({ text }) => text.includes('entered'))).toBe(true);
    const shown = JSON.stringify([job, await system.api.attempts(mine), lines]);
    const { secretAccessKey, sessionToken } = await sessionOf(mine);
    const { word } = z.looseObject({ word: z.string() }).parse(await item(`JOB#${mine}`, 'ACCESS'));
    for (const secret of [secretAccessKey, sessionToken, word]) expect(shown).not.toContain(secret);
  });
});
