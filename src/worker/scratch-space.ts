import { statfs } from 'node:fs/promises';
import { BadInputError } from './operator.ts';

/** Space for scratch files. */
export interface ScratchSpace {
  readonly freeBytes: number;
  /** Of the disk, whoever uses it. */
  readonly totalBytes: number;
}

/** What the disk of a directory holds. */
export async function scratchSpaceOf(dir: string): Promise<ScratchSpace> {
  const { bavail, blocks, bsize } = await statfs(dir);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

const inMb = (bytes: number): string => `${String(Math.ceil(bytes / 1024 ** 2))} MB`;

/** The failure of a task whose input fits neither into memory nor onto its disk: the next attempt meets the same. */
export const scratchTooSmall = (
  at: ScratchSpace & { readonly neededBytes: number; readonly segments: number },
): BadInputError =>
  new BadInputError(
    `the task merges ${inMb(at.neededBytes)} in ${String(at.segments)} segments, but its worker has ` +
      `${inMb(at.freeBytes)} of ${inMb(at.totalBytes)} of scratch space free: give the stage before it more ` +
      'partitions, or this stage a larger worker.size',
  );
