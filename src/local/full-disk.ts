import type { StatsFs } from 'node:fs';
import { readFile, statfs } from 'node:fs/promises';

const reasons: ReadonlyMap<unknown, string> = new Map([
  ['ENOSPC', 'the disk is full'],
  ['EDQUOT', 'the quota of disk space is used up'],
  ['EROFS', 'the file system is read-only'],
]);

/** What is wrong and what to do where a write failed for want of room on the disk; undefined for any other error. */
export function fullDiskText(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  const reason = reasons.get(error.code);
  if (reason === undefined) return undefined;
  return `${reason} where the stack keeps its data: make room there, and try again (${error.message})`;
}

/** Below that no job can be kept on record: the database alone takes as much for a small one. */
const LEAST_BYTES = 4 * 1024 * 1024;

/** Why no job can be begun whose records go to a directory; undefined where there is room, or nobody can tell. */
export async function whyNoRoom(dir: string, leastBytes = LEAST_BYTES): Promise<string | undefined> {
  const found = await statfs(dir).catch(() => undefined);
  // Some file systems do not tell their size.
  if (found === undefined || found.blocks === 0) return undefined;
  if (freeBytes(found, { uid: process.getuid?.(), uidMap: await ownUidMap() }) >= leastBytes)
    return undefined;
  // Not that nothing was begun: of a submission that is sent again, the job may be there.
  return `the disk is full where the stack keeps its data, ${dir}, and no new job can be begun: make room there, and try again`;
}

/** All ids there are, each for itself. */
const wholeUidMap = /^\s*0\s+0\s+4294967295\s/;

/**
 * What a user may still write to a file system. Part of what is free many of them keep for the root of the system itself. That
 * of a user namespace, as of a container without root, is another user to them: `uidMap` tells, the content of
 * `/proc/self/uid_map`, undefined where the system has none. (man 7 user_namespaces)
 */
export const freeBytes = (
  { bsize, bfree, bavail }: Pick<StatsFs, 'bsize' | 'bfree' | 'bavail'>,
  { uid, uidMap }: { readonly uid: number | undefined; readonly uidMap: string | undefined },
): number => (uid === 0 && (uidMap === undefined || wholeUidMap.test(uidMap)) ? bfree : bavail) * bsize;

/** Empty where it is there and cannot be read. */
const ownUidMap = (): Promise<string | undefined> =>
  readFile('/proc/self/uid_map', 'utf8').catch((error: unknown) =>
    error instanceof Error && 'code' in error && error.code === 'ENOENT' ? undefined : '',
  );
