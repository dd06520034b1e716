import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished } from 'vitest';

const command = fileURLToPath(new URL('../../src/cli/outrider.js', import.meta.url));

/** What a command has left: its exit code (null after a signal) and all that it wrote. */
export interface Finished {
  readonly exitCode: number | null;
  readonly out: string;
  readonly err: string;
}

/** A command under way. */
export interface Started {
  readonly process: ChildProcess;
  readonly finished: Promise<Finished>;
  /** Resolves with all output so far once it holds `text`; rejects if the command ends before. */
  readonly saying: (text: string) => Promise<string>;
}

/** A directory of its own for a user of the command: inputs, outputs, and all temporary files of the machine. */
export class Workplace {
  readonly dir: string;
  readonly temporary: string;

  private constructor(dir: string) {
    this.dir = dir;
    this.temporary = join(dir, 'tmp');
  }

  static async make(): Promise<Workplace> {
    const place = new Workplace(await mkdtemp(join(tmpdir(), 'outrider-e2e-')));
    await mkdir(place.temporary);
    onTestFinished(() => rm(place.dir, { recursive: true, force: true, maxRetries: 5 }));
    return place;
  }

  path(...parts: readonly string[]): string {
    return join(this.dir, ...parts);
  }

  start(...args: readonly string[]): Started {
    const child = spawn(process.execPath, [command, ...args], {
      cwd: this.dir,
      env: { ...process.env, TMPDIR: this.temporary, NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const written = { out: '', err: '' };
    const ended = Promise.withResolvers<Finished>();
    child.stdout.setEncoding('utf8').on('data', (text: string) => (written.out += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (written.err += text));
    child.once('close', (exitCode) => {
      ended.resolve({ exitCode, ...written });
    });
    onTestFinished(() => {
      child.kill('SIGTERM');
    });
    const saying = async (text: string): Promise<string> => {
      for (;;) {
        const all = written.out + written.err;
        if (all.includes(text)) return all;
        const next = await Promise.race([
          once(child.stdout, 'data'),
          once(child.stderr, 'data'),
          ended.promise.then(() => 'ended' as const),
        ]);
        if (next === 'ended') throw new Error(`ended without saying ${text}: ${written.out}${written.err}`);
      }
    };
    return { process: child, finished: ended.promise, saying };
  }

  run(...args: readonly string[]): Promise<Finished> {
    return this.start(...args).finished;
  }

  /** The parts of an output laid end to end. */
  async parts(output: string): Promise<Buffer> {
    const names = (await readdir(this.path(output))).filter((name) => name.startsWith('part-')).sort();
    return Buffer.concat(await Promise.all(names.map((name) => readFile(this.path(output, name)))));
  }

  /** None may be left when a command has ended, but for watchdogs that see it a moment later. */
  async expectNoProcesses(): Promise<void> {
    await expect
      .poll(async () => (await this.processes()).map(({ line }) => line), { timeout: 10_000 })
      .toEqual([]);
  }

  /** Kills every process of this place outright, as a machine that loses its power. */
  async killAll(): Promise<void> {
    // More than one look: what is being started in the first has no environment of its own yet.
    for (let look = 0; look < 3; look++) {
      for (const { pid } of await this.processes()) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch {
          // It ended by itself in between.
        }
      }
    }
    await this.expectNoProcesses();
  }

  /** Processes whose command line or environment names this place. */
  private async processes(): Promise<readonly { readonly pid: number; readonly line: string }[]> {
    const found: { pid: number; line: string }[] = [];
    for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
      const [line, environment] = await Promise.all(
        ['cmdline', 'environ'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
      );
      if (Number(pid) !== process.pid && `${line ?? ''}${environment ?? ''}`.includes(this.dir))
        found.push({ pid: Number(pid), line: line ?? pid });
    }
    return found;
  }
}
