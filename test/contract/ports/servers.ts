import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateTableCommand, DynamoDBClient, waitUntilTableExists } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import { DynamoTable, type ItemKey } from '../../../src/adapters/aws/dynamo-table.ts';
import { type DynamoDbEngine, startDynamoDb } from '../../../src/local/dynamodb/process.ts';
import { startS3Server } from '../../../src/local/s3/server.ts';
import { templateTable } from '../../support/template-table.ts';

/** What every local server takes. */
export const credentials = { accessKeyId: 'AKIDLOCAL', secretAccessKey: 'local-secret' };
export const region = 'us-east-1';

const connection = (endpoint: string) => ({ endpoint, region, credentials, maxAttempts: 3 });

/** A temporary directory and how to remove it. */
async function scratchDir(): Promise<{ dir: string; remove: () => Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'outrider-ports-'));
  return { dir, remove: () => rm(dir, { recursive: true, force: true }) };
}

/** A table, and how to reach past it at its items. */
export interface FreshTable {
  readonly table: DynamoTable;
  readonly name: string;
  readonly documents: DynamoDBDocumentClient;
}

/** A local DynamoDB. `freshTable` and `fresh` give an empty table of the product's layout with each call. */
export interface TableServer {
  freshTable(): Promise<DynamoTable>;
  fresh(): Promise<FreshTable>;
  close(): Promise<void>;
}

/** The engines that run on this machine. */
export const engines: readonly DynamoDbEngine[] =
  process.platform === 'linux' && process.arch === 'x64' ? ['dynoxide', 'dynalite'] : ['dynalite'];

/** Writes over attributes of an item that is there, whatever they were. */
export const spoil = (
  table: DynamoTable,
  key: ItemKey,
  set: Readonly<Record<string, unknown>>,
): Promise<unknown> => table.update(key, { set, when: 'attribute_exists(#pk)' });

/** @param front - gives the endpoint that clients use for the server's, such as a proxy's. */
export async function startTables(
  engine: DynamoDbEngine,
  front: (endpoint: string) => Promise<string> = (endpoint) => Promise.resolve(endpoint),
): Promise<TableServer> {
  const { dir, remove } = await scratchDir();
  const hosts = new Set<string>();
  const server = await startDynamoDb({ dir, engine, credentials, region, hosts });
  const endpoint = await front(server.endpoint);
  hosts.add(new URL(endpoint).host);
  return tablesAt(endpoint, async () => {
    await server.close();
    await remove();
  });
}

/** Tables of a DynamoDB that runs already, which `end` ends. */
export function tablesAt(endpoint: string, end: () => Promise<void>): TableServer {
  const client = new DynamoDBClient(connection(endpoint));
  const documents = DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
  let tables = 0;
  const fresh = async (): Promise<FreshTable> => {
    const name = `outrider-${++tables}`;
    await client.send(new CreateTableCommand({ TableName: name, ...(await templateTable()) }));
    // Dynalite makes a table in its own time; ACTIVE is the sign.
    await waitUntilTableExists(
      { client, maxWaitTime: 20, minDelay: 0.02, maxDelay: 0.1 },
      { TableName: name },
    );
    return { table: new DynamoTable(documents, name), name, documents };
  };
  return {
    fresh,
    freshTable: async () => (await fresh()).table,
    async close() {
      client.destroy();
      await end();
    },
  };
}

/** A local S3 with the bucket `books`, and a client of it; `front` as with tables. */
export async function startObjects(
  front: (endpoint: string) => Promise<string> = (endpoint) => Promise.resolve(endpoint),
  config: S3ClientConfig = {},
): Promise<{ client: S3Client; close(): Promise<void> }> {
  const { dir, remove } = await scratchDir();
  const hosts = new Set<string>();
  const server = await startS3Server({ rootDir: dir, credentials, region, hosts });
  await server.createBucket('books');
  const endpoint = await front(server.endpoint);
  hosts.add(new URL(endpoint).host);
  const client = new S3Client({ ...connection(endpoint), forcePathStyle: true, ...config });
  return {
    client,
    async close() {
      client.destroy();
      await server.close();
      await remove();
    },
  };
}
