import { isMainThread } from 'node:worker_threads';

const CHECK_EVERY_MS = 500;
const EXIT_CODE = 70;

/**
 * Ends this process, and its process group if it leads one, as it stands.
 *
 * The group goes too, because a program that the user's code started must not
 * outlive the environment that it ran in.
 */
export function endProcessGroup(): never {
  try {
    process.kill(-process.pid, 'SIGKILL');
  } catch {
    // Not a group leader: only this process can be ended.
  }
  process.exit(EXIT_CODE);
}

/**
 * Makes this process end soon (within a second) after the one that started it.
 *
 * A stack that is killed outright cannot end its processes; an orphan shows in
 * a changed parent id, whatever the platform. The check keeps nothing alive,
 * and worker threads do nothing, since their main thread watches already.
 */
export function endWithParent(): void {
  if (!isMainThread) return;
  const parentPid = process.ppid;
  setInterval(() => {
    if (process.ppid !== parentPid) endProcessGroup();
  }, CHECK_EVERY_MS).unref();
}
