import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import {
  BatchGetItemCommand,
  BatchWriteItemCommand,
  ConditionalCheckFailedException,
  CreateTableCommand,
  DescribeTableCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DynamoDbUnavailableError, startDynamoDb } from '../../src/local/dynamodb/process.ts';
import type { DynamoDbProcess } from '../../src/local/dynamodb/process.ts';

const TABLE = 'records';
const credentials = { accessKeyId: 'AKIDLOCAL', secretAccessKey: 'local-secret' };
const region = 'us-east-1';
const hasDynoxide = process.platform === 'linux' && process.arch === 'x64';

function clientFor(endpoint: string): DynamoDBClient {
  return new DynamoDBClient({
    endpoint,
    region,
    credentials,
    maxAttempts: 1,
  });
}

async function createTable(client: DynamoDBClient): Promise<void> {
  await client.send(
    new CreateTableCommand({
      TableName: TABLE,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: [
        { AttributeName: 'pk', AttributeType: 'S' },
        { AttributeName: 'sk', AttributeType: 'S' },
        { AttributeName: 'changedAt', AttributeType: 'N' },
        { AttributeName: 'owner', AttributeType: 'S' },
      ],
      KeySchema: [
        { AttributeName: 'pk', KeyType: 'HASH' },
        { AttributeName: 'sk', KeyType: 'RANGE' },
      ],
      LocalSecondaryIndexes: [
        {
          IndexName: 'byChange',
          KeySchema: [
            { AttributeName: 'pk', KeyType: 'HASH' },
            { AttributeName: 'changedAt', KeyType: 'RANGE' },
          ],
          Projection: { ProjectionType: 'ALL' },
        },
      ],
      GlobalSecondaryIndexes: [
        {
          IndexName: 'byOwner',
          KeySchema: [{ AttributeName: 'owner', KeyType: 'HASH' }],
          Projection: { ProjectionType: 'ALL' },
        },
      ],
    }),
  );
  // As on AWS, a table answers only once it is ACTIVE.
  for (let polls = 0; polls < 1_000; polls++) {
    const { Table } = await client.send(new DescribeTableCommand({ TableName: TABLE }));
    if (Table?.TableStatus === 'ACTIVE') return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error('the table did not become active');
}

/** True while a process of this id exists and is no zombie. */
function isAlive(pid: number): boolean {
  try {
    return !execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
      .trim()
      .startsWith('Z');
  } catch {
    return false;
  }
}

async function eventually(holds: () => boolean, limitMs = 10_000): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  while (performance.now() < deadline) {
    if (holds()) return true;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return holds();
}

describe.each(hasDynoxide ? (['dynoxide', 'dynalite'] as const) : (['dynalite'] as const))('%s', (engine) => {
  let dir: string;
  let db: DynamoDbProcess;
  let client: DynamoDBClient;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'local-dynamodb-'));
    db = await startDynamoDb({ dir, engine, credentials, region });
    client = clientFor(db.endpoint);
    await createTable(client);
  });

  afterAll(async () => {
    client.destroy();
    await db.close();
    await rm(dir, { recursive: true, force: true });
  });

  const put = (sk: string, rest: Record<string, { S: string } | { N: string }> = {}) =>
    client.send(new PutItemCommand({ TableName: TABLE, Item: { pk: { S: 'p' }, sk: { S: sk }, ...rest } }));

  it('puts once under attribute_not_exists', async () => {
    const once = () =>
      client.send(
        new PutItemCommand({
          TableName: TABLE,
          Item: { pk: { S: 'once' }, sk: { S: 'a' } },
          ConditionExpression: 'attribute_not_exists(pk)',
        }),
      );
    await once();
    await expect(once()).rejects.toBeInstanceOf(ConditionalCheckFailedException);
  });

  it.runIf(engine === 'dynoxide')('returns the item that failed a condition', async () => {
    await put('holder', { owner: { S: 'first' } });
    const failed: unknown = await client
      .send(
        new UpdateItemCommand({
          TableName: TABLE,
          Key: { pk: { S: 'p' }, sk: { S: 'holder' } },
          UpdateExpression: 'SET #o = :me',
          ConditionExpression: '#o = :me',
          ExpressionAttributeNames: { '#o': 'owner' },
          ExpressionAttributeValues: { ':me': { S: 'second' } },
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        }),
      )
      .catch((cause: unknown) => cause);
    expect(failed).toBeInstanceOf(ConditionalCheckFailedException);
    expect((failed as ConditionalCheckFailedException).Item).toEqual({
      pk: { S: 'p' },
      sk: { S: 'holder' },
      owner: { S: 'first' },
    });
  });

  it('lets exactly one of many racing writers win', async () => {
    await put('race', { version: { N: '0' } });
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, () =>
        client.send(
          new UpdateItemCommand({
            TableName: TABLE,
            Key: { pk: { S: 'p' }, sk: { S: 'race' } },
            UpdateExpression: 'SET version = :next',
            ConditionExpression: 'version = :seen',
            ExpressionAttributeValues: { ':next': { N: '1' }, ':seen': { N: '0' } },
          }),
        ),
      ),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('updates nested maps, defaults and counters in one write and returns all of it', async () => {
    const key = { pk: { S: 'p' }, sk: { S: 'ledger' } };
    await client.send(
      new PutItemCommand({ TableName: TABLE, Item: { ...key, grants: { M: {} }, used: { N: '2' } } }),
    );
    const { Attributes } = await client.send(
      new UpdateItemCommand({
        TableName: TABLE,
        Key: key,
        UpdateExpression: 'SET grants.#j = :n, seen = if_not_exists(seen, :zero) ADD used :n',
        ConditionExpression: 'used <= :limit AND attribute_not_exists(grants.#j)',
        ExpressionAttributeNames: { '#j': 'job-1' },
        ExpressionAttributeValues: { ':n': { N: '3' }, ':zero': { N: '0' }, ':limit': { N: '10' } },
        ReturnValues: 'ALL_NEW',
      }),
    );
    expect(Attributes).toEqual({
      ...key,
      grants: { M: { 'job-1': { N: '3' } } },
      seen: { N: '0' },
      used: { N: '5' },
    });

    await client.send(
      new UpdateItemCommand({
        TableName: TABLE,
        Key: key,
        UpdateExpression: 'REMOVE grants.#j',
        ExpressionAttributeNames: { '#j': 'job-1' },
      }),
    );
    const { Item } = await client.send(
      new GetItemCommand({ TableName: TABLE, Key: key, ConsistentRead: true }),
    );
    expect(Item?.['grants']).toEqual({ M: {} });
  });

  it('queries a local index for what changed since, oldest first, by pages', async () => {
    for (const [sk, changedAt] of [
      ['c', 30],
      ['a', 10],
      ['b', 20],
      ['d', 40],
    ] as const) {
      await client.send(
        new PutItemCommand({
          TableName: TABLE,
          Item: { pk: { S: 'changes' }, sk: { S: sk }, changedAt: { N: String(changedAt) } },
        }),
      );
    }
    const seen: (string | undefined)[] = [];
    let from: Record<string, never> | undefined;
    for (let page = 0; page < 5; page++) {
      const answer = await client.send(
        new QueryCommand({
          TableName: TABLE,
          IndexName: 'byChange',
          KeyConditionExpression: 'pk = :p AND changedAt > :since',
          ExpressionAttributeValues: { ':p': { S: 'changes' }, ':since': { N: '10' } },
          ConsistentRead: true,
          Limit: 2,
          ExclusiveStartKey: from,
        }),
      );
      seen.push(...(answer.Items ?? []).map(({ sk }) => sk?.S));
      from = answer.LastEvaluatedKey as Record<string, never> | undefined;
      if (from === undefined) break;
    }
    expect(seen).toEqual(['b', 'c', 'd']);
  });

  it('moves an item within the local index when its key changes', async () => {
    const key = { pk: { S: 'moves' }, sk: { S: 'a' } };
    await client.send(new PutItemCommand({ TableName: TABLE, Item: { ...key, changedAt: { N: '1' } } }));
    await client.send(
      new UpdateItemCommand({
        TableName: TABLE,
        Key: key,
        UpdateExpression: 'SET changedAt = :now',
        ExpressionAttributeValues: { ':now': { N: '9' } },
      }),
    );
    const { Items } = await client.send(
      new QueryCommand({
        TableName: TABLE,
        IndexName: 'byChange',
        KeyConditionExpression: 'pk = :p AND changedAt >= :zero',
        ExpressionAttributeValues: { ':p': { S: 'moves' }, ':zero': { N: '0' } },
        ConsistentRead: true,
      }),
    );
    expect(Items).toEqual([{ ...key, changedAt: { N: '9' } }]);
  });

  it('queries a global index, which leaves out items without its key', async () => {
    await put('owned', { owner: { S: 'me' } });
    await put('free');
    const { Items } = await client.send(
      new QueryCommand({
        TableName: TABLE,
        IndexName: 'byOwner',
        KeyConditionExpression: '#o = :me',
        ExpressionAttributeNames: { '#o': 'owner' },
        ExpressionAttributeValues: { ':me': { S: 'me' } },
      }),
    );
    expect(Items?.map(({ sk }) => sk?.S)).toEqual(['owned']);
  });

  it('writes and reads in batches', async () => {
    const keys = ['1', '2', '3'].map((sk) => ({ pk: { S: 'batch' }, sk: { S: sk } }));
    await client.send(
      new BatchWriteItemCommand({
        RequestItems: { [TABLE]: keys.map((Item) => ({ PutRequest: { Item } })) },
      }),
    );
    const { Responses } = await client.send(
      new BatchGetItemCommand({ RequestItems: { [TABLE]: { Keys: keys, ConsistentRead: true } } }),
    );
    expect((Responses?.[TABLE] ?? []).map(({ sk }) => sk?.S).sort()).toEqual(['1', '2', '3']);
  });

  it('keeps what was acknowledged when killed, and serves it from another process, or when started again', async () => {
    const own = await mkdtemp(join(tmpdir(), 'local-dynamodb-kill-'));
    const first = await startDynamoDb({ dir: own, engine, credentials, region });
    const writer = clientFor(first.endpoint);
    await createTable(writer);
    const key = { pk: { S: 'kept' }, sk: { S: 'a' } };
    await writer.send(new PutItemCommand({ TableName: TABLE, Item: key }));
    const { pid } = first;
    process.kill(pid, 'SIGKILL');
    expect(await eventually(() => first.pid !== pid)).toBe(true);
    expect((await writer.send(new GetItemCommand({ TableName: TABLE, Key: key }))).Item).toEqual(key);
    writer.destroy();
    await first.close();

    const second = await startDynamoDb({ dir: own, engine, credentials, region });
    const reader = clientFor(second.endpoint);
    try {
      expect((await reader.send(new GetItemCommand({ TableName: TABLE, Key: key }))).Item).toEqual(key);
    } finally {
      reader.destroy();
      await second.close();
      await rm(own, { recursive: true, force: true });
    }
  });

  it('ends with its parent, even if that is killed', async () => {
    const own = await mkdtemp(join(tmpdir(), 'local-dynamodb-orphan-'));
    const module = new URL('../../src/local/dynamodb/process.ts', import.meta.url).href;
    const script =
      `const { startDynamoDb } = await import(${JSON.stringify(module)});` +
      `const db = await startDynamoDb(${JSON.stringify({ dir: own, engine, credentials, region })});` +
      `console.log(db.pid); setInterval(() => {}, 1000);`;
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(createInterface(parent.stdout), 'line')) as [string];
    const pid = Number(line);
    expect(isAlive(pid)).toBe(true);
    parent.kill('SIGKILL');
    expect(await eventually(() => !isAlive(pid))).toBe(true);
    await rm(own, { recursive: true, force: true });
  });

  it('leads a group of its own, so that a terminal that interrupts the command leaves it up', () => {
    const group = execFileSync('ps', ['-o', 'pgid=', '-p', String(db.pid)], { encoding: 'utf8' });
    expect(Number(group)).toBe(db.pid);
  });

  it('is gone after close, and leaves its files', async () => {
    const own = await mkdtemp(join(tmpdir(), 'local-dynamodb-close-'));
    const other = await startDynamoDb({ dir: own, engine, credentials, region });
    await other.close();
    await other.close();
    expect(isAlive(other.pid)).toBe(false);
    expect(existsSync(join(own, engine === 'dynoxide' ? 'dynamodb.sqlite' : 'dynamodb.level'))).toBe(true);
    await rm(own, { recursive: true, force: true });
  });

  it('says so if the port is taken', async () => {
    const own = await mkdtemp(join(tmpdir(), 'local-dynamodb-port-'));
    const taken = createServer();
    taken.listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const address = taken.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    await expect(startDynamoDb({ dir: own, engine, port, credentials, region })).rejects.toBeInstanceOf(
      DynamoDbUnavailableError,
    );
    taken.close();
    await rm(own, { recursive: true, force: true });
  });
});
