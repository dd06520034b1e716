import { createHash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { writeConnection } from '../../../src/cli/connection.ts';
import { objectStoreOf } from '../../../src/cli/embedded-stack.ts';
import { keepRun } from '../../../src/cli/run-records.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { jobRecord } from '../report/report-records.ts';
import { FakeService, jobId } from './fake-service.ts';

const succeeded = jobRecord({ state: 'succeeded', endedAt: epochMs(1_002_000) });
const failed = jobRecord({
  state: 'failed',
  endedAt: epochMs(1_002_000),
  error: { name: 'JobFailed', message: 'count/0: no' },
});

describe('commands to a service', () => {
  let service = new FakeService();
  beforeEach(() => {
    service = new FakeService();
  });

  it('does not say that a job may have been accepted where nobody listens', async () => {
    await service.start();
    const apiUrl = 'http://127.0.0.1:9/v1';
    if (service.connection === undefined) throw new Error('not started');
    await writeConnection(join(service.cwd, '.outrider'), { ...service.connection, apiUrl });
    const submit = ['submit', 'wordcount', '--input', 's3://books/en/', '--output', 's3://results/c/'];
    expect(await service.run(...submit, '--quiet')).toEqual({
      exitCode: 3,
      out: '',
      err: `outrider: no answer from ${apiUrl} (connection refused): is it up, and the endpoint right?\n`,
    });
  });

  it('submits s3:// inputs as they are, under the token that is given', async () => {
    await service.start();
    const result = await service.run(
      'submit',
      'wordcount',
      '--input',
      's3://books/en/',
      '--output',
      's3://results/c/',
      '--client-token',
      't1',
      '--json',
    );
    expect(result).toEqual({
      exitCode: 0,
      out: `{\n  "jobId": "${jobId}",\n  "started": true\n}\n`,
      err: '',
    });
    expect(service.bodies).toMatchObject([
      {
        clientToken: 't1',
        spec: {
          name: 'wordcount',
          output: 's3://results/c/',
          stages: [{ inputs: [{ s3: ['s3://books/en/'] }] }, {}],
        },
      },
    ]);
  });

  it('prints the id alone of a job whose submission was taken and its answer lost', async () => {
    await service.start();
    const submit = ['submit', 'wordcount', '--input', 's3://books/en/', '--output', 's3://results/c/'];
    service.lostAnswers = 1;
    expect(await service.run(...submit, '--quiet')).toEqual({ exitCode: 0, out: `${jobId}\n`, err: '' });
    service.lostAnswers = 1;
    const { out } = await service.run(...submit, '--json');
    expect(JSON.parse(out)).toEqual({ jobId, started: true });
    expect(service.bodies).toHaveLength(4);
  });

  it('says beside the id that a job was started before with the token that was given', async () => {
    await service.start();
    service.jobs.set(jobId, succeeded);
    const submit = ['submit', 'wordcount', '--input', 's3://books/en/', '--output', 's3://results/c/'];
    const again = [...submit, '--client-token', 't1'];
    expect((await service.run(...again)).err).not.toContain('started before');
    const { out, err } = await service.run(...again);
    expect(out).toBe(`${jobId}\n`);
    expect(err).toMatch(new RegExp(`^job ${jobId} was started before with this token\n  follow it `));
    expect(await service.run(...again, '--quiet')).toEqual({ exitCode: 0, out: `${jobId}\n`, err: '' });
    expect((await service.run(...again, '--wait')).err).toBe(
      `job ${jobId} was started before with this token\njob succeeded\n`,
    );
    const { out: document } = await service.run(...again, '--json');
    expect(JSON.parse(document)).toEqual({ jobId, started: false });
  });

  it('uploads local files to a local stack', async () => {
    await service.start();
    await writeFile(join(service.cwd, 'f.txt'), 'some words');
    expect(await service.run('submit', 'wordcount', '--input', 'f.txt')).toEqual({
      exitCode: 0,
      out: `${jobId}\n`,
      err:
        `  follow it         outrider watch ${jobId}\n` +
        `  get its output    outrider get ${jobId} <directory>\n`,
    });
    const { connection } = service;
    if (connection === undefined) throw new Error('not started');
    const contents: string[] = [];
    const store = objectStoreOf(connection);
    for await (const { key } of store.list({ bucket: 'data', key: 'input/' })) {
      contents.push(Buffer.from(await store.readAll({ bucket: 'data', key })).toString());
    }
    expect(contents).toEqual(['some words']);
  });

  it('carries a job file to a deployed service by its content, anew each time, where it is told the bucket', async () => {
    await service.start();
    const { connection } = service;
    if (connection === undefined) throw new Error('not started');
    await writeFile(
      join(service.cwd, 'words.mjs'),
      "import { job, read } from 'outrider'; export default job('words', read.text().write.text());",
    );
    const submit = ['submit', './words.mjs', '--input', 's3://books/en/', '--quiet'];
    const target = service.asDeployed();
    const untold = await service.run(...submit, ...target);
    expect([untold.exitCode, untold.err]).toEqual([
      2,
      'outrider: --data-bucket is needed for code and files that come with a job to a deployed service: its stack names it in the output DataBucketName\n',
    ]);
    const store = objectStoreOf(connection);
    const stored: (readonly [key: string, bytes: Uint8Array])[] = [];
    for (let time = 0; time < 2; time++) {
      expect(await service.run(...submit, ...target, '--data-bucket', 'data')).toMatchObject({ exitCode: 0 });
      for await (const { key } of store.list({ bucket: 'data', key: '' })) {
        stored.push([key, await store.readAll({ bucket: 'data', key })]);
        await store.write({ bucket: 'data', key }, Buffer.from('spoilt'));
      }
    }
    expect(stored[1]).toEqual(stored[0]);
    const [key, bytes] = stored[0] ?? ['', new Uint8Array()];
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    expect([key, stored.length]).toEqual([`input/files/${sha256}`, 2]);
    expect(service.bodies).toMatchObject([
      {
        spec: {
          stages: [{ code: { s3: `s3://data/${key}`, sha256 }, inputs: [{ s3: ['s3://books/en/'] }] }],
        },
      },
      {},
    ]);
  });

  it('waits for the end, takes the uploaded inputs away, and tells failure by its exit code', async () => {
    await service.start();
    await writeFile(join(service.cwd, 'f.txt'), 'some words');
    service.jobs.set(jobId, failed);
    const result = await service.run('submit', 'wordcount', '--input', 'f.txt', '--wait', '--json');
    expect(result.exitCode).toBe(1);
    expect(JSON.parse(result.out)).toEqual(JSON.parse(JSON.stringify(failed)));
    const { connection } = service;
    if (connection === undefined) throw new Error('not started');
    const left: string[] = [];
    for await (const { key } of objectStoreOf(connection).list({ bucket: 'data', key: 'input/' }))
      left.push(key);
    expect(left).toEqual([]);
  });

  it('tells the id of a job whose wait breaks off, also where it says nothing else', async () => {
    await service.start();
    service.refusal = [403, { message: 'Forbidden' }];
    const submit = ['submit', 'wordcount', '--input', 's3://books/en/', '--output', 's3://results/c/'];
    for (const option of ['--json', '--quiet']) {
      const { exitCode, out, err } = await service.run(...submit, '--wait', option);
      expect([exitCode, out]).toEqual([2, '']);
      expect(err).toMatch(
        new RegExp(`^job ${jobId} goes on\\n  follow it .* watch ${jobId}\\n.*\\noutrider: .* Forbidden\\n$`),
      );
    }
  });

  it('waits for a job also where the first questions after its submission are not answered', async () => {
    await service.start();
    service.jobs.set(jobId, succeeded);
    // A client asks five times before it says that nobody answers.
    service.outages = 5;
    const submit = ['submit', 'wordcount', '--input', 's3://books/en/', '--output', 's3://results/c/'];
    const { exitCode, err } = await service.run(...submit, '--wait');
    expect([exitCode, err]).toEqual([
      0,
      `job ${jobId}\nno answer: asked again for up to 10m00s\njob succeeded\n`,
    ]);
  });

  it('shows no output of a job that has none', async () => {
    await service.start();
    service.jobs.set(jobId, { ...failed, output: 's3://results/c/' });
    for (const command of ['status', 'report', 'watch'])
      expect((await service.run(command, jobId)).out).not.toContain('s3://results/c/');
    service.jobs.set(jobId, { ...succeeded, output: 's3://results/c/' });
    for (const command of ['status', 'report', 'watch'])
      expect((await service.run(command, jobId)).out).toContain('output    s3://results/c/\n');
  });

  it('shows, follows and cancels a job', async () => {
    await service.start();
    service.jobs.set(jobId, succeeded);
    const shown = await service.run('status', jobId, '--json');
    expect([shown.exitCode, JSON.parse(shown.out)]).toEqual([0, JSON.parse(JSON.stringify(succeeded))]);
    const watched = await service.run('watch', jobId);
    expect([watched.exitCode, watched.err]).toEqual([0, 'job succeeded\n']);
    expect(watched.out).toContain(`${jobId} succeeded in 2.0s`);
    expect(await service.run('cancel', jobId)).toEqual({
      exitCode: 0,
      out: `${jobId} is told to end\n`,
      err: '',
    });
    expect(service.requests.at(-1)).toBe(`POST /v1/jobs/${jobId}/cancel`);
  });

  it('reports all of a job, and draws its slots over time', async () => {
    await service.start();
    service.jobs.set(jobId, { ...succeeded, deadlineAt: epochMs(1_004_000) });
    const attempt = (task: number, from: number, to: number) => ({
      ...{ attemptId: `tokenize/${task}/0`, state: 'done', order: 'continue', beat: 1 },
      ...{ launchedAt: from, claimedAt: from, endedAt: to },
    });
    service.attempts = [attempt(0, 1_000_000, 1_002_000), attempt(1, 1_000_500, 1_001_500)];
    service.allocations = [{ at: 1_000_100, slots: 2, smoothed: 2, reason: 'admitted', facts: {} }];
    const plain = await service.run('report', jobId, '--plot', 'slots.svg');
    expect(plain).toMatchObject({ exitCode: 0, err: `wrote ${join(service.cwd, 'slots.svg')}\n` });
    expect(plain.out).toContain(`${jobId} succeeded in 2.0s`);
    expect(plain.out).toContain('tokenize/1/0');
    const picture = await readFile(join(service.cwd, 'slots.svg'), 'utf8');
    for (const name of ['attempts that ran', 'asked for', 'oracle']) expect(picture).toContain(`>${name}<`);
    const { out } = await service.run('report', jobId, '--json');
    expect(JSON.parse(out)).toMatchObject({
      job: { jobId },
      attempts: service.attempts,
      allocations: service.allocations,
      timeline: { series: [{ name: 'attempts that ran' }, { name: 'asked for' }, { name: 'oracle' }] },
    });
    expect(await service.run('report', jobId, '--plot', 'no/such/dir.svg')).toMatchObject({
      exitCode: 2,
      err: `outrider: cannot write ${join(service.cwd, 'no/such/dir.svg')}: there is no such file or directory\n`,
    });
  });

  it('changes the deadline of a job, and takes it away', async () => {
    await service.start();
    service.jobs.set(jobId, jobRecord({ deadlineAt: epochMs(1_060_000) }));
    const out = `${jobId} is to end by 1970-01-01 00:17:40Z\n`;
    expect(await service.run('deadline', jobId, '10m')).toEqual({ exitCode: 0, out, err: '' });
    expect(service.requests.at(-1)).toBe(`PUT /v1/jobs/${jobId}/deadline`);
    expect(service.bodies.at(-1)).toEqual({ deadline: '10m' });
    const asked = await service.run('deadline', jobId, '1970-01-01T00:17:40Z', '--json');
    expect(JSON.parse(asked.out)).toMatchObject({ jobId, deadlineAt: 1_060_000 });
    service.jobs.set(jobId, jobRecord());
    const none = await service.run('deadline', jobId, 'none');
    expect(none).toEqual({ exitCode: 0, out: `${jobId} has no deadline\n`, err: '' });
    expect(service.bodies.at(-1)).toEqual({ deadline: 'none' });
    expect((await service.run('deadline', 'x-0123456789ab', '1h')).err).toBe('outrider: no such job: x\n');
  });

  it('gets the output of a job that has succeeded, and of no other', async () => {
    await service.start();
    const { connection } = service;
    if (connection === undefined) throw new Error('not started');
    const store = objectStoreOf(connection);
    const output = `output/${jobId}/`;
    await store.write({ bucket: 'data', key: `${output}part-00000` }, Buffer.from('a 1\n'));
    await store.write({ bucket: 'data', key: `${output}_SUCCESS` }, Buffer.from('{}'));
    const parts = [{ key: `${output}part-00000`, sizeBytes: 4 }];
    service.jobs.set(jobId, { ...succeeded, parts, partTotals: { count: 1, sizeBytes: 4 } });
    expect(await service.run('get', jobId, 'counts')).toEqual({
      exitCode: 0,
      out: `1 part of ${jobId} in counts\n`,
      err: '',
    });
    expect(await readFile(join(service.cwd, 'counts', 'part-00000'), 'utf8')).toBe('a 1\n');
    expect(await service.run('get', jobId, 'counts')).toEqual({
      exitCode: 2,
      out: '',
      err: 'outrider: directory counts is not empty: empty it, name another directory, or give --force where it holds an earlier output\n',
    });
    await store.write({ bucket: 'data', key: `${output}part-00000` }, Buffer.from('b 2\n'));
    expect((await service.run('get', jobId, 'counts', '--force')).exitCode).toBe(0);
    expect(await readFile(join(service.cwd, 'counts', 'part-00000'), 'utf8')).toBe('b 2\n');
    await writeFile(join(service.cwd, 'counts', 'notes.txt'), 'mine');
    expect((await service.run('get', jobId, 'counts', '--force')).err).toBe(
      'outrider: directory counts holds notes.txt, which is no output of a job: remove it, or name another directory\n',
    );
    expect((await readdir(join(service.cwd, 'counts'))).toSorted()).toEqual([
      '_SUCCESS',
      'notes.txt',
      'part-00000',
    ]);
    expect((await service.run('get', jobId, 's3://results/c/')).err).toBe(
      'outrider: directory s3://results/c/ must be a local path: only "outrider submit" writes to s3:// addresses\n',
    );
    service.jobs.set(jobId, failed);
    expect((await service.run('get', jobId, 'others')).err).toBe(
      `outrider: job ${jobId} is failed: it has no output\n`,
    );
    service.jobs.set(jobId, jobRecord({ state: 'running' }));
    expect((await service.run('get', jobId, 'others')).err).toBe(
      `outrider: job ${jobId} is running: wait for it with "outrider watch ${jobId}"\n`,
    );
  });

  it('shows the attempts of a job or of one of its tasks, and refuses a task that there is not', async () => {
    await service.start();
    service.jobs.set(jobId, succeeded);
    const attempt = { state: 'done', order: 'continue', launchedAt: 1, beat: 1 };
    service.attempts = ['tokenize/1/0', 'tokenize/10/0', 'sum/1/0'].map((attemptId) => ({
      ...attempt,
      attemptId,
    }));
    const ids = async (...args: readonly string[]): Promise<unknown> =>
      (
        JSON.parse((await service.run('attempts', jobId, '--json', ...args)).out) as typeof service
      ).attempts.map((each) => (each as { attemptId: string }).attemptId);
    expect(await ids()).toEqual(['tokenize/1/0', 'tokenize/10/0', 'sum/1/0']);
    expect(await ids('--task', 'tokenize')).toEqual(['tokenize/1/0', 'tokenize/10/0']);
    expect(await ids('--task', 'tokenize/1')).toEqual(['tokenize/1/0']);
    expect((await service.run('attempts', jobId)).out).toMatch(/^ATTEMPT +STATE +WAITED/);
    expect(await service.run('attempts', jobId, '--task', 'tokenize/2')).toEqual({
      exitCode: 2,
      out: '',
      err: `outrider: job ${jobId} has no attempts of "tokenize/2": "outrider attempts ${jobId}" names all\n`,
    });
    service.attempts = [];
    expect((await service.run('attempts', jobId)).out).toBe('no attempts\n');
  });

  it('tells by the exit code of watch that a job failed', async () => {
    await service.start();
    service.jobs.set(jobId, failed);
    expect((await service.run('watch', jobId, '--quiet')).exitCode).toBe(1);
  });

  it.each(['status', 'watch', 'cancel'])('answers %s of an unknown job with one line', async (command) => {
    await service.start();
    expect(await service.run(command, 'x-0123456789ab')).toEqual({
      exitCode: 2,
      out: '',
      err: 'outrider: no such job: x\n',
    });
  });

  it('lists page after page', async () => {
    await service.start();
    service.jobs.set(jobId, succeeded);
    service.jobs.set('sort-0123456789ab', { ...failed, jobId: 'sort-0123456789ab' as JobId });
    const { out, exitCode } = await service.run('list', '--json');
    expect(exitCode).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ jobs: [{ state: 'succeeded' }, { state: 'failed' }] });
    expect(service.requests).toEqual(['GET /v1/jobs?limit=20', 'GET /v1/jobs?limit=19&cursor=next']);
  });

  it('lists what is kept of runs beside the jobs of a local stack that is up, newest first, each once', async () => {
    await service.start();
    const stateDir = join(service.cwd, '.outrider');
    service.jobs.set(jobId, jobRecord({ createdAt: epochMs(2_000_000) }));
    service.jobs.set('sort-0123456789ab', { ...succeeded, jobId: 'sort-0123456789ab' as JobId });
    for (const [id, createdAt] of [
      ['grep-0123456789ab', 3_000_000],
      ['join-0123456789ab', 1_500_000],
      ['sort-0123456789ab', 1_000_000],
    ] as const) {
      const job = jobRecord({ jobId: id as JobId, state: 'succeeded', createdAt: epochMs(createdAt) });
      await keepRun(stateDir, { job, attempts: { attempts: [] }, lines: [] });
    }
    const ids = async (...args: readonly string[]): Promise<unknown> => {
      const { out } = await service.run('list', '--json', ...args);
      return (JSON.parse(out) as { jobs: { jobId: string }[] }).jobs.map((job) => job.jobId);
    };
    const all = ['grep-0123456789ab', jobId, 'join-0123456789ab', 'sort-0123456789ab'];
    expect(await ids()).toEqual(all);
    expect(await ids('--limit', '2')).toEqual(all.slice(0, 2));
  });
});
