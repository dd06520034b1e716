import { stat, writeFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { findTarget, removeConnection, writeConnection } from '../../../src/cli/connection.ts';
import { describeFailure, exitCodeOf, ServiceUnavailableError } from '../../../src/cli/failures.ts';
import { execute } from '../../../src/cli/main.ts';
import { AccessDeniedError, ConflictError, NotFoundError } from '../../../src/contracts/errors.ts';
import { keepRun } from '../../../src/cli/run-records.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { jobRecord } from '../report/report-records.ts';
import { memoryConsole, scratchDir } from './fixtures.ts';

describe('outrider', () => {
  it.each([
    [['bogus'], "outrider: unknown command 'bogus' (Did you mean logs?)\n"],
    [
      ['run', 'sort', '-o', 'x', '--polic', 'x'],
      "outrider: unknown option '--polic' (Did you mean --policy?)\n",
    ],
    [
      ['run', 'wordcont', '-o', 'x'],
      'outrider: unknown job "wordcont": it must be one of wordcount, grep, sort, groupby, join, or a spec file; did you mean "wordcount"?\n',
    ],
    [
      ['run', 'sort', '-o', 'x', '--worker', 'lamda'],
      "outrider: option '--worker <kind>' argument 'lamda' is invalid. Allowed choices are lambda, fargate. (Did you mean lambda?)\n",
    ],
    [
      ['attempts', 'count-0123456789ab'],
      'outrider: no service to ask: give --endpoint URL or set OUTRIDER_ENDPOINT, or keep "outrider local" up (there is none in .outrider); nor is anything kept there of a job count-0123456789ab\n',
    ],
    [['run'], "outrider: required option '-o, --output <dir>' not specified\n"],
    [['status'], "outrider: missing required argument 'job'\n"],
    [['run', 'wordcount', '-o', 'x'], 'outrider: wordcount needs --input: files, directories or patterns\n'],
    [
      ['status', 'sort-0123456789ab', '--endpoint', 'ftp://x'],
      'outrider: endpoint "ftp://x" must be an http:// or https:// address\n',
    ],
    [['local', '--port', '99999'], 'outrider: --port "99999" must be a whole number from 1 to 65535\n'],
    [
      ['local', '--inject', 'lose=1'],
      'outrider: --inject "lose=1" must be one of slow=FACTORxNODES, kill=N, memory-hog=N, spot=N, throttle=SHARE, slow-read=SHARE@SECONDS, cold-start=SHARE@SECONDS, pause=SHARE@SECONDS, skew=SHARE@SECONDS, lose-object=N, corrupt-object=N, lose-invocation=N, duplicate-invocation=N, lose-zone=ZONE@SECONDS, slow-zone=ZONE@FACTOR and seed=N\n',
    ],
    [
      ['run', 'wordcount', '-o', 'x', '--inject', 'kill=1,slow=8'],
      'outrider: --inject "slow=8" must be FACTORxNODES, a factor above 1 and at most 50 and 1 to 256 nodes, such as slow=8x2\n',
    ],
    // Said in two parts, it is one.
    [
      ['local', '--inject', 'slow=8', '--inject', 'kill=1'],
      'outrider: --inject "slow=8" must be FACTORxNODES, a factor above 1 and at most 50 and 1 to 256 nodes, such as slow=8x2\n',
    ],
    [
      ['local', '--inject', 'kill=1', '--inject', 'kill=2'],
      'outrider: --inject "kill=2" is given twice: kill may stand there once\n',
    ],
    // Else the stack's data would come into the working directory.
    [
      ['run', 'wordcount', '-i', 'x', '-o', 'x', '--state-dir', ''],
      'outrider: --state-dir is empty: give it a value, or leave it out\n',
    ],
    [['local', '--state-dir='], 'outrider: --state-dir is empty: give it a value, or leave it out\n'],
    [['list', '--endpoint', ''], 'outrider: --endpoint is empty: give it a value, or leave it out\n'],
    [
      ['deadline', 'sort-0123456789ab', 'soon'],
      'outrider: <time> "soon" must be a length of time from 1s to 7d, such as "90s", "10m" or "2h", an instant such as "2027-01-31T18:00:00Z", or "none"\n',
    ],
    [
      ['logs', 'x', '--task', '3'],
      'outrider: --task must be stage/index or stage/index/number, such as "tokenize/3"\n',
    ],
  ])('answers %j with one line and exit code 2', async (args, line) => {
    const { console, written } = memoryConsole(await scratchDir());
    expect(await execute(args, console)).toBe(2);
    expect(written).toEqual({ out: '', err: line });
  });

  it('lists the jobs that are kept of runs, newest first, where there is no service to ask', async () => {
    const cwd = await scratchDir();
    const kept = async (id: string, createdAt: number): Promise<void> => {
      const job = jobRecord({ jobId: id as JobId, state: 'succeeded', createdAt: epochMs(createdAt) });
      await keepRun(join(cwd, '.outrider'), { job, attempts: { attempts: [] }, lines: [] });
    };
    await kept('sort-0123456789ab', 1_000_000);
    await kept('grep-0123456789ab', 2_000_000);
    const ids = async (...args: readonly string[]): Promise<unknown> => {
      const { console, written } = memoryConsole(cwd);
      expect(await execute(['list', '--json', ...args], console)).toBe(0);
      return (JSON.parse(written.out) as { jobs: { jobId: string }[] }).jobs.map(({ jobId }) => jobId);
    };
    expect(await ids()).toEqual(['grep-0123456789ab', 'sort-0123456789ab']);
    expect(await ids('--limit', '1')).toEqual(['grep-0123456789ab']);
  });

  it.each([
    'run',
    'local',
    'submit',
    'status',
    'watch',
    'cancel',
    'deadline',
    'list',
    'report',
    'explain',
    'logs',
  ])('helps with %s, with an example', async (command) => {
    const { console, written } = memoryConsole(await scratchDir());
    expect(await execute([command, '--help'], console)).toBe(0);
    expect(written.out).toContain(`$ outrider ${command}`);
    expect(written.out).toContain('--json');
    expect(written.err).toBe('');
  });
});

describe('failures', () => {
  it('has an exit code for each kind', () => {
    expect(exitCodeOf(new NotFoundError('x'))).toBe(2);
    expect(exitCodeOf(new ConflictError('x'))).toBe(2);
    expect(exitCodeOf(new ServiceUnavailableError('x'))).toBe(3);
    // A job that has succeeded is not to pass for one that has failed.
    expect(exitCodeOf(new AccessDeniedError('access denied: s3:GetObject on s3://b/k'))).toBe(2);
    expect(exitCodeOf(new TypeError('x'))).toBe(1);
  });

  it.each(['ENOENT', 'EACCES', 'ENOSPC', 'EROFS', 'EMFILE'])(
    'takes what the system refuses for no failed job, wherever that is: %s',
    (code) => {
      expect(exitCodeOf(Object.assign(new Error('x'), { code }))).toBe(2);
    },
  );

  it('puts what the system refuses into words', () => {
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    expect(describeFailure(full, {})).toBe(
      'outrider: the disk is full (ENOSPC: no space left on device, write)',
    );
  });

  it('says what it is about where its message does not', () => {
    const details = { uri: 's3://my-bukcet/k', fault: 'NoSuchBucket', status: 404 };
    expect(describeFailure(new NotFoundError('write: no such bucket', details), {})).toBe(
      'outrider: write: no such bucket (s3://my-bukcet/k: NoSuchBucket)',
    );
    expect(describeFailure(new NotFoundError('no s3://my-bukcet/k: NoSuchBucket', details), {})).toBe(
      'outrider: no s3://my-bukcet/k: NoSuchBucket',
    );
  });

  it('is one line, with the stack only where it is asked for', () => {
    const error = new Error('first\nsecond');
    expect(describeFailure(error, {})).toBe('outrider: first second');
    expect(describeFailure(error, { OUTRIDER_DEBUG: '1' })).toMatch(
      /^outrider: first second\nError: first\nsecond\n {4}at /,
    );
  });
});

describe('finding the service', () => {
  const connection = {
    apiUrl: 'http://127.0.0.1:4000/v1',
    region: 'us-east-1',
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    environment: {
      X: 'y',
      AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:4001',
      AWS_ENDPOINT_URL_CLOUDWATCH_LOGS: 'http://127.0.0.1:4002',
    },
    outputs: { DataBucketName: 'data' },
  };

  it('takes the local stack of the directory, and its keys also for its own address', async () => {
    const cwd = await scratchDir();
    await mkdir(join(cwd, '.outrider'));
    await writeConnection(join(cwd, '.outrider'), connection);
    expect((await stat(join(cwd, '.outrider/connection.json'))).mode & 0o777).toBe(0o600);
    const { console } = memoryConsole(cwd);
    expect((await findTarget({}, console)).stack).toMatchObject(connection);
    expect((await findTarget({ endpoint: 'http://127.0.0.1:4000/v1/' }, console)).stack).toMatchObject(
      connection,
    );
    await removeConnection(join(cwd, '.outrider'));
    await expect(findTarget({}, console)).rejects.toMatchObject({ name: 'InvalidInput' });
  });

  it('asks the service that is named, whatever another file of a connection holds', async () => {
    const cwd = await scratchDir();
    await writeFile(join(cwd, 'connection.json'), '{', { mode: 0o600 });
    for (const [name, value] of Object.entries({ AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' }))
      vi.stubEnv(name, value);
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const apiUrl = 'https://x.execute-api.eu-west-1.amazonaws.com/v1';
    const { console } = memoryConsole(cwd);
    expect(await findTarget({ endpoint: apiUrl, stateDir: '.' }, console)).toMatchObject({
      api: { apiUrl, region: 'eu-west-1' },
    });
  });

  // The id of a process is given again: in a container each start of its command has the same.
  const gone = [{ pid: 999_999_999 }, { pid: process.pid, pidStart: 1 }];
  it.each(process.platform === 'linux' ? gone : gone.slice(0, 1))(
    'says that a stack has ended whose process is gone: %j',
    async (keeper) => {
      const cwd = await scratchDir();
      await mkdir(join(cwd, 'my data'));
      await writeFile(join(cwd, 'my data/connection.json'), JSON.stringify({ ...connection, ...keeper }));
      const { console, written } = memoryConsole(cwd);
      expect(await execute(['list', '--state-dir', 'my data'], console)).toBe(3);
      expect(written.err).toBe(
        'outrider: the local stack at http://127.0.0.1:4000/v1 has ended: start it again with "outrider local --state-dir \'my data\'"\n',
      );
    },
  );

  it.each([
    ['no JSON', '{'],
    ['nothing', ''],
    ['another value', 'null'],
    // An address that is missing would be AWS's own, which the keys of a local stack must never be sent to.
    ...Object.entries({
      apiUrl: [undefined, 1, '', 'nowhere', 'ftp://127.0.0.1/', 'https://elsewhere.example/v1'],
      region: [undefined, 1, ''],
      credentials: [undefined, 'a:b', {}, { accessKeyId: '', secretAccessKey: 'b' }],
      environment: [
        undefined,
        {},
        { ...connection.environment, AWS_ENDPOINT_URL_S3: 'nowhere' },
        { ...connection.environment, AWS_ENDPOINT_URL_S3: 'http://127.0.0.1.elsewhere.example' },
      ],
      outputs: [undefined, {}, { DataBucketName: '' }],
      pid: [undefined, 'x', 1.5],
    }).flatMap(([field, values]) =>
      values.map((value) => [
        `${field} ${JSON.stringify(value)}`,
        JSON.stringify({ ...connection, pid: process.pid, [field]: value }),
      ]),
    ),
  ])('refuses a connection file that is none: %s', async (_name, text) => {
    const cwd = await scratchDir();
    await writeFile(join(cwd, 'connection.json'), text, { mode: 0o600 });
    const { console } = memoryConsole(cwd);
    await expect(findTarget({ stateDir: '.' }, console)).rejects.toMatchObject({
      name: 'InvalidInput',
      message: expect.stringMatching(
        /connection\.json is not what "outrider local" writes: remove it/,
      ) as string,
    });
  });
});
