import { readFileSync } from 'node:fs';

/** Of one tree; what starts more is stopped by other means. */
const mostProcesses = 256;

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

/** A process and all that it has started, in groups of their own or not, as far as they are still linked to it. */
export function treeOf(pid: number): readonly number[] {
  const pids = [pid];
  for (let next = 0; next < pids.length && pids.length < mostProcesses; next++)
    pids.push(...childrenOf(pids[next] ?? 0));
  return pids;
}
