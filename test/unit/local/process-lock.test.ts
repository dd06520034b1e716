import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { waitForLock } from '../../../src/local/process-lock.ts';

it.each(['999999999', '999999999 1 token synthesis', ''])(
  'a lock that holds %j, of a process that is gone, is had by one of many at a time, and by all in the end',
  async (gone) => {
    const dir = await mkdtemp(join(tmpdir(), 'outrider-lock-'));
    onTestFinished(() => rm(dir, { recursive: true, force: true }));
    const lock = join(dir, 'lock');
    await writeFile(lock, gone);
    let [inside, most, served] = [0, 0, 0];
    const take = async (): Promise<void> => {
      const release = await waitForLock(lock, { use: 'synthesis', limitMs: 20_000, pollMs: 2 });
      inside += 1;
      most = Math.max(most, inside);
      for (let turns = 0; turns < 20; turns += 1) await turn();
      inside -= 1;
      served += 1;
      await release?.();
    };
    await Promise.all(Array.from({ length: 20 }, take));
    expect([most, served]).toEqual([1, 20]);
    expect(await readdir(dir)).toEqual([]);
  },
);

it('a lock in a directory that is not there is refused at once, as the system says it', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'outrider-lock-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const taking = waitForLock(join(dir, 'none', 'lock'), { use: 'synthesis', limitMs: 100, pollMs: 10 });
  await expect(taking).rejects.toMatchObject({ code: 'ENOENT' });
});
