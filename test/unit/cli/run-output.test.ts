import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { withInterrupts } from '../../../src/cli/interrupts.ts';
import { execute } from '../../../src/cli/main.ts';
import { runCommand, type RunOptions } from '../../../src/cli/run-command.ts';
import { readRun } from '../../../src/cli/run-records.ts';
import type { RunDeps } from '../../../src/cli/run-job.ts';
import type { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import {
  bucket,
  fakeStack,
  never,
  options,
  outputKey,
  publish,
  succeeded,
  writeInputs,
} from './fake-stack.ts';
import { memoryConsole, scratchDir } from './fixtures.ts';

const jobId = 'wordcount-0123456789ab';

/** Temporary directories of stacks come into one that goes with the test. */
async function temporaryDirs(): Promise<string> {
  const path = await scratchDir();
  vi.stubEnv('TMPDIR', path);
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
  return path;
}

/** The disk is full where the second part is to be written. */
function fillDisk(store: MemoryObjectStore): void {
  const read = store.read.bind(store);
  store.read = (ref, given) => {
    if (ref.key.endsWith('part-00001'))
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    return read(ref, given);
  };
}

/** The disk fails once the parts are in the directory of the output, and before `_SUCCESS` is: the first cannot go back. */
function onFailingDisk(deps: RunDeps, onFailure = (): void => undefined): RunDeps {
  const failed = Object.assign(new Error('EIO: i/o error'), { code: 'EIO' });
  const objectFiles = {
    adopt: () => Promise.resolve('adopted' as const),
    bring: async ({ key }: { readonly key: string }, path: string) => {
      await writeFile(path, 'a');
      if (!key.endsWith('_SUCCESS')) return;
      onFailure();
      throw failed;
    },
    giveBack: async ({ key }: { readonly key: string }, path: string) => {
      if (key.endsWith('part-00000')) throw failed;
      await rm(path);
    },
  };
  return { ...deps, startStack: async (given) => ({ ...(await deps.startStack(given)), objectFiles }) };
}

describe('the output of a run', () => {
  it('leaves an earlier one alone where it cannot be brought, and stays with the record of the job', async () => {
    const { cwd, store, deps, log } = await fakeStack([succeeded]);
    const temporary = await temporaryDirs();
    await writeInputs(cwd);
    await publish(store);
    fillDisk(store);
    await mkdir(join(cwd, 'out'));
    for (const name of ['part-00000', 'part-00007', '_SUCCESS'])
      await writeFile(join(cwd, 'out', name), 'earlier');

    const failure = await runCommand('wordcount', options({ force: true }), deps, never).catch(
      (error: unknown) => error,
    );

    const [kept = ''] = await readdir(temporary);
    const state = join(temporary, kept);
    expect(failure).toMatchObject({
      name: 'InvalidInput',
      message:
        `job ${jobId} has succeeded, and its output is kept in ${state}, since it could not be brought: ` +
        `the output cannot be written to ${join(cwd, 'out')}: the disk is full; ` +
        `"outrider local --state-dir ${state}" and then "outrider get ${jobId} <directory> --state-dir ${state}" bring it`,
    });
    expect((await readdir(join(cwd, 'out'))).toSorted()).toEqual(['_SUCCESS', 'part-00000', 'part-00007']);
    expect(await readFile(join(cwd, 'out/part-00000'), 'utf8')).toBe('earlier');
    expect((await readRun(join(cwd, '.outrider'), jobId))?.job.state).toBe('succeeded');
    expect(log).toEqual(['start', 'stop']);
    // What was staged needs no room any more.
    const left: string[] = [];
    for await (const { key } of store.list({ bucket, key: 'input/' })) left.push(key);
    expect(left).toEqual([]);
  });

  it('is told where it is kept also where a signal ends the run before it could be', async () => {
    const { cwd, store, deps, written } = await fakeStack([succeeded]);
    const temporary = await temporaryDirs();
    await writeInputs(cwd);
    await publish(store);
    fillDisk(store);
    const interrupt = new AbortController();
    const list = store.list.bind(store);
    store.list = (prefix) => {
      // The job's clean-up is waited for: the output has not come, and nobody has been told yet.
      interrupt.abort(new Error('ended by SIGINT'));
      return list(prefix);
    };
    await expect(runCommand('wordcount', options({}), deps, interrupt.signal)).rejects.toThrow();
    const [kept = ''] = await readdir(temporary);
    expect(written.err).toContain(
      `job ${jobId} has succeeded, and its output is kept in ${join(temporary, kept)}, since`,
    );
  });

  it('is not said to be brought by get where a part of it could not be put back', async () => {
    const { cwd, deps } = await fakeStack([succeeded]);
    const temporary = await temporaryDirs();
    await writeInputs(cwd);
    const failure = await runCommand('wordcount', options({}), onFailingDisk(deps), never).catch(
      (error: unknown) => error,
    );
    const [kept = ''] = await readdir(temporary);
    expect(failure).toMatchObject({
      name: 'InvalidInput',
      message:
        `job ${jobId} has succeeded, and its output could not be brought: ` +
        `the output cannot be written to ${join(cwd, 'out')}: EIO: i/o error; ` +
        'what could not be put back stays there: .part-00000.partial; ' +
        `all else of it is kept in ${join(temporary, kept)}`,
    });
    expect(await readdir(join(cwd, 'out'))).toEqual(['.part-00000.partial']);
  });

  it('is named as far as it could not be put back also where a signal ends the run meanwhile', async () => {
    const { cwd, deps } = await fakeStack([succeeded]);
    await temporaryDirs();
    await writeInputs(cwd);
    const work = withInterrupts((signal) => {
      const failing = onFailingDisk(deps, () => process.emit('SIGINT', 'SIGINT'));
      return runCommand('wordcount', options({}), failing, signal);
    });
    await expect(work).rejects.toMatchObject({
      name: 'Interrupted',
      message:
        `ended by SIGINT; the output cannot be written to ${join(cwd, 'out')}: EIO: i/o error; ` +
        'what could not be put back stays there: .part-00000.partial',
    });
  });

  it('is taken away in part where the rest is missing, with the directory that was made for it', async () => {
    const { cwd, store, deps, log } = await fakeStack([succeeded]);
    await temporaryDirs();
    await writeInputs(cwd);
    await store.write({ bucket, key: `${outputKey}part-00000` }, Buffer.from('a'));
    await expect(runCommand('wordcount', options({}), deps, never)).rejects.toThrow('could not be brought');
    await expect(readdir(join(cwd, 'out'))).rejects.toThrow('ENOENT');
    expect(log).toEqual(['start', 'stop']);
  });

  it('takes the place of an earlier one that had more parts', async () => {
    const { cwd, store, deps } = await fakeStack([succeeded]);
    await writeInputs(cwd);
    await publish(store);
    await mkdir(join(cwd, 'out'));
    for (const name of ['part-00000', 'part-00007', '_SUCCESS'])
      await writeFile(join(cwd, 'out', name), 'earlier');
    expect(await runCommand('wordcount', options({ force: true }), deps, never)).toBe(0);
    expect((await readdir(join(cwd, 'out'))).toSorted()).toEqual(['_SUCCESS', 'part-00000', 'part-00001']);
    expect(await readFile(join(cwd, 'out/part-00000'), 'utf8')).toBe('a\t1\nb\t2\n');
  });

  it.each([
    [{ force: true, output: 'in/counts' }, 'in/counts/part-00000', '--output in/counts'],
    [{ stateDir: 'in/state' }, 'in/state/credentials.json', '--state-dir in/state'],
  ] as readonly (readonly [Partial<RunOptions>, string, string])[])(
    'starts nothing with %j where the inputs hold %s',
    async (changes, file, name) => {
      const { cwd, deps, log } = await fakeStack([succeeded]);
      await writeInputs(cwd);
      await mkdir(join(cwd, file, '..'));
      await writeFile(join(cwd, file), 'x');
      await expect(runCommand('wordcount', options(changes), deps, never)).rejects.toMatchObject({
        name: 'InvalidInput',
        message: `input ${join(cwd, file)} lies in the directory of ${name}: inputs must lie apart from it, so leave it out or name another directory`,
      });
      expect(log).toEqual([]);
    },
  );

  it('is alone in its directory also where that is the working directory', async () => {
    const { cwd, store, deps, written } = await fakeStack([succeeded]);
    const elsewhere = await scratchDir();
    await writeInputs(elsewhere);
    await publish(store);
    const changes = { input: [join(elsewhere, 'in')], output: '.' };
    expect(await runCommand('wordcount', options(changes), deps, never)).toBe(0);
    expect((await readdir(cwd)).toSorted()).toEqual(['_SUCCESS', 'part-00000', 'part-00001']);
    expect(JSON.parse(written.out)).not.toHaveProperty('recordIn');
    expect(await runCommand('wordcount', options({ ...changes, force: true }), deps, never)).toBe(0);
  });

  it('is told by status and report where it was brought to, and not where the stack had it', async () => {
    const { cwd, store, deps } = await fakeStack([succeeded]);
    await writeInputs(cwd);
    await publish(store);
    expect(await runCommand('wordcount', options({}), deps, never)).toBe(0);
    for (const command of ['status', 'report']) {
      const { console, written } = memoryConsole(cwd);
      expect(await execute([command, jobId], console)).toBe(0);
      expect(written.out).toContain(`\noutput    ${join(cwd, 'out')}\n`);
    }
    const { console, written } = memoryConsole(cwd);
    await execute(['status', jobId, '--json'], console);
    expect(JSON.parse(written.out)).toMatchObject({ jobId, outputDir: join(cwd, 'out') });
    const reported = memoryConsole(cwd);
    await execute(['report', jobId, '--json'], reported.console);
    expect(JSON.parse(reported.written.out)).toMatchObject({ job: { jobId }, outputDir: join(cwd, 'out') });
  });

  it.each([
    ['another job has its own there', '{"jobId":"wordcount-ba9876543210","parts":[]}'],
    ['it was taken away', undefined],
  ])('is told nowhere once %s', async (_, success) => {
    const { cwd, store, deps } = await fakeStack([succeeded]);
    await writeInputs(cwd);
    await publish(store);
    expect(await runCommand('wordcount', options({}), deps, never)).toBe(0);
    if (success === undefined) await rm(join(cwd, 'out'), { recursive: true });
    else await writeFile(join(cwd, 'out/_SUCCESS'), success);
    for (const command of ['status', 'report']) {
      const { console, written } = memoryConsole(cwd);
      expect(await execute([command, jobId], console)).toBe(0);
      expect(written.out).toContain(`${jobId} succeeded`);
      expect(written.out).not.toContain('output ');
    }
    const { console, written } = memoryConsole(cwd);
    await execute(['status', jobId, '--json'], console);
    expect(JSON.parse(written.out)).not.toHaveProperty('outputDir');
  });

  it('is none of a job that has failed', async () => {
    const { cwd, deps } = await fakeStack([{ state: 'failed', endedAt: epochMs(1_000_500) }]);
    await writeInputs(cwd);
    expect(await runCommand('wordcount', options({}), deps, never)).toBe(1);
    const { console, written } = memoryConsole(cwd);
    expect(await execute(['status', jobId], console)).toBe(0);
    expect(written.out).not.toContain('output ');
  });
});

describe('the data of a run that breaks', () => {
  it('are told where they are to stay, and are gone else', async () => {
    const { cwd, deps, written } = await fakeStack([succeeded]);
    const temporary = await temporaryDirs();
    await writeInputs(cwd);
    const breaking = { ...deps, startStack: () => Promise.reject(new Error('no stack')) };
    await expect(runCommand('wordcount', options({}), breaking, never)).rejects.toThrow('no stack');
    expect([written.err, await readdir(temporary)]).toEqual(['', []]);
    const kept = options({ keepState: true });
    await expect(runCommand('wordcount', kept, breaking, never)).rejects.toThrow('no stack');
    const path = /^state {5}(\S+)\n$/.exec(written.err)?.[1] ?? '';
    expect(path.startsWith(temporary)).toBe(true);
    expect(existsSync(path)).toBe(true);
  });
});
