import { randomUUID } from 'node:crypto';
import { readFile, rename, rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLiveProcess, startOf } from './live-process.ts';
import { createPrivateFile } from './private-files.ts';

/*
 * Locks that are files which say whose they are: id and start of the process, a token, and what it is for. A file appears
 * whole, and the lock of a process that is gone is taken over.
 */

/** Whose a lock is. */
export interface LockOwner {
  readonly pid: string;
  readonly use: string | undefined;
  readonly isLive: boolean;
}

/** What this process writes into a lock that it takes. */
export const ownLock = (use: string): string =>
  [process.pid, startOf(process.pid) ?? '', randomUUID(), use].join(' ');

/** What a file holds once it is there: `own`, or what another process wrote; undefined where that one has removed it since. */
export async function createOrRead(path: string, own: string): Promise<string | undefined> {
  try {
    return await createPrivateFile(path, own);
  } catch (error) {
    // `path` itself is named only where it was there and is gone again. Where the directory is missing, the error names the temporary
    // file beside it.
    if (hasCode(error, 'ENOENT') && error.path === path) return undefined;
    throw error;
  }
}

/** Earlier locks held the id alone. */
export function ownerOf(held: string): LockOwner {
  const [pid = '', start = '', , use] = held.trim().split(' ');
  return { pid, use, isLive: isLiveProcess(Number(pid), start === '' ? undefined : Number(start)) };
}

/**
 * Puts a lock in the place of one whose process is gone. Of many that want to, one does: a claim stands for each lock that is
 * to be replaced, and who has made that replaces it. A lock that was removed and taken again in between is another one, with
 * a token of its own, and stays.
 *
 * @returns whether the lock is ours, or the live process that is about to take it.
 */
export async function takeOver(lock: string, gone: string, own: string): Promise<boolean | LockOwner> {
  const claim = `${lock}.${gone.trim().replace(/[^\w-]+/g, '-')}`;
  const claimed = await createOrRead(claim, own);
  if (claimed !== own) {
    if (claimed === undefined) return false;
    const owner = ownerOf(claimed);
    if (owner.isLive) return owner;
    // Whoever was about to replace it is gone as well: that claim is replaced first, by the same rule.
    const replaced = await takeOver(claim, claimed, own);
    if (replaced !== true) return replaced;
  }
  if ((await readFile(lock, 'utf8').catch(() => undefined)) === gone) {
    await rename(claim, lock);
    return true;
  }
  await rm(claim, { force: true });
  return false;
}

/** A lock as it is; without a text where it is another user's, who alone may read it. */
async function readLock(lock: string): Promise<{ readonly text: string | undefined } | 'none'> {
  try {
    return { text: await readFile(lock, 'utf8') };
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 'none';
    if (hasCode(error, 'EACCES')) return { text: undefined };
    throw error;
  }
}

/**
 * Takes a lock once nobody alive has it. Throws what the system says where none can be made.
 *
 * @returns what gives it back; undefined where it was not to be had within `limitMs`.
 */
export async function waitForLock(
  lock: string,
  { use, limitMs, pollMs }: { readonly use: string; readonly limitMs: number; readonly pollMs: number },
): Promise<(() => Promise<void>) | undefined> {
  const own = ownLock(use);
  const release = (): Promise<void> => rm(lock, { force: true });
  for (let waitedMs = 0; waitedMs < limitMs; waitedMs += pollMs) {
    const there = await readLock(lock);
    const held = there === 'none' ? await createOrRead(lock, own) : there.text;
    if (held === own) return release;
    const isGone = held !== undefined && !ownerOf(held).isLive;
    if (isGone && (await takeOver(lock, held, own)) === true) return release;
    await sleep(pollMs);
  }
  return undefined;
}

const hasCode = (error: unknown, code: string): error is NodeJS.ErrnoException =>
  error instanceof Error && 'code' in error && error.code === code;
