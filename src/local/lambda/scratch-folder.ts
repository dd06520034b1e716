import { mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder that only one process uses, as /tmp is in a real sandbox. */
export interface ScratchFolder {
  readonly path: string;
  /** Deletes it with all that is in it; what cannot be deleted stays. */
  remove(): Promise<void>;
}

/** Makes the folder `name` in `parentDir`, or among the system's temporary files. Throws if that fails. */
export function makeScratchFolder(parentDir: string | undefined, name: string): ScratchFolder {
  const path = join(parentDir ?? tmpdir(), name);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return {
    path,
    async remove() {
      try {
        await rm(path, { recursive: true, force: true, maxRetries: 3 });
      } catch {
        // Scratch data is worth no failure of what used it.
      }
    },
  };
}
