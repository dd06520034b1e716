import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { expect, onTestFinished } from 'vitest';
import { parseInjection } from '../../src/local/inject/injection.ts';
import { Injector } from '../../src/local/inject/injector.ts';
import type { Work } from '../../src/local/inject/work.ts';

export const patience = { timeout: 20_000, interval: 5 };

/** A program that waits for ever, in a group of its own. */
export function idler(): { child: ChildProcess; pid: number } {
  const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  return { child, pid: child.pid ?? 0 };
}

/** First letter of the state that the system tells: T is stopped. Empty where the process is gone. */
export function stateOf(pid: number): string {
  try {
    return execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
      .trim()
      .slice(0, 1)
      .replace(/[RDI]/, 'S'); // Whether what is free works at this moment is its own affair.
  } catch {
    return '';
  }
}

export const expectStopped = (pid: number) => expect.poll(() => stateOf(pid), patience).toBe('T');
export const expectFree = (pid: number) => expect.poll(() => stateOf(pid), patience).toBe('S');

export const workOf = (pid: number, isUnderWay = () => true): Work => ({
  name: 'worker',
  place: `place-${pid}`,
  pid,
  isUnderWay,
});

export function injector(text: string): Injector {
  const made = new Injector(parseInjection(text));
  onTestFinished(() => made.close());
  return made;
}
