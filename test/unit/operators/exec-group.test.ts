import { spawn } from 'node:child_process';
import { mkdtemp, open as openFile, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { exec } from '../../../src/operators/exec.ts';
import { credentialEnvironment, plainEnvironment } from '../../../src/worker/processes/child-environment.ts';
import type { TaskInput } from '../../../src/worker/operator.ts';
import { runTask, seeded, sourceOf } from '../../support/operator-bench.ts';
import { expectNoProcessWith, processesWith } from '../../support/processes.ts';

/** Names and namespaces of processes are Linux's here. */
const onLinux = process.platform === 'linux';
const input = (text: string): TaskInput => sourceOf(Buffer.from(text), seeded(1));
const run = (script: string, more: Parameters<typeof runTask>[3] = {}) =>
  runTask(exec, { command: ['sh', '-c', script] }, [input('x\n')], more);

let serial = 7_000_000 + (process.pid % 1_000) * 1_000;
/** A length of sleep that no other process has, by which one is found again. */
const unique = (): string => `${++serial}.5`;

describe.runIf(onLinux)('what a program of exec leaves behind', () => {
  it('ends with it: a grandchild in the background that holds its pipes', async () => {
    const time = unique();
    const { text } = await run(`sleep ${time} & echo said`);
    expect(text.toString()).toBe('said\n');
    await expectNoProcessWith(time);
  });

  it('ends when it fails', async () => {
    const time = unique();
    await expect(run(`sleep ${time} & exit 3`)).rejects.toThrow('ended with code 3');
    await expectNoProcessWith(time);
  });

  it('ends when the attempt is cancelled', async () => {
    const time = unique();
    const cancel = new AbortController();
    const task = run(`sleep ${time} & (sleep ${time} & wait) & wait`, { signal: cancel.signal });
    await expect.poll(() => processesWith(time)).toHaveLength(4);
    cancel.abort();
    await expect(task).rejects.toThrow('cancelled');
    await expectNoProcessWith(time);
  });

  it('is found in a session of its own, by its environment', async () => {
    const time = unique();
    const { text } = await run(`setsid sh -c 'cd /; exec sleep ${time}' & echo said`);
    expect(text.toString()).toBe('said\n');
    await expectNoProcessWith(time);
  });

  it('is found in a session of its own and without its environment, by where it works', async () => {
    const time = unique();
    const { text } = await run(`env -i setsid sleep ${time} & sleep 0.2; echo said`);
    expect(text.toString()).toBe('said\n');
    await expectNoProcessWith(time);
  });

  it('does not hold the attempt where it cannot be found', async () => {
    const time = unique();
    onTestFinished(async () => {
      for (const pid of await processesWith(time)) process.kill(pid, 'SIGKILL');
    });
    const { text } = await run(`(cd / && exec env -i setsid sleep ${time}) & sleep 0.2; echo said`);
    expect(text.toString()).toBe('said\n');
  });

  it('does not hold the attempt where it goes on writing, a byte now and then', async () => {
    const time = unique();
    onTestFinished(async () => {
      for (const pid of await processesWith(time)) process.kill(pid, 'SIGKILL');
    });
    const drip = `while :; do printf .; sleep 0.1; done; : ${time}`;
    const { text } = await run(`(cd / && exec env -i setsid /bin/sh -c '${drip}') & sleep 0.2; printf said`);
    expect(text.toString()).toContain('said');
  }, 60_000);

  it('ends however many there are, and however fast they start others', async () => {
    const time = unique();
    const bomb = `i=0; while [ $i -lt 40 ]; do (sleep ${time} & sleep ${time} & setsid sleep ${time} & wait) & i=$((i+1)); done; echo said`;
    const { text } = await run(bomb);
    expect(text.toString()).toBe('said\n');
    await expectNoProcessWith(time);
  });
});

describe.runIf(onLinux)('a worker that is killed outright', () => {
  it.each([
    ['in its group', (time: string) => `sleep ${time} & sleep ${time}`],
    ['in another session', (time: string) => `setsid sleep ${time} & sleep ${time}`],
  ])('leaves no grandchild %s', async (_, scriptOf) => {
    const time = unique();
    const dir = await mkdtemp(join(tmpdir(), 'outrider-killed-'));
    onTestFinished(() => rm(dir, { recursive: true, force: true }));
    const groupUrl = pathToFileURL(
      join(import.meta.dirname, '../../../src/worker/processes/process-group.ts'),
    ).href;
    const source = `
      import { ProcessGroup } from ${JSON.stringify(groupUrl)};
      new ProcessGroup('sh', ['-c', ${JSON.stringify(scriptOf(time))}], {
        cwd: ${JSON.stringify(dir)}, env: { PATH: process.env.PATH }, stdio: ['ignore', 'ignore', 'ignore'] });`;
    const worker = spawn(process.execPath, ['--input-type=module', '--eval', source], { stdio: 'ignore' });
    // The worker's own command line and that of its shell name the time, too.
    await expect.poll(() => processesWith(time), { timeout: 20_000 }).toHaveLength(4);
    worker.kill('SIGKILL');
    await expectNoProcessWith(time);
  });
});

describe('what a program of exec sees', () => {
  const secret = {
    AWS_ACCESS_KEY_ID: 'AKIDSECRET',
    AWS_SECRET_ACCESS_KEY: 'topsecret',
    AWS_SESSION_TOKEN: 'tokensecret',
    AWS_LAMBDA_RUNTIME_API: '127.0.0.1:9001',
    AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: '/v2/credentials/secret',
    ECS_CONTAINER_METADATA_URI_V4: 'http://169.254.170.2/v4/secret',
    AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:1',
    OUTRIDER_TABLE: 'table',
    GITHUB_TOKEN: 'ghsecret',
    PATH: process.env['PATH'],
    HOME: '/home/somebody',
    LC_ALL: 'C',
  };

  it('holds no credentials, no addresses of services and no settings of the worker', async () => {
    const { text } = await run('env', { environment: plainEnvironment(secret) });
    const names = text
      .toString()
      .trim()
      .split('\n')
      .map((line) => line.slice(0, line.indexOf('=')))
      .filter((name) => !['PWD', 'SHLVL', '_', 'OLDPWD'].includes(name));
    expect(names.toSorted()).toEqual([
      'HOME',
      'LC_ALL',
      'OUTRIDER_ATTEMPT',
      'OUTRIDER_PROCESS_MARK',
      'OUTRIDER_PROGRESS',
      'OUTRIDER_STAGE',
      'OUTRIDER_TASK',
      'PATH',
      'TMPDIR',
    ]);
    expect(text.toString()).not.toMatch(/secret/i);
  });

  it('holds the keys of the job where credentials are given, never those of the worker, nor the Runtime API', async () => {
    const keys = {
      accessKeyId: 'AKIDJOB',
      secretAccessKey: 'key of the job',
      sessionToken: 'token of the job',
    };
    expect(credentialEnvironment(secret, keys)).toEqual({
      AWS_ACCESS_KEY_ID: 'AKIDJOB',
      AWS_SECRET_ACCESS_KEY: 'key of the job',
      AWS_SESSION_TOKEN: 'token of the job',
      AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:1',
    });
  });

  it.runIf(onLinux)('has no file of the worker open', async () => {
    const script = 'ls -l /proc/$$/fd';
    const file = join(tmpdir(), `outrider-open-${String(process.pid)}`);
    const held = await openFile(file, 'w');
    onTestFinished(async () => {
      await held.close();
      await rm(file);
    });
    const { text } = await run(script);
    const links = text
      .toString()
      .split('\n')
      .flatMap((line) => line.split(' -> ')[1] ?? []);
    const open = links.filter((link) => link !== '/dev/null');
    // Its input, its output, its complaints, and how far it is.
    expect(open).toHaveLength(4);
    expect(open.filter((link) => !/^(socket|pipe):/.test(link))).toEqual([]);
    expect(await readFile(file, 'utf8')).toBe('');
  });
});
