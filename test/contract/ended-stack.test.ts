import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DynamoAttemptStore } from '../../src/adapters/aws/dynamo-attempt-store.ts';
import { DynamoJobStore } from '../../src/adapters/aws/dynamo-job-store.ts';
import { DynamoTable } from '../../src/adapters/aws/dynamo-table.ts';
import { execute } from '../../src/cli/main.ts';
import { keepRun } from '../../src/cli/run-records.ts';
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

/** A command in the directory of a stack: its exit code, and what it writes. */
async function run(stateDir: string, ...args: readonly string[]) {
  const { console, written } = memoryConsole(stateDir);
  const exitCode = await execute([...args, '--state-dir', stateDir], console);
  return { exitCode, ...written };
}

const idsIn = (out: string): readonly string[] =>
  (JSON.parse(out) as { jobs: { jobId: string }[] }).jobs.map((job) => job.jobId);

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

  it('lists its jobs with nothing up, beside what is kept of runs, each once', async () => {
    const stateDir = await endedStack();
    const unended =
      '1 job had not ended when the stack did: "outrider local" with the same --state-dir goes on with them\n';
    const alone = await run(stateDir, 'list', '--json');
    expect([alone.exitCode, idsIn(alone.out), alone.err]).toEqual([0, [jobId], unended]);

    const lines: [] = [];
    const newer = jobRecord('sort-0123456789ab' as JobId, { state: 'succeeded', createdAt: at(9) });
    await keepRun(stateDir, { job: newer, attempts: { attempts: [] }, lines });
    const both = await run(stateDir, 'list', '--json');
    expect([both.exitCode, idsIn(both.out), both.err]).toEqual([0, [newer.jobId, jobId], unended]);
    expect(idsIn((await run(stateDir, 'list', '--json', '--limit', '1')).out)).toEqual([newer.jobId]);

    // The job in the words of its run, which ended later than the stack had written down.
    const kept = jobRecord(jobId, { state: 'failed' });
    await keepRun(stateDir, { job: kept, attempts: { attempts: [] }, lines });
    // As a stack leaves it that was killed.
    const connection = {
      ...{ apiUrl: 'http://127.0.0.1:9/v1', region: 'us-east-1', pid: 999_999_999 },
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
      environment: {
        AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:9',
        AWS_ENDPOINT_URL_CLOUDWATCH_LOGS: 'http://127.0.0.1:9',
      },
      outputs: { DataBucketName: 'data' },
    };
    await writeFile(join(stateDir, 'connection.json'), JSON.stringify(connection));
    const killed = await run(stateDir, 'list', '--json');
    expect([killed.exitCode, idsIn(killed.out), killed.err]).toEqual([0, [newer.jobId, jobId], '']);
    expect(killed.out).toContain('"state": "failed"');
  });

  it('answers several at once, one after the other', async () => {
    const stateDir = await endedStack();
    const asked = await Promise.all(
      ['status', 'attempts', 'status', 'list'].map((command) =>
        run(stateDir, command, ...(command === 'list' ? [] : [jobId]), '--json'),
      ),
    );
    expect(asked.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0, 0]);
    for (const [index, part] of ['"state"', '"attempts"', '"state"', '"jobs"'].entries())
      expect(asked[index]?.out).toContain(part);
  });

  it('says whose the directory is where another stack has it, and shows what can be read all the same', async () => {
    const stateDir = await endedStack();
    const inUse = `--state-dir ${stateDir} is in use by process ${String(process.pid)}: end that one, or name another directory`;
    await writeFile(join(stateDir, 'stack.lock'), `${String(process.pid)}\n`);
    for (const args of [['status', jobId], ['attempts', jobId], ['list']])
      expect(await run(stateDir, ...args)).toEqual({ exitCode: 2, out: '', err: `outrider: ${inUse}\n` });

    await mkdir(join(stateDir, 'logs/workers'), { recursive: true });
    await writeFile(join(stateDir, 'logs/workers/a.log'), `${jobId} says so\n`);
    expect(await run(stateDir, 'status', jobId)).toEqual({
      exitCode: 2,
      out: '',
      err: `outrider: ${inUse}\n`,
    });
    expect((await run(stateDir, 'logs', jobId)).out).toMatch(/ count-0123456789ab says so\n$/);

    const kept = jobRecord('sort-0123456789ab' as JobId, { state: 'succeeded' });
    await keepRun(stateDir, { job: kept, attempts: { attempts: [] }, lines: [] });
    const listed = await run(stateDir, 'list', '--json');
    expect([listed.exitCode, idsIn(listed.out), listed.err]).toEqual([
      0,
      [kept.jobId],
      `jobs of the stack in ${stateDir} are left out: ${inUse}\n`,
    ]);
  });
});
