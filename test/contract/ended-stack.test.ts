import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DynamoAttemptStore } from '../../src/adapters/aws/dynamo-attempt-store.ts';
import { DynamoJobStore } from '../../src/adapters/aws/dynamo-job-store.ts';
import { DynamoTable } from '../../src/adapters/aws/dynamo-table.ts';
import { execute } from '../../src/cli/main.ts';
import type { JobId } from '../../src/contracts/ids.ts';
import { startDynamoDb } from '../../src/local/dynamodb/process.ts';
import { makePrivateDirectory } from '../../src/local/private-files.ts';
import { stackCredentials } from '../../src/local/stack-credentials.ts';
import { templateTable } from '../support/template-table.ts';
import { memoryConsole, scratchDir } from '../unit/cli/fixtures.ts';
import { at, attempt, jobRecord, progress, seconds } from './ports/builders.ts';

const jobId = 'count-0123456789ab' as JobId;

/** What a local stack leaves in its directory that had run one job, and was ended. */
async function endedStack(): Promise<string> {
  const stateDir = join(await scratchDir(), 'state');
  await makePrivateDirectory(stateDir);
  const credentials = await stackCredentials(stateDir);
  const region = 'us-east-1';
  const database = await startDynamoDb({ dir: join(stateDir, 'dynamodb'), credentials, region });
  try {
    const client = new DynamoDBClient({ region, credentials, endpoint: database.endpoint });
    await client.send(new CreateTableCommand({ TableName: 'Outrider-Table', ...(await templateTable()) }));
    const table = new DynamoTable(DynamoDBDocumentClient.from(client), 'Outrider-Table');
    const space = { jobId, shards: 4 };
    await new DynamoJobStore(table, () => undefined).create(
      jobRecord(jobId, { shards: 4, state: 'running' }),
    );
    const attempts = new DynamoAttemptStore(table);
    await attempts.create(space, attempt(3), at(1));
    await attempts.claim(space, attempt(3), { node: 'stream-1', zone: 'use1-az1' }, at(2), seconds(1));
    await attempts.report(space, attempt(3), progress(400), at(3), seconds(10));
  } finally {
    await database.close();
  }
  return stateDir;
}

describe('a local stack that has ended', () => {
  it('shows state and attempts of its jobs with nothing up, again and again', async () => {
    const stateDir = await endedStack();
    for (let time = 0; time < 2; time++) {
      const { console, written } = memoryConsole(stateDir);
      expect(await execute(['attempts', jobId, '--state-dir', stateDir], console)).toBe(0);
      expect(written.out).toMatch(/^map\/3\/0 +running +1\.0s .* 400 B +47\.7 MiB +stream-1 +use1-az1 /m);
      expect(await execute(['explain', jobId, '--state-dir', stateDir], console)).toBe(0);
      expect(written.out).toMatch(/^count-0123456789ab has been running for .*\nIts log holds none of its/m);
      expect(await execute(['status', jobId, '--state-dir', stateDir, '--json'], console)).toBe(0);
      expect(written.out).toMatch(/"state": "running"/);
    }
  });

  it('leaves alone what a stack that is up has open, and knows no job that it never had', async () => {
    const stateDir = await endedStack();
    const { console, written } = memoryConsole(stateDir);
    expect(await execute(['attempts', 'other-0123456789ab', '--state-dir', stateDir], console)).toBe(2);
    expect(written.err).toMatch(/^outrider: no service to ask: /);
    await writeFile(join(stateDir, 'stack.lock'), `${String(process.pid)}\n`);
    expect(await execute(['attempts', jobId, '--state-dir', stateDir], console)).toBe(2);
    expect(written.out).toBe('');
  });
});
