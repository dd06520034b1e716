import { readFileSync } from 'node:fs';
import type { LoggedProcess, ProcessExit } from './logged-process.ts';
import { treeOf } from './process-children.ts';

/** Often enough to see memory grow, and seldom enough to cost nothing: the kernel would see each page. */
const CHECK_EVERY_MS = 100;

/** Memory of a process that no file backs, as a memory limit counts it; 0 for one that is gone. */
function ownBytes(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const kilobytes = (field: string): number =>
      Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0);
    return 1_024 * (kilobytes('RssAnon') + kilobytes('RssShmem'));
  } catch {
    return 0;
  }
}

/** Memory of a process and of all that it has started, in groups of their own or not. Linux only; else 0. */
export const treeBytes = (pid: number): number => treeOf(pid).reduce((sum, each) => sum + ownBytes(each), 0);

/**
 * Calls `onExceeded` once, when a process and all that it has started hold more memory than `limitBytes`: what the
 * kernel does to a sandbox on AWS has to be done by somebody here. Stops by itself then.
 */
function watchMemory(pid: number, limitBytes: number, onExceeded: () => void): { stop(): void } {
  if (process.platform !== 'linux') return { stop: () => undefined };
  const timer = setInterval(() => {
    if (treeBytes(pid) <= limitBytes) return;
    clearInterval(timer);
    onExceeded();
  }, CHECK_EVERY_MS).unref();
  return {
    stop: () => {
      clearInterval(timer);
    },
  };
}

/** Ends processes, whatever group they lead. One that is gone is no error. */
function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  }
}

/** Ends a process and all that it has started, as AWS ends all of a sandbox that takes more memory than it has. */
export function endForMemory(child: LoggedProcess): void {
  const { pid } = child;
  const others = pid === undefined ? [] : treeOf(pid).slice(1); // Once it is gone nothing tells what it had started.
  child.signal('SIGKILL');
  killAll(others);
}

/** The exit of a process that is ended where it takes, with all that it has started, more than `limitMb`. `onExceeded` is called before. */
export async function exitWithin(
  child: LoggedProcess,
  limitMb: number,
  onExceeded: () => void,
): Promise<ProcessExit> {
  const { pid } = child;
  if (pid === undefined) return child.exited;
  const watch = watchMemory(pid, limitMb * 1_024 ** 2, () => {
    onExceeded();
    endForMemory(child);
  });
  return child.exited.finally(() => {
    watch.stop();
  });
}
