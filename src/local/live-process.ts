import { readFileSync } from 'node:fs';

/**
 * Whether a process of that id is there and runs, whoever owns it. One that has ended and that nobody has waited for is none: it
 * keeps its id for as long as its parent lives, which in a container without an init process is for good.
 */
export function isLiveProcess(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it lives, under another user.
    if (!(error instanceof Error && 'code' in error && error.code === 'EPERM')) return false;
  }
  return !hasEnded(pid);
}

/** Of systems without /proc nothing is known. */
function hasEnded(pid: number): boolean {
  if (process.platform !== 'linux') return false;
  try {
    const stat = readFileSync(`/proc/${String(pid)}/stat`, 'latin1');
    // The state comes after the name, which is in parentheses and may hold some itself.
    return /^\) [ZX]/.test(stat.slice(stat.lastIndexOf(')')));
  } catch {
    return false;
  }
}
