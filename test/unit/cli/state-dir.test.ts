import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { exitCodeOf } from '../../../src/cli/failures.ts';
import { lockEndedStack, makeTemporaryStateDir, openStateDir } from '../../../src/cli/state-dir.ts';
import { startOf } from '../../../src/local/live-process.ts';
import { scratchDir } from './fixtures.ts';

const isLinux = process.platform === 'linux';

describe('a directory for the data of a stack', () => {
  it('is made, and taken again once it is given back', async () => {
    const cwd = await scratchDir();
    for (let turn = 0; turn < 2; turn++) {
      const state = await openStateDir('a/state', cwd);
      await expect(openStateDir('a/state', cwd)).rejects.toThrow(
        `--state-dir a/state is in use by process ${String(process.pid)}`,
      );
      await mkdir(join(state.path, 's3'), { recursive: true });
      await state.release();
    }
    expect((await stat(join(cwd, 'a/state'))).mode & 0o777).toBe(0o700);
    expect((await stat(join(cwd, 'a/state/outrider-state.txt'))).mode & 0o777).toBe(0o600);
    expect(await readdir(join(cwd, 'a/state'))).toEqual(['outrider-state.txt', 's3']);
  });

  it.each(['scratch', 'credentials.json', 's3', '.git', 'environment.sh'])(
    'is none that holds a %s which no stack has put there, and that one stays as it is',
    async (name) => {
      const cwd = await scratchDir();
      await chmod(cwd, 0o755);
      await mkdir(join(cwd, 'runs'));
      await writeFile(join(cwd, name), 'mine');
      await expect(openStateDir('.', cwd)).rejects.toThrow(
        `--state-dir . holds "${name}", which is no stack's: name an empty directory, or one that is not there`,
      );
      expect(await readFile(join(cwd, name), 'utf8')).toBe('mine');
      expect((await readdir(cwd)).toSorted()).toEqual([name, 'runs'].toSorted());
      expect((await stat(cwd)).mode & 0o777).toBe(0o755);
    },
  );

  it.each([
    [['runs', 'lost+found', 'stack.lock.left-over']],
    [['credentials.json', 'dynamodb', 's3', 'logs', 'mine']],
  ])('may hold %j: records of jobs, or what a stack left before it marked its directory', async (names) => {
    const cwd = await scratchDir();
    for (const name of names) await mkdir(join(cwd, name));
    await (await openStateDir('.', cwd)).release();
    expect(await readdir(cwd)).toContain('outrider-state.txt');
  });

  it.runIf(isLinux)('is free where its lock is of an earlier process that had the same id', async () => {
    const cwd = await scratchDir();
    const start = startOf(process.pid) ?? Number.NaN;
    await writeFile(join(cwd, 'stack.lock'), `${String(process.pid)} ${String(start - 1)} token`);
    await (await openStateDir('.', cwd)).release();
    expect(await readdir(cwd)).toEqual(['outrider-state.txt']);
  });

  it('is had by one of many that want it at once, after a stack that was killed', async () => {
    const cwd = await scratchDir();
    for (let round = 0; round < 20; round++) {
      await writeFile(join(cwd, 'stack.lock'), '999999999 1 gone');
      const tried = await Promise.allSettled(Array.from({ length: 8 }, () => openStateDir('.', cwd)));
      const had = tried.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      expect(had).toHaveLength(1);
      for (const state of had) await state.release();
      expect(await readdir(cwd)).toEqual(['outrider-state.txt']);
    }
  });

  it('is had after a stack that was killed, and one that was killed while it took its place', async () => {
    const cwd = await scratchDir();
    await writeFile(join(cwd, 'stack.lock'), '999999999 1 gone');
    await writeFile(join(cwd, 'stack.lock.999999999-1-gone'), '999999998 1 late');
    const state = await openStateDir('.', cwd);
    await expect(openStateDir('.', cwd)).rejects.toThrow('is in use by process');
    await state.release();
    expect(await readdir(cwd)).toEqual(['outrider-state.txt']);
  });

  it('is read by one after the other, and by none as long as a stack has it', async () => {
    const cwd = await scratchDir();
    let reading = 0;
    const most: number[] = [];
    const read = async (): Promise<void> => {
      const state = await lockEndedStack(cwd);
      most.push(++reading);
      await setTimeout(20);
      reading--;
      await state.release();
    };
    await Promise.all(Array.from({ length: 5 }, read));
    expect(most).toEqual([1, 1, 1, 1, 1]);
    const reader = await lockEndedStack(cwd);
    const stack = openStateDir('.', cwd);
    await setTimeout(20);
    await reader.release();
    await stack;
    await expect(lockEndedStack(cwd)).rejects.toThrow(
      `--state-dir ${cwd} is in use by process ${String(process.pid)}`,
    );
  });
});

describe('a directory among the temporary files', () => {
  it.each([
    ['none', 'there is no such file or directory'],
    ['file', 'a part of its path is not a directory'],
  ])('is refused by its place where that is %s', async (name, reason) => {
    const cwd = await scratchDir();
    await writeFile(join(cwd, 'file'), '');
    vi.stubEnv('TMPDIR', join(cwd, name));
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const error: unknown = await makeTemporaryStateDir(false).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      message: `no directory can be made in ${join(cwd, name)}: ${reason}; name another place with TMPDIR, or one for the stack's data with --state-dir`,
    });
    expect(exitCodeOf(error)).toBe(2);
  });
});
