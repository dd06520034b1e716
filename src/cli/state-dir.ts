import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { isLiveProcess } from '../local/live-process.ts';
import { makePrivateDirectory, NotPrivateError } from '../local/private-files.ts';
import { badInput, systemCode, systemReason } from './failures.ts';

/** A directory in which one embedded stack keeps its data, locked against a second one. */
export interface StateDir {
  readonly path: string;
  /** Unlocks; and removes the directory where it was a temporary one that nobody wants kept. */
  release(): Promise<void>;
}

const lockName = 'stack.lock';
const lockAttempts = 3;

/** A new directory among the machine's temporary files. */
export async function makeTemporaryStateDir(keep: boolean): Promise<StateDir> {
  const path = await mkdtemp(join(tmpdir(), 'outrider-'));
  return {
    path,
    release: async () => {
      if (!keep) await rm(path, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/**
 * A directory of the user's choice, made if missing.
 *
 * @throws InvalidInputError where it cannot be written, or another live process has it.
 */
export async function openStateDir(text: string, cwd: string): Promise<StateDir> {
  const path = resolve(cwd, text);
  const lock = join(path, lockName);
  try {
    await makePrivateDirectory(path);
    await takeLock(lock, text);
  } catch (error) {
    if (error instanceof NotPrivateError) throw badInput(`--state-dir: ${error.message}`, error);
    if (systemCode(error) === undefined) throw error;
    throw badInput(`--state-dir ${text} cannot be used: ${systemReason(error)}`, error);
  }
  return { path, release: () => rm(lock, { force: true }) };
}

async function takeLock(lock: string, text: string): Promise<void> {
  for (let attempt = 0; attempt < lockAttempts; attempt++) {
    try {
      const handle = await open(lock, 'wx', 0o600);
      await handle.writeFile(`${String(process.pid)}\n`);
      await handle.close();
      return;
    } catch (error) {
      if (systemCode(error) !== 'EEXIST') throw error;
    }
    const owner = Number.parseInt(await readFile(lock, 'utf8').catch(() => ''), 10);
    if (isLiveProcess(owner)) {
      throw badInput(
        `--state-dir ${text} is in use by process ${String(owner)}: end that one, or name another directory`,
      );
    }
    await rm(lock, { force: true }); // Its process is gone.
  }
  throw badInput(`--state-dir ${text} is being taken by another process: name another directory`);
}
