import { existsSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { forEachBounded } from '../lib/bounded.ts';
import { badInput } from './failures.ts';
import type { LocalFile } from './local-inputs.ts';

const deepestPath = 1_000;
const parallelLooks = 16;

/**
 * The same path with the links above what is there resolved, so that two of them can be compared; what is not there stays as
 * it is said.
 */
async function realOf(path: string): Promise<string> {
  let there = path;
  for (let step = 0; step < deepestPath && !existsSync(there); step++) there = dirname(there);
  return join(await realpath(there).catch(() => there), relative(there, path));
}

/** Whether `path` is `directory` or lies under it; both absolute, and without links. */
const isBelow = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(directory.endsWith(sep) ? directory : `${directory}${sep}`);

/** Whether `path` is `directory` or lies under it, wherever links lead; both absolute. */
export const isWithin = async (path: string, directory: string): Promise<boolean> =>
  isBelow(await realOf(path), await realOf(directory));

/**
 * Throws `InvalidInputError` where a stack would keep its data in a directory that is to hold a job's output and nothing else.
 * Both paths absolute; `text` as the user said the first.
 */
export async function refuseStateInside(stateDir: string, text: string, outputDir: string): Promise<void> {
  if (await isWithin(stateDir, outputDir))
    throw badInput(
      `--state-dir ${text} lies in the directory of --output, which holds the output alone: name one beside it`,
    );
}

/**
 * Throws `InvalidInputError` where a job would read what lies in a directory that is for something else.
 *
 * @param directory - absolute.
 * @param name - what messages call it, such as `--output counts`.
 */
export async function refuseInputsInside(
  files: readonly LocalFile[],
  directory: string,
  name: string,
): Promise<void> {
  if (!existsSync(directory)) return;
  const real = await realOf(directory);
  await forEachBounded(files, parallelLooks, async ({ path }) => {
    if (isBelow(await realOf(path), real))
      throw badInput(
        `input ${path} lies in the directory of ${name}: inputs must lie apart from it, so leave it out or name another directory`,
      );
  });
}
