import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import { describe } from 'vitest';
import { startPiped } from '../../../src/local/dynamodb/child-process.ts';
import { describeDynamoStores } from './dynamodb-suites.ts';
import { credentials, region, tablesAt, type TableServer } from './servers.ts';

/**
 * The directory of AWS's own DynamoDB Local with all that it needs, where somebody has it: this run is skipped
 * otherwise, and nothing is fetched for it. It wants Java 17 and, from Maven Central, `com.amazonaws:DynamoDBLocal`
 * 2.6.x: in a folder with a pom.xml that depends on it, `mvn dependency:copy-dependencies -DoutputDirectory=lib`; then
 * `DYNAMODB_LOCAL_DIR=$PWD/lib npx vitest run test/contract/ports/stores-in-dynamodb-local.test.ts`.
 */
const directory = process.env['DYNAMODB_LOCAL_DIR'];
const mainClass = 'com.amazonaws.services.dynamodbv2.local.main.ServerRunner';
/** Java begins within seconds on an idle machine. */
const tries = 240;
const pauseMs = 250;

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port is free');
  return address.port;
}

async function startDynamoDbLocal(lib: string): Promise<TableServer> {
  const port = String(await freePort());
  const java = ['java', `-Djava.library.path=${lib}`, '-cp', join(lib, '*'), mainClass];
  const server = startPiped(
    [...java, '-inMemory', '-disableTelemetry', '-port', port],
    ['pipe', 'ignore', 'pipe'],
  );
  const endpoint = `http://127.0.0.1:${port}`;
  const client = new DynamoDBClient({ endpoint, region, credentials, maxAttempts: 1 });
  for (let tried = 1; ; tried++) {
    try {
      await client.send(new ListTablesCommand({}));
      break;
    } catch (cause) {
      if (tried < tries && server.child.exitCode === null) {
        await delay(pauseMs);
        continue;
      }
      await server.close();
      throw new Error(`DynamoDB Local does not answer: ${server.log()}`, { cause });
    }
  }
  client.destroy();
  return tablesAt(endpoint, () => server.close());
}

describe.skipIf(directory === undefined)("over AWS's own DynamoDB Local", () => {
  describeDynamoStores(() => startDynamoDbLocal(directory ?? ''));
});
