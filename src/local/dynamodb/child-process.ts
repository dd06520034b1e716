import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';

/** A process that is reached by its pipes alone. */
export interface PipedProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly exited: Promise<void>;
  /** The last of what it wrote to standard error. */
  readonly log: () => string;
  /** Closes its standard input, then SIGTERM, then SIGKILL; safe to call twice. */
  close(): Promise<void>;
}

const END_LIMIT_MS = 3_000;
const LOG_LIMIT_CHARS = 8_192;

/**
 * Starts a program that ends when its standard input does, so it outlives this process in no case, not even
 * `kill -9`. It gets nothing of this process's environment but the PATH.
 *
 * @throws the system's error where the program cannot be started.
 */
export function startPiped(command: readonly string[], stdio: StdioOptions): PipedProcess {
  const [program = '', ...args] = command;
  const child = spawn(program, args, {
    stdio,
    env: { PATH: process.env['PATH'] ?? '' },
    // A group of its own: Ctrl-C in a terminal must not take it away from those who still write their ends to it.
    detached: true,
  });
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => {
      resolve();
    });
    child.once('error', () => {
      resolve();
    });
  });
  child.stdin?.on('error', () => undefined); // The process may be gone already; `exited` tells of that.
  let text = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(-LOG_LIMIT_CHARS);
  });
  return {
    child,
    pid: child.pid ?? -1,
    exited,
    log: () => text.trim(),
    close: async () => {
      child.stdin?.end();
      const isGone = (limitMs: number): Promise<boolean> =>
        Promise.race([exited.then(() => true), delay(limitMs, false, { ref: false })]);
      if (await isGone(END_LIMIT_MS)) return;
      child.kill('SIGTERM');
      if (await isGone(END_LIMIT_MS)) return;
      child.kill('SIGKILL');
      await exited;
    },
  };
}
