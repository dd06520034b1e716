import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ExitCode, exitCodeOf } from '../../../src/cli/failures.ts';
import { runCommand, type RunOptions } from '../../../src/cli/run-command.ts';
import type { RunDeps } from '../../../src/cli/run-job.ts';
import { readRun } from '../../../src/cli/run-records.ts';
import type { JobRecord } from '../../../src/contracts/records.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { attempt } from '../report/explain/explained-attempts.ts';
import { jobRecord, stageSummary } from '../report/report-records.ts';
import { bucket, fakeStack, never, options, publish, succeeded, writeInputs } from './fake-stack.ts';

describe('outrider run', () => {
  it('uploads in order of name, runs, brings the parts, and stops the stack', async () => {
    const { cwd, store, deps, written, log, requests } = await fakeStack([{ state: 'running' }, succeeded]);
    await writeInputs(cwd);
    await publish(store);

    expect(await runCommand('wordcount', options({}), deps, never)).toBe(0);

    expect(log).toEqual(['start', 'stop']);
    expect((await readdir(join(cwd, 'out'))).sort()).toEqual(['_SUCCESS', 'part-00000', 'part-00001']);
    expect(await readFile(join(cwd, 'out/part-00000'), 'utf8')).toBe('a\t1\nb\t2\n');
    const input = requests[0]?.spec.stages[0]?.inputs[0];
    const prefix =
      input !== undefined && 's3' in input ? (input.s3[0] ?? '').slice(`s3://${bucket}/`.length) : '';
    expect(prefix).toMatch(/^input\/[0-9a-f]{12}\/$/);
    const staged: string[] = [];
    for await (const { key } of store.list({ bucket, key: prefix })) {
      staged.push(
        `${key.slice(prefix.length)}: ${Buffer.from(await store.readAll({ bucket, key })).toString()}`,
      );
    }
    expect(staged).toEqual(['0-a_b.txt: aaa', '1-b.txt.gz: bbb']);
    expect(JSON.parse(written.out)).toMatchObject({
      jobId: 'wordcount-0123456789ab',
      state: 'succeeded',
      wallMs: 1_000,
      output: [join(cwd, 'out/part-00000'), join(cwd, 'out/part-00001')],
    });
    expect(written.err).toBe('');
  });

  it('uploads a large file in parts', async () => {
    const { cwd, store, deps, requests } = await fakeStack([succeeded]);
    await publish(store);
    const bytes = Buffer.alloc(16 * 1024 * 1024 + 1, 'x');
    bytes.write('end', bytes.length - 3);
    await writeFile(join(cwd, 'in'), bytes);
    expect(await runCommand('wordcount', options({}), deps, never)).toBe(0);
    const input = requests[0]?.spec.stages[0]?.inputs[0];
    const prefix =
      input !== undefined && 's3' in input ? (input.s3[0] ?? '').slice(`s3://${bucket}/`.length) : '';
    expect(Buffer.compare(await store.readAll({ bucket, key: `${prefix}0-in` }), bytes)).toBe(0);
  });

  it('tells a failed job by exit code 1 and one line that names the local file, and leaves no output', async () => {
    const states: Partial<JobRecord>[] = [];
    const { cwd, deps, written, log, requests } = await fakeStack(states, () => undefined);
    await writeInputs(cwd);
    const { clientOf } = deps;
    const badLine = (): string => {
      const input = requests[0]?.spec.stages[0]?.inputs[0];
      const uri = input !== undefined && 's3' in input ? input.s3[0] : '';
      return `${String(uri).slice(`s3://${bucket}/`.length)}0-a_b.txt line 7 is bad`;
    };
    const failing: RunDeps = {
      ...deps,
      clientOf: (stack) => ({
        ...clientOf(stack),
        job: () => {
          const error = { name: 'JobFailed', message: `stage tokenize, task 0: ${badLine()}` };
          return Promise.resolve(jobRecord({ state: 'failed', endedAt: epochMs(1_000_500), error }));
        },
        attempts: () => {
          const failure = { cause: 'bad-record', message: badLine() } as const;
          return Promise.resolve({ attempts: [attempt('tokenize/0/0', { state: 'failed', failure })] });
        },
      }),
    };
    expect(await runCommand('wordcount', options({}), failing, never)).toBe(1);
    const message = `stage tokenize, task 0: ${join(cwd, 'in/a b.txt')} line 7 is bad`;
    expect(written.err).toBe(`outrider: job wordcount-0123456789ab failed: ${message}\n`);
    expect(JSON.parse(written.out)).toMatchObject({ state: 'failed', output: [], error: { message } });
    const kept = await readRun(join(cwd, '.outrider'), 'wordcount-0123456789ab');
    expect(kept?.attempts.attempts.map(({ failure }) => failure?.message)).toEqual([
      `${join(cwd, 'in/a b.txt')} line 7 is bad`,
    ]);
    expect(log).toEqual(['start', 'stop']);
    await expect(readdir(join(cwd, 'out'))).rejects.toThrow('ENOENT');
  });

  it('counts a deadline that was missed as failure, and still brings the output', async () => {
    const { cwd, store, deps } = await fakeStack([{ ...succeeded, deadlineAt: epochMs(1_000_500) }]);
    await writeInputs(cwd);
    await publish(store);
    expect(await runCommand('wordcount', options({}), deps, never)).toBe(1);
    expect(await readdir(join(cwd, 'out'))).toContain('_SUCCESS');
  });

  it('starts nothing where anything is wrong', async () => {
    const { cwd, deps, log } = await fakeStack([succeeded]);
    await writeInputs(cwd);
    await mkdir(join(cwd, 'full'));
    await writeFile(join(cwd, 'full/x'), '');
    await symlink('gone', join(cwd, 'latest'));
    const wrong: readonly (readonly [string, Partial<RunOptions>, string])[] = [
      [
        'wordcuont',
        {},
        'unknown job "wordcuont": it must be one of wordcount, grep, sort, groupby, join, or a spec file',
      ],
      ['wordcount', { input: ['gone'] }, '--input gone cannot be read: there is no such file or directory'],
      ['wordcount', { input: ['s3://a/b'] }, '--input s3://a/b must be a local path here'],
      ['wordcount', { output: 'full' }, '--output full is not empty'],
      [
        'wordcount',
        { output: 's3://results/c/' },
        '--output s3://results/c/ must be a local path: only "outrider submit" writes to s3:// addresses',
      ],
      ['wordcount', { output: 'latest' }, 'latest is a link to what is not there'],
      ['wordcount', { stateDir: 'out/state' }, '--state-dir out/state lies in the directory of --output'],
      ['wordcount', { stateDir: 'out' }, '--state-dir out lies in the directory of --output'],
      ['wordcount', { pattern: 'x' }, 'wordcount takes no --pattern'],
      ['wordcount', { deadline: 'soon' }, '--deadline "soon" must be'],
      ['wordcount', { slots: '0' }, '--slots "0" must be'],
      ['grep', { pattern: '(a' }, 'the pattern "(a" has'],
      ['grep', {}, 'grep needs --pattern'],
      ['groupby', { key: ['k'] }, 'groupby needs --agg: such as "count,sum:amount"'],
      [
        'groupby',
        { key: ['k'], agg: ['count,sum:a,sum:a'] },
        '--agg: the name of item 2 (after " as ") must be a name that no other column of the result has',
      ],
      ['join', { right: ['in'] }, 'join needs --left-key'],
      ['gone.json', { input: [] }, 'job spec gone.json cannot be read: there is no such file or directory'],
    ];
    for (const [job, changes, message] of wrong) {
      await expect(runCommand(job, options(changes), deps, never)).rejects.toMatchObject({
        name: 'InvalidInput',
        message: expect.stringContaining(message) as string,
      });
    }
    expect(log).toEqual([]);
    expect((await readdir(cwd)).toSorted()).toEqual(['full', 'in', 'latest']);
  });

  it('takes local paths of a spec file from beside that file', async () => {
    const { cwd, store, deps, requests } = await fakeStack([succeeded]);
    await publish(store);
    await mkdir(join(cwd, 'jobs'));
    await writeFile(join(cwd, 'jobs/words.txt'), 'x');
    const stages = [
      { name: 'find', operator: 'grep', options: { pattern: 'x' }, inputs: [{ s3: ['*.txt'] }] },
    ];
    await writeFile(join(cwd, 'jobs/spec.json'), JSON.stringify({ name: 'mine', stages }));
    expect(
      await runCommand(
        'jobs/spec.json',
        options({ input: [], workerSize: 'large', deadline: '5m', deadlineKind: 'hard' }),
        deps,
        never,
      ),
    ).toBe(0);
    expect(requests[0]?.spec).toMatchObject({
      name: 'mine',
      deadline: '5m',
      deadlineKind: 'hard',
      stages: [
        {
          worker: { kind: 'lambda', size: 'large' },
          inputs: [{ s3: [expect.stringMatching(/^s3:\/\/data\/input\/[0-9a-f]{12}\/$/) as string] }],
        },
      ],
    });
    await expect(
      runCommand('jobs/spec.json', options({ pattern: 'x', input: [], output: 'o2' }), deps, never),
    ).rejects.toThrow('--pattern cannot go with a spec file');
  });

  it('cancels the job and stops the stack when it is interrupted', async () => {
    const interrupt = new AbortController();
    const { cwd, deps, log } = await fakeStack([{ state: 'running' }], (poll) => {
      if (poll === 1) interrupt.abort(new Error('ended by SIGINT'));
    });
    await writeInputs(cwd);
    await expect(runCommand('wordcount', options({}), deps, interrupt.signal)).rejects.toThrow(
      'ended by SIGINT',
    );
    expect(log).toEqual(['start', 'cancel', 'stop']);
  });

  it.each([
    ['the stack has ended, since its data cannot be written to ', ': the disk is full', 'ENOSPC'],
    ['the database has ended', '', undefined],
  ])('stops the stack and says why where that cannot go on: %s…%s', async (why, reason, code) => {
    const failed = Promise.withResolvers<Error>();
    const { cwd, deps, log } = await fakeStack([{ state: 'running' }], (poll) => {
      if (poll === 1) failed.resolve(Object.assign(new Error('the database has ended'), { code }));
    });
    await writeInputs(cwd);
    const startStack: RunDeps['startStack'] = async (given) => ({
      ...(await deps.startStack(given)),
      failed: failed.promise,
    });
    const error: unknown = await runCommand('wordcount', options({}), { ...deps, startStack }, never).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ message: expect.stringMatching(new RegExp(`^${why}.*${reason}$`)) });
    expect(exitCodeOf(error)).toBe(code === undefined ? ExitCode.unavailable : ExitCode.badInput);
    expect(log).toEqual(['start', 'cancel', 'stop']);
  });

  it('says that no stack could be started, which is no failed job, and where its data were to go', async () => {
    const { cwd, deps } = await fakeStack([succeeded]);
    await writeInputs(cwd);
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    const startStack: RunDeps['startStack'] = () => Promise.reject(full);
    const error: unknown = await runCommand('wordcount', options({}), { ...deps, startStack }, never).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({
      message: expect.stringMatching(
        /^the stack cannot be started, since its data cannot be written to .*: the disk is full; name another place with --state-dir$/,
      ) as string,
    });
    expect(exitCodeOf(error)).toBe(ExitCode.badInput);
  });

  it('says what the stack has found of its data', async () => {
    const { cwd, store, deps, written } = await fakeStack([succeeded]);
    await writeInputs(cwd);
    await publish(store);
    const startStack: RunDeps['startStack'] = async (given) => ({
      ...(await deps.startStack(given)),
      warnings: ['a stored object was not whole'],
    });
    await runCommand('wordcount', options({}), { ...deps, startStack }, never);
    expect(written.err).toContain('warning   a stored object was not whole\n');
  });

  it('refuses a state directory that another process has, and frees its own', async () => {
    const { cwd, store, deps } = await fakeStack([succeeded]);
    await writeInputs(cwd);
    await publish(store);
    await mkdir(join(cwd, 'state'));
    await writeFile(join(cwd, 'state/stack.lock'), `${String(process.ppid)}\n`);
    await expect(runCommand('wordcount', options({ stateDir: 'state' }), deps, never)).rejects.toThrow(
      `--state-dir state is in use by process ${String(process.ppid)}`,
    );
    await writeFile(join(cwd, 'state/stack.lock'), '999999999\n');
    expect(await runCommand('wordcount', options({ stateDir: 'state' }), deps, never)).toBe(0);
    expect(await readdir(join(cwd, 'state'))).toEqual(['outrider-state.txt', 'runs']); // What is kept of the job.
  });

  it('keeps the stack until the job has removed its data where these would stay, and else does not wait', async () => {
    const key = 'jobs/wordcount-0123456789ab/plan.json';
    const run = async (changes: Partial<RunOptions>): Promise<readonly string[]> => {
      const { cwd, store, deps, log } = await fakeStack([succeeded]);
      await writeInputs(cwd);
      await publish(store);
      await store.write({ bucket, key }, Buffer.from('{}'));
      const list = store.list.bind(store);
      store.list = (ref) => {
        log.push(`list ${ref.key}`);
        if (log.length === 3) void store.remove(bucket, [key]);
        return list(ref);
      };
      expect(await runCommand('wordcount', options(changes), deps, never)).toBe(0);
      return log;
    };
    const looked = 'list jobs/wordcount-0123456789ab/';
    expect(await run({ stateDir: 'state' })).toEqual(['start', looked, looked, 'stop']);
    expect(await run({})).toEqual(['start', 'stop']);
  });

  it('shows changes as plain lines where there is no terminal, and a table at the end', async () => {
    const { cwd, store, deps, written } = await fakeStack([
      { state: 'running', stages: [stageSummary()] },
      { state: 'running', stages: [stageSummary({ done: 2, running: 2 })] },
      { ...succeeded, stages: [stageSummary({ done: 4 })] },
    ]);
    await writeInputs(cwd);
    await publish(store);
    expect(await runCommand('wordcount', options({ quiet: false, json: false }), deps, never)).toBe(0);
    expect(written.err).toBe(
      'starting\nuploading 6 B in 2 files\njob running\ntokenize: 2/4 tasks, 2 running\n' +
        'job succeeded\ntokenize: 4/4 tasks\ndownloading 8 B in 2 files\nstopping\n',
    );
    expect(written.out).toMatch(/^wordcount-0123456789ab succeeded in 1\.0s\n/);
    expect(written.out).toMatch(/\noutput {4}out\n/);
  });

  it('ends with the whole time, by what it went to, and with the command that tells more', async () => {
    const { cwd, store, deps, written } = await fakeStack([succeeded]);
    await writeInputs(cwd);
    await publish(store);
    expect(await runCommand('wordcount', options({ json: false }), deps, never)).toBe(0);
    expect(written.out).toMatch(
      /\ntime {6}\d+\.\ds: starting \d\.\ds, uploading \d\.\ds, running \d\.\ds, downloading \d\.\ds, stopping \d\.\ds\n/,
    );
    expect(written.out).toContain(
      `\nlogs      outrider logs wordcount-0123456789ab   (kept in ${join(cwd, '.outrider')})\n`,
    );
    expect(await readdir(join(cwd, '.outrider/runs'))).toEqual(['wordcount-0123456789ab']);
  });

  it('says in JSON what the time went to', async () => {
    const { cwd, store, deps, written } = await fakeStack([succeeded]);
    await writeInputs(cwd);
    await publish(store);
    await runCommand('wordcount', options({}), deps, never);
    const { phasesMs, recordIn } = JSON.parse(written.out) as { phasesMs: object; recordIn: string };
    expect(Object.keys(phasesMs)).toEqual(['starting', 'uploading', 'running', 'downloading', 'stopping']);
    expect(recordIn).toBe(join(cwd, '.outrider'));
  });
});
