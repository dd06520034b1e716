import { readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { createPrivateFile, makePrivateDirectory, NotPrivateError } from '../local/private-files.ts';
import { badInput, systemCode, systemReason } from './failures.ts';
import { takeLock } from './stack-lock.ts';
import { makeTemporaryDirectory } from './temporary-directory.ts';

/** A directory in which one embedded stack keeps its data, locked against a second one. */
export interface StateDir {
  readonly path: string;
  /** Unlocks; and removes the directory where it was a temporary one that nobody wants kept, nor is to `keep` now. */
  release(options?: { readonly keep?: boolean }): Promise<void>;
}

const lockName = 'stack.lock';
/** Says that a directory is a stack's, which may remove there what it likes. */
const markName = 'outrider-state.txt';
const markText =
  'An embedded stack of outrider keeps its data in this directory. It replaces and removes them as it needs.\n';
/** What lies in directories that stacks before that mark have left: all of these. */
const unmarked = ['credentials.json', 'dynamodb', 's3'];
/** What may lie in a directory that no stack has had: the records of jobs run elsewhere, and what systems put everywhere. */
const harmless: ReadonlySet<string> = new Set([
  'runs',
  'checkout-package.json',
  'lost+found',
  '.DS_Store',
  '.gitignore',
]);

/** A new directory among the machine's temporary files. Throws `InvalidInputError` where there can be none. */
export async function makeTemporaryStateDir(isWanted: boolean): Promise<StateDir> {
  const otherwise = ", or one for the stack's data with --state-dir";
  const path = await makeTemporaryDirectory('outrider-', otherwise);
  return {
    path,
    release: async ({ keep = isWanted } = {}) => {
      if (!keep) await rm(path, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/**
 * A directory of the user's choice, made if missing. One that holds what no stack has put there is left as it is: a stack
 * takes the access of others to its directory, and removes what an earlier one has left in it.
 *
 * @throws InvalidInputError where it cannot be written, holds somebody else's files, or another live process has it.
 */
export async function openStateDir(text: string, cwd: string): Promise<StateDir> {
  const path = resolve(cwd, text);
  const lock = join(path, lockName);
  const release = (): Promise<void> => rm(lock, { force: true });
  try {
    refuseStrangers(await namesIn(path), text);
    await makePrivateDirectory(path);
    await takeLock(lock, `--state-dir ${text}`, 'stack');
    await createPrivateFile(join(path, markName), markText).catch(async (error: unknown) => {
      await release();
      throw error;
    });
  } catch (error) {
    if (error instanceof NotPrivateError) throw badInput(`--state-dir: ${error.message}`, error);
    if (systemCode(error) === undefined) throw error;
    throw badInput(`--state-dir ${text} cannot be used: ${systemReason(error)}`, error);
  }
  return { path, release };
}

/**
 * Locks the directory of a stack that is not up for as long as somebody reads what it has left. Waits for others that do the
 * same.
 *
 * @throws InvalidInputError where a stack has it now; the system's error where it cannot be written.
 */
export async function lockEndedStack(path: string): Promise<StateDir> {
  const lock = join(path, lockName);
  await takeLock(lock, `--state-dir ${path}`, 'reading');
  return { path, release: () => rm(lock, { force: true }) };
}

/** None where there is no such directory. */
async function namesIn(path: string): Promise<readonly string[]> {
  try {
    return await readdir(path);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  }
}

function refuseStrangers(names: readonly string[], text: string): void {
  if (names.includes(markName) || unmarked.every((name) => names.includes(name))) return;
  const stranger = names.find((name) => !harmless.has(name) && !name.startsWith(lockName));
  if (stranger === undefined) return;
  throw badInput(
    `--state-dir ${text} holds "${stranger}", which is no stack's: name an empty directory, or one that is not there`,
  );
}
