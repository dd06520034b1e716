import { appendFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { writeConnection } from '../../../src/cli/connection.ts';
import { execute } from '../../../src/cli/main.ts';
import { keepRun } from '../../../src/cli/run-records.ts';
import { OutputName } from '../../../src/contracts/settings.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { startLogsServer } from '../../../src/local/logs/server.ts';
import { jobRecord, stageSummary } from '../report/report-records.ts';
import { credentials, FakeService, jobId, region } from './fake-service.ts';
import { memoryConsole, scratchDir } from './fixtures.ts';

const stages = [stageSummary({ tasks: 2 })];
const running = jobRecord({ state: 'running', stages });
const succeeded = jobRecord({ state: 'succeeded', stages, endedAt: epochMs(1_100_000) });

/** What an attempt printed, `ms` after the job was submitted. */
const printed = (ms: number, text: string): string =>
  JSON.stringify({
    ...{ at: new Date(1_000_000 + ms).toISOString(), level: 'info', event: 'user-output', jobId },
    ...{ attemptId: 'tokenize/0/0', stream: 'stdout', text },
  });
const failed = JSON.stringify({
  ...{ at: new Date(1_050_000).toISOString(), level: 'info', event: 'attempt-ended', jobId },
  ...{ attemptId: 'tokenize/1/0', outcome: 'failed', failure: { cause: 'bad-record', message: 'line 7' } },
});
/** More than a page of CloudWatch holds, and then what went wrong. */
const chatty = [...Array.from({ length: 12_000 }, (_, index) => printed(index, `line ${index}`)), failed];

/** A service whose job has logged these lines, in one file; at `endpoint`, if any, others answer for its logs. */
async function logging(lines: readonly string[], endpoint?: string) {
  const service = new FakeService();
  await service.start();
  const directory = await scratchDir();
  const file = join(directory, 'worker.log');
  await writeFile(file, lines.map((line) => `${line}\n`).join(''));
  const logs = await startLogsServer({
    credentials,
    region,
    logGroups: [{ name: 'jobs', directories: [directory] }],
  });
  onTestFinished(() => logs.close());
  const { connection } = service;
  if (connection === undefined) throw new Error('not started');
  await writeConnection(join(service.cwd, '.outrider'), {
    ...connection,
    environment: { ...connection.environment, AWS_ENDPOINT_URL_CLOUDWATCH_LOGS: endpoint ?? logs.endpoint },
    outputs: { ...connection.outputs, [OutputName.logGroup]: 'jobs' },
  });
  service.jobs.set(jobId, succeeded);
  return { service, file };
}

const textsOf = (out: string): readonly string[] =>
  out.split('\n').flatMap((line) => /\| (.*)$/.exec(line)?.[1] ?? []);

describe('logs', () => {
  it('finds lines of a level and of a task wherever they are among many', async () => {
    const { service } = await logging(chatty);
    const line = '00:17:30.000 tokenize/1/0 error: attempt ended  bad-record: line 7  outcome failed\n';
    for (const choice of [
      ['--level', 'error'],
      ['--task', 'tokenize/1'],
    ])
      expect(await service.run('logs', jobId, ...choice)).toEqual({ exitCode: 0, out: line, err: '' });
    const { out } = await service.run('logs', jobId, '--level', 'error', '--json');
    expect(JSON.parse(out)).toMatchObject({ lines: [{ level: 'error', about: 'tokenize/1/0' }] });
  });

  it('says that there are more than it shows', async () => {
    const { service } = await logging(chatty);
    const shown = await service.run('logs', jobId, '--limit', '3');
    expect([shown.exitCode, textsOf(shown.out)]).toEqual([0, ['line 0', 'line 1', 'line 2']]);
    expect(shown.err).toBe(
      'these are the first 3 lines, and there are more: --limit shows up to 10,000, --task and --level choose among all\n',
    );
    const most = await service.run('logs', jobId, '--limit', '10000', '--json');
    expect((JSON.parse(most.out) as { lines: unknown[] }).lines).toHaveLength(10_000);
    expect(most.err).toMatch(/^these are the first 10,000 lines/);
  });

  it('follows over more lines than a page holds, each once', async () => {
    const { service } = await logging(chatty);
    const { exitCode, out, err } = await service.run('logs', jobId, '--limit', '5', '--follow');
    expect([exitCode, err]).toEqual([0, '']);
    expect(textsOf(out)).toEqual(Array.from({ length: 12_000 }, (_, index) => `line ${index}`));
    expect(out.endsWith('line 7  outcome failed\n')).toBe(true);
    const errors = await service.run('logs', jobId, '--level', 'error', '--follow');
    expect(errors.out).toMatch(/^00:17:30\.000 tokenize\/1\/0 error: .*\n$/);
  });

  it(
    'says so, as explain does, where CloudWatch has always more to search',
    { timeout: 60_000 },
    async () => {
      const asked: string[] = [];
      let endsLeft = 0;
      const endless = createServer((request, response) => {
        request.setEncoding('utf8');
        let body = '';
        request.on('data', (chunk: string) => (body += chunk));
        request.on('end', () => {
          asked.push(body);
          response.setHeader('content-type', 'application/x-amz-json-1.1');
          response.end(JSON.stringify({ events: [], ...(endsLeft-- > 0 ? {} : { nextToken: 'more' }) }));
        });
      });
      await new Promise<void>((resolve) => endless.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => void endless.close());
      const { port } = endless.address() as AddressInfo;
      const { service } = await logging([], `http://127.0.0.1:${String(port)}`);
      const cut = /^its log was not read to the end: /;
      expect(await service.run('logs', jobId)).toMatchObject({
        exitCode: 0,
        err: expect.stringMatching(cut) as string,
      });
      // Nothing is looked for of long after the end of a job that has ended.
      expect(JSON.parse(asked[0] ?? '')).toMatchObject({ startTime: 985_000, endTime: 2_900_000 });
      const told = await service.run('explain', jobId, '--json');
      expect(JSON.parse(told.out)).toMatchObject({
        log: { state: 'unread', why: expect.stringMatching(cut) as string },
      });
      // The first read finds an end, and each one after it none.
      endsLeft = 1;
      expect(await service.run('logs', jobId, '--follow')).toMatchObject({
        exitCode: 0,
        err: expect.stringMatching(cut) as string,
      });
    },
  );

  it('ends with what is kept of a job that no stack goes on with', async () => {
    const cwd = await scratchDir();
    const lines = [{ at: epochMs(1_000_005), source: 's', text: printed(5, 'the last') }];
    await keepRun(join(cwd, '.outrider'), { job: running, attempts: { attempts: [] }, lines });
    const { console, written } = memoryConsole(cwd);
    expect(await execute(['logs', jobId, '--follow'], console)).toBe(3);
    expect(textsOf(written.out)).toEqual(['the last']);
    expect(written.err).toBe(
      `outrider: job ${jobId} has not ended, and no stack is up that goes on with it: there is nothing to follow\n`,
    );
    await keepRun(join(cwd, '.outrider'), { job: succeeded, attempts: { attempts: [] }, lines });
    expect(await execute(['logs', jobId, '--follow'], console)).toBe(0);
  });

  it('follows a job that has not logged anything yet', async () => {
    const { service, file } = await logging([]);
    expect(await service.run('logs', jobId, '--follow')).toEqual({ exitCode: 0, out: '', err: '' });
    service.jobs.set(jobId, running);
    const following = service.run('logs', jobId, '--follow');
    await setTimeout(300);
    await appendFile(file, `${printed(5, 'at last')}\n`);
    service.jobs.set(jobId, succeeded);
    const { exitCode, out, err } = await following;
    expect([exitCode, textsOf(out), err]).toEqual([0, ['at last'], '']);
  });
});
