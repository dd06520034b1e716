import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isLiveProcess, startOf } from '../../../src/local/live-process.ts';

describe('a live process', () => {
  it('is one that runs, and none that is not there', () => {
    expect(isLiveProcess(process.pid)).toBe(true);
    expect([0, -1, 1.5, Number.NaN, 4_194_305].map((pid) => isLiveProcess(pid))).toEqual([
      false,
      false,
      false,
      false,
      false,
    ]);
  });

  it.runIf(process.platform === 'linux')('is not another one that was given the same id later', () => {
    const start = startOf(process.pid) ?? Number.NaN;
    expect(isLiveProcess(process.pid, start)).toBe(true);
    expect(isLiveProcess(process.pid, start - 1)).toBe(false);
    expect(startOf(4_194_305)).toBeUndefined();
  });

  it.runIf(process.platform === 'linux')(
    'is none that has ended and that its parent has not waited for',
    async () => {
      // What the shell becomes does not wait for what the shell had started.
      const parent = spawn('sh', ['-c', 'sleep 600 & echo $!; exec sleep 600'], {
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      onTestFinished(() => void parent.kill('SIGKILL'));
      const [line] = (await once(parent.stdout, 'data')) as [Buffer];
      const child = Number(line.toString());
      expect(isLiveProcess(child)).toBe(true);
      // Killed sooner, it might be waited for by the shell.
      await new Promise((resolve) => setTimeout(resolve, 200));
      process.kill(child, 'SIGKILL');
      await expect.poll(() => isLiveProcess(child), { timeout: 5_000 }).toBe(false);
      expect(() => process.kill(child, 0)).not.toThrow();
    },
  );
});
