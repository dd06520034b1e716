import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { scratchPrefix } from '../../src/worker/run-attempt.ts';

/**
 * Removes what attempts left in the scratch directory of a worker whose process was killed: Lambda starts another process in the
 * same environment, with its files as they were. Only before the first attempt of a process, and only where no other process
 * works there. Never throws: what cannot be removed takes room, and no more than that.
 */
export async function clearScratch(root: string): Promise<void> {
  const names = await readdir(root).catch(() => []);
  const left = names.filter((name) => name.startsWith(scratchPrefix));
  await Promise.allSettled(left.map((name) => rm(join(root, name), { recursive: true, force: true })));
}
