import { setTimeout as delay } from 'node:timers/promises';
import { createOrRead, ownerOf, ownLock, takeOver } from '../local/process-lock.ts';
import { badInput } from './failures.ts';

/** What a process has a stack's directory for: a stack of its own, or to read what one has left, which takes a moment. */
export type LockUse = 'stack' | 'reading';

/** Locks of processes that are gone, and that others give back meanwhile, before this gives up. */
const mostTries = 20;
/** How long one that reads is waited for: its database takes up to 15 s to start, and is there to be read in a fraction of one. */
const readerLimitMs = 20_000;
const readerPollMs = 50;

/**
 * Takes the lock of a stack's directory, which is a file that says whose it is: id and start of the process, a token, and
 * the use. Waits for processes that read, and takes the place of one that is gone.
 *
 * @param directory - How messages name the directory, such as `--state-dir data`.
 * @throws InvalidInputError where another live process has it.
 */
export async function takeLock(lock: string, directory: string, use: LockUse): Promise<void> {
  const own = ownLock(use);
  const limit = performance.now() + readerLimitMs;
  for (let tries = 0; tries < mostTries;) {
    const held = await createOrRead(lock, own);
    if (held === own) return;
    const owner = held === undefined ? undefined : ownerOf(held);
    if (owner?.isLive === true && owner.use === 'reading' && performance.now() < limit) {
      await delay(readerPollMs);
      continue;
    }
    if (owner?.isLive === true) throw inUse(directory, owner.pid);
    const taken = held !== undefined && (await takeOver(lock, held, own));
    if (taken === true) return;
    if (taken !== false) throw inUse(directory, taken.pid);
    tries++;
  }
  throw badInput(`${directory} is being taken by other processes: name another directory`);
}

const inUse = (directory: string, pid: string): Error =>
  badInput(`${directory} is in use by process ${pid}: end that one, or name another directory`);
