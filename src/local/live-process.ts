import { readFileSync } from 'node:fs';

/**
 * Whether a process of that id is there and runs, whoever owns it; with `start` (from `startOf`), whether it is the very one
 * that began then: an id is given again, and in a container each start of its command has the same. One that has ended
 * and that nobody has waited for is none: it keeps its id for as long as its parent lives, which in a container without
 * an init process is for good.
 */
export function isLiveProcess(pid: number, start?: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it lives, under another user.
    if (!(error instanceof Error && 'code' in error && error.code === 'EPERM')) return false;
  }
  const status = statusOf(pid);
  if (status === undefined) return true;
  return !status.hasEnded && (start === undefined || status.start === start);
}

/** When a process began, in clock ticks since the machine did; undefined where the system does not tell. */
export const startOf = (pid: number): number | undefined => statusOf(pid)?.start;

interface Status {
  readonly hasEnded: boolean;
  readonly start: number;
}

/** Of systems without /proc nothing is known. */
function statusOf(pid: number): Status | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const stat = readFileSync(`/proc/${String(pid)}/stat`, 'latin1');
    // The third field and those behind it come after the name, which is in parentheses and may hold some itself.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const start = Number(fields[22 - 3]);
    return Number.isInteger(start) ? { hasEnded: /^[ZX]/.test(fields[0] ?? ''), start } : undefined;
  } catch {
    return undefined;
  }
}
