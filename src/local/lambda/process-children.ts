import { readFileSync } from 'node:fs';

/** Processes that a process has started and that are still its children. Linux only; else none. */
export function childrenOf(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
      .trim()
      .split(' ')
      .map(Number)
      .filter((child) => child > 1);
  } catch {
    return [];
  }
}
