import { constants } from 'node:fs';
import { link, lstat, mkdir, open, readFile, rm, type FileHandle } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { isMainThread } from 'node:worker_threads';

/** Why a directory or file cannot hold what nobody else may read. */
export class NotPrivateError extends Error {
  override readonly name = 'NotPrivateError';
}

const OTHERS = 0o077;
const DIRECTORY_MODE = 0o700;
const FILE_MODE = 0o600;

let umaskBefore: number | undefined;

/**
 * From now on nothing that this process and those that it starts make can be read by others, unless they say so.
 * May be called again.
 */
export function keepNewFilesPrivate(): void {
  if (!isMainThread) return; // Only the main thread may; it has done so, or what is made lies in a private directory.
  const before = process.umask(OTHERS);
  umaskBefore ??= before;
}

/** The mode that a file or directory for the person would have had without {@link keepNewFilesPrivate}. */
export const usualMode = (mode: 0o666 | 0o777): number | undefined =>
  umaskBefore === undefined ? undefined : mode & ~umaskBefore;

/**
 * Makes a directory that only its owner may enter, or takes the access of others to one that is there.
 *
 * @throws NotPrivateError where it is a symbolic link or belongs to another user; the system's error where it is no
 * directory or cannot be made.
 */
export async function makePrivateDirectory(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: DIRECTORY_MODE });
  const handle = await openUnlinked(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await takeAccess(handle, path, DIRECTORY_MODE);
  } finally {
    await handle.close();
  }
}

/**
 * What a private file holds.
 *
 * @returns Undefined where there is none, or where others might have read it.
 * @throws NotPrivateError where it is a symbolic link or belongs to another user.
 */
export async function readPrivateFile(path: string): Promise<string | undefined> {
  return readChecked(path, (mode) => (mode & OTHERS) === 0);
}

/**
 * What a file of the person's own holds; undefined where there is none.
 *
 * @throws NotPrivateError where it is a symbolic link or belongs to another user; other errors of the system.
 */
export async function readOwnFile(path: string): Promise<string | undefined> {
  return readChecked(path, () => true);
}

/**
 * Writes a file that only its owner may read. It is whole and private from the moment at which it has its name.
 *
 * @returns What it holds now: `text`, or what another process wrote there first.
 */
export async function createPrivateFile(path: string, text: string): Promise<string> {
  const temporary = `${path}.${randomBytes(8).toString('hex')}`;
  const handle = await open(temporary, 'wx', FILE_MODE);
  try {
    await handle.chmod(FILE_MODE); // Whatever the umask takes or leaves.
    await handle.writeFile(text);
    await handle.sync();
    await handle.close();
    await link(temporary, path);
    return text;
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    return await readFile(path, 'utf8');
  } finally {
    await handle.close().catch(() => undefined);
    await rm(temporary, { force: true });
  }
}

async function readChecked(path: string, isFit: (mode: number) => boolean): Promise<string | undefined> {
  let handle: FileHandle;
  try {
    handle = await openUnlinked(path, constants.O_RDONLY);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const info = await handle.stat();
    checkOwner(info.uid, path);
    return isFit(info.mode) ? await handle.readFile('utf8') : undefined;
  } finally {
    await handle.close();
  }
}

async function openUnlinked(path: string, flags: number): Promise<FileHandle> {
  try {
    return await open(path, flags | constants.O_NOFOLLOW);
  } catch (error) {
    // A link is ELOOP; with O_DIRECTORY it is no directory.
    if (codeOf(error) === 'ELOOP' || (codeOf(error) === 'ENOTDIR' && (await isLink(path)))) {
      throw new NotPrivateError(`${path} is a symbolic link: name what it stands for instead`, {
        cause: error,
      });
    }
    throw error;
  }
}

async function isLink(path: string): Promise<boolean> {
  return (await lstat(path)).isSymbolicLink();
}

async function takeAccess(handle: FileHandle, path: string, mode: number): Promise<void> {
  const info = await handle.stat();
  checkOwner(info.uid, path);
  if ((info.mode & OTHERS) !== 0) await handle.chmod(mode);
}

function checkOwner(uid: number, path: string): void {
  const own = process.geteuid?.();
  if (own !== undefined && uid !== own) {
    throw new NotPrivateError(
      `${path} belongs to another user (${String(uid)}): name a directory of your own`,
    );
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
