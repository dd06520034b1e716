import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConditionalCheckFailedException } from '@aws-sdk/client-dynamodb';
import {
  CreateTableCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  waitUntilTableExists,
} from '@aws-sdk/client-dynamodb';
import { Sha256 } from '@aws-crypto/sha256-js';
import { SignatureV4 } from '@smithy/signature-v4';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DynamoDbProcess } from '../../src/local/dynamodb/process.ts';
import { startDynamoDb } from '../../src/local/dynamodb/process.ts';

const TABLE = 'records';
const credentials = { accessKeyId: 'AKIDLOCAL', secretAccessKey: 'local-secret' };
const region = 'us-east-1';
const hasDynoxide = process.platform === 'linux' && process.arch === 'x64';

/** A call with a body of one's own, signed. */
async function signedCall(endpoint: string, operation: string, body: string): Promise<Response> {
  const { host, hostname } = new URL(endpoint);
  const signer = new SignatureV4({ service: 'dynamodb', region, credentials, sha256: Sha256 });
  const { headers } = await signer.sign({
    method: 'POST',
    protocol: 'http:',
    hostname,
    path: '/',
    query: {},
    headers: {
      host,
      'content-type': 'application/x-amz-json-1.0',
      'x-amz-target': `DynamoDB_20120810.${operation}`,
    },
    body,
  });
  return fetch(endpoint, { method: 'POST', headers, body });
}

describe.each(hasDynoxide ? (['dynoxide', 'dynalite'] as const) : (['dynalite'] as const))('%s', (engine) => {
  let dir: string;
  let db: DynamoDbProcess;
  let client: DynamoDBClient;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'local-dynamodb-front-'));
    db = await startDynamoDb({ dir, engine, credentials, region });
    client = new DynamoDBClient({ endpoint: db.endpoint, region, credentials });
    await client.send(
      new CreateTableCommand({
        TableName: TABLE,
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: [
          { AttributeName: 'pk', AttributeType: 'S' },
          { AttributeName: 'sk', AttributeType: 'S' },
        ],
        KeySchema: [
          { AttributeName: 'pk', KeyType: 'HASH' },
          { AttributeName: 'sk', KeyType: 'RANGE' },
        ],
      }),
    );
    await waitUntilTableExists(
      { client, maxWaitTime: 20, minDelay: 0.02, maxDelay: 0.1 },
      { TableName: TABLE },
    );
  });

  afterAll(async () => {
    client.destroy();
    await db.close();
    await rm(dir, { recursive: true, force: true });
  });

  const put = (sk: string, rest: Record<string, { S: string } | { N: string }> = {}) =>
    client.send(new PutItemCommand({ TableName: TABLE, Item: { pk: { S: 'p' }, sk: { S: sk }, ...rest } }));

  it.runIf(engine === 'dynoxide')('returns the item that kept another from being put', async () => {
    await put('kept', { owner: { S: 'first' } });
    const failed: unknown = await client
      .send(
        new PutItemCommand({
          TableName: TABLE,
          Item: { pk: { S: 'p' }, sk: { S: 'kept' } },
          ConditionExpression: 'attribute_not_exists(pk)',
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        }),
      )
      .catch((cause: unknown) => cause);
    expect((failed as ConditionalCheckFailedException).Item?.['owner']).toEqual({ S: 'first' });
  });

  it('keeps any text, also such as ends lines elsewhere', async () => {
    const text = 'a\u2028b\u2029c\r\nd\u0000e\u{1f600}"\\ud800';
    await put('text', { v: { S: text.repeat(10_000) }, n: { N: '12345678901234567890.12345678901234567' } });
    const { Item } = await client.send(
      new GetItemCommand({ TableName: TABLE, Key: { pk: { S: 'p' }, sk: { S: 'text' } } }),
    );
    expect(Item?.['v']).toEqual({ S: text.repeat(10_000) });
    expect(Item?.['n']).toEqual({ N: '12345678901234567890.12345678901234567' });
  });

  it('answers what it cannot read with an error', async () => {
    const deep = `{"TableName":"${TABLE}","Key":${'{"M":'.repeat(50_000)}1${'}'.repeat(50_000)}}`;
    const lone = String.raw`{"TableName":"records","Key":{"pk":{"S":"\ud800"},"sk":{"S":"x"}}}`;
    for (const body of ['', 'x', '[]', 'null', deep, ...(engine === 'dynoxide' ? [lone] : [])]) {
      expect([body.slice(0, 40), (await signedCall(db.endpoint, 'GetItem', body)).status]).toEqual([
        body.slice(0, 40),
        400,
      ]);
    }
    expect((await signedCall(db.endpoint, 'NoSuchThing', '{}')).status).toBe(400);
  });

  it.runIf(process.platform === 'linux')(
    'has no address: only the process that started it can reach it',
    () => {
      const sockets = new Set(
        readdirSync(`/proc/${String(db.pid)}/fd`).map((fd) => {
          try {
            return readlinkSync(`/proc/${String(db.pid)}/fd/${fd}`);
          } catch {
            return '';
          }
        }),
      );
      const tables = ['tcp', 'tcp6', 'udp', 'udp6', 'unix'].map((name) =>
        readFileSync(`/proc/net/${name}`, 'utf8'),
      );
      const inodes = tables.flatMap((table, index) =>
        table
          .trim()
          .split('\n')
          .slice(1)
          .map((line) => line.trim().split(/\s+/))
          // Unix sockets that listen or have a name; pairs of connected ones have neither.
          .filter((fields) => index < 4 || fields[7] !== undefined || fields[3] === '00010000')
          .map((fields) => (index < 4 ? fields[9] : fields[6])),
      );
      expect(inodes.filter((inode) => sockets.has(`socket:[${String(inode)}]`))).toEqual([]);
    },
  );

  it.runIf(engine === 'dynoxide')('loses nothing where its process is replaced between calls', async () => {
    const own = await mkdtemp(join(tmpdir(), 'local-dynamodb-renewed-'));
    const other = await startDynamoDb({ dir: own, engine, credentials, region, renewAfterCalls: 20 });
    const first = other.pid;
    await other.createTable({
      TableName: 'renewed',
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
    });
    const keys = Array.from({ length: 100 }, (_, at) => ({ pk: { S: String(at) } }));
    const of = (operation: string, body: object) =>
      signedCall(other.endpoint, operation, JSON.stringify({ TableName: 'renewed', ...body }));
    const put = await Promise.all(keys.map((Item) => of('PutItem', { Item })));
    expect(put.map(({ status }) => status)).toEqual(keys.map(() => 200));
    const got = keys.map(async (Key): Promise<unknown> => {
      const answer = await of('GetItem', { Key, ConsistentRead: true });
      return answer.json();
    });
    expect(await Promise.all(got)).toEqual(keys.map((Item) => ({ Item })));
    expect(other.pid).not.toBe(first);
    await other.close();
    await rm(own, { recursive: true, force: true });
  });

  it('answers with a failure, and soon, once its process is gone and no other starts', async () => {
    const own = await mkdtemp(join(tmpdir(), 'local-dynamodb-gone-'));
    const other = await startDynamoDb({ dir: own, engine, credentials, region });
    await rm(own, { recursive: true });
    await writeFile(own, 'no directory');
    process.kill(other.pid, 'SIGKILL');
    await other.exited;
    expect((await signedCall(other.endpoint, 'ListTables', '{}')).status).toBe(500);
    await other.close();
    await rm(own, { recursive: true, force: true });
  });
});
