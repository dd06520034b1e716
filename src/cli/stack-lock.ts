import { randomUUID } from 'node:crypto';
import { readFile, rename, rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { isLiveProcess, startOf } from '../local/live-process.ts';
import { createPrivateFile } from '../local/private-files.ts';
import { badInput, systemCode } from './failures.ts';

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
  const own = [process.pid, startOf(process.pid) ?? '', randomUUID(), use].join(' ');
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
    if (held !== undefined && (await takeOver(lock, directory, held, own))) return;
    tries++;
  }
  throw badInput(`${directory} is being taken by other processes: name another directory`);
}

const inUse = (directory: string, pid: string): Error =>
  badInput(`${directory} is in use by process ${pid}: end that one, or name another directory`);

/** What a file holds once it is there: `own`, or what another process wrote; undefined where that one has removed it since. */
async function createOrRead(path: string, own: string): Promise<string | undefined> {
  try {
    return await createPrivateFile(path, own);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

interface Owner {
  readonly pid: string;
  readonly use: string | undefined;
  readonly isLive: boolean;
}

/** Earlier locks held the id alone. */
function ownerOf(held: string): Owner {
  const [pid = '', start = '', , use] = held.trim().split(' ');
  return { pid, use, isLive: isLiveProcess(Number(pid), start === '' ? undefined : Number(start)) };
}

/**
 * Puts a lock in the place of one whose process is gone. Of many that want to, one does: a claim stands for each lock that is
 * to be replaced, and who has made that replaces it. A lock that was removed and taken again in between is another one, with
 * a token of its own, and stays.
 *
 * @returns whether the lock is ours.
 */
async function takeOver(lock: string, directory: string, gone: string, own: string): Promise<boolean> {
  const claim = `${lock}.${gone.trim().replace(/[^\w-]+/g, '-')}`;
  const claimed = await createOrRead(claim, own);
  if (claimed !== own) {
    if (claimed === undefined) return false;
    const { isLive, pid } = ownerOf(claimed);
    if (isLive) throw inUse(directory, pid);
    // Whoever was about to replace it is gone as well: that claim is replaced first, by the same rule.
    if (!(await takeOver(claim, directory, claimed, own))) return false;
  }
  if ((await readFile(lock, 'utf8').catch(() => '')) === gone) {
    await rename(claim, lock);
    return true;
  }
  await rm(claim, { force: true });
  return false;
}
