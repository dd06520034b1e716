import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { fileURLToPath } from 'node:url';
import { scratchDir } from './fixtures.ts';
import { untilGone } from '../../../src/cli/console.ts';

/** A stream of which each write fails, as those of a process do to which nobody listens: it stays, and fails again. */
function failingStream(code: string) {
  const written: string[] = [];
  const stream = new Writable({
    autoDestroy: false,
    decodeStrings: false,
    write: (text: string, _encoding, done) => {
      written.push(text);
      done(Object.assign(new Error(`write ${code}`), { code }));
    },
  });
  return { stream, written };
}

describe('a stream whose reader has gone', () => {
  it.each(['EPIPE', 'EIO', 'ENXIO', 'ECONNRESET'])(
    'is told of once and written to no more: %s',
    async (code) => {
      const { stream, written } = failingStream(code);
      let told = 0;
      const write = untilGone(stream, () => told++);
      for (const text of ['a', 'b', 'c']) {
        write(text);
        await setImmediate();
      }
      stream.emit('error', Object.assign(new Error('again'), { code }));
      expect({ told, written }).toEqual({ told: 1, written: ['a'] });
    },
  );

  it('is none where writing fails for another reason', () => {
    const { stream } = failingStream('ENOSPC');
    let told = 0;
    untilGone(stream, () => told++);
    expect(() => stream.emit('error', Object.assign(new Error('full'), { code: 'ENOSPC' }))).toThrow('full');
    expect(told).toBe(0);
  });
});

/** Runs the command by a shell that has gone into a directory which was removed since. */
async function runInRemoved(...args: readonly string[]) {
  const directory = join(await scratchDir(), 'gone');
  await mkdir(directory);
  const script = 'cd "$1" && rmdir "$1" && shift && exec "$@"';
  const command = fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url));
  return await new Promise<{ exitCode: unknown; out: string; err: string }>((resolve) => {
    const words = ['-c', script, 'sh', directory, process.execPath, command, ...args];
    execFile('sh', words, (error, out, err) => {
      resolve({ exitCode: error?.code ?? 0, out, err });
    });
  });
}

describe('a command in a directory that was removed', () => {
  it('says so in one line', async () => {
    expect(await runInRemoved('list')).toEqual({
      exitCode: 2,
      out: '',
      err: 'outrider: the working directory is gone: go to another\n',
    });
  });

  it('tells of its version all the same', async () => {
    const { exitCode, out, err } = await runInRemoved('--version');
    expect([exitCode, err]).toEqual([0, '']);
    expect(out).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});
