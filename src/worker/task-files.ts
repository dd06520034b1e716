import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { limits } from '../contracts/limits.ts';
import type { TaskFile } from '../contracts/task-files.ts';
import { forEachBounded } from '../lib/bounded.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { BadInputError, type TaskInput } from './operator.ts';
import { fetchBundle } from './user-code/bundle.ts';

const parallelFiles = 4;

/**
 * Lays the files of a stage into a directory, executable where they are said to be. Throws `BadInputError` where one is
 * gone or is not what was submitted, or all are too large together. Ends early where the signal fires.
 */
export async function layFiles(
  objects: ObjectStore,
  files: readonly TaskFile[],
  directory: string,
  signal?: AbortSignal,
): Promise<void> {
  let total = 0;
  await forEachBounded(files, parallelFiles, async (file) => {
    const bytes = await fetchBundle(objects, file, { what: `file ${file.path}`, ...(signal && { signal }) });
    total += bytes.length;
    if (total > limits.filesBytes)
      throw new BadInputError(`the files of a stage must be at most ${limits.filesBytes} bytes together`);
    const path = join(directory, file.path);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, bytes, { mode: file.executable ? 0o755 : 0o644 });
  });
}

/**
 * Variables that tell a program which work it does: OUTRIDER_STAGE, OUTRIDER_TASK and OUTRIDER_ATTEMPT (numbers from 0);
 * where its task reads objects, OUTRIDER_INPUT and OUTRIDER_OFFSET: the first one's address, and the byte from which on
 * the task reads it.
 */
export function taskVariables(
  stage: string,
  numbers: { readonly task: number; readonly attempt: number },
  inputs: readonly TaskInput[],
): Record<string, string> {
  const [first] = inputs.flatMap(({ objects = [] }) => objects);
  return {
    OUTRIDER_STAGE: stage,
    OUTRIDER_TASK: String(numbers.task),
    OUTRIDER_ATTEMPT: String(numbers.attempt),
    ...(first === undefined ? {} : { OUTRIDER_INPUT: first.uri, OUTRIDER_OFFSET: String(first.start) }),
  };
}

/**
 * What a task reads, in a few words for the message of its failure: its objects and the bytes, else its stages. The same
 * for all attempts of a task, since failures are compared. Empty where it reads nothing.
 */
export function describeInputs(inputs: readonly TaskInput[]): string {
  const objects = inputs.flatMap(({ objects = [] }) => objects);
  const [first] = objects;
  if (first !== undefined) {
    const more = objects.length - 1;
    const others = more === 0 ? '' : ` and ${String(more)} more object${more === 1 ? '' : 's'}`;
    return `reading ${first.uri}, bytes ${String(first.start)} to ${String(first.end)}${others}`;
  }
  const stages = inputs.flatMap(({ stage }) => (stage === undefined ? [] : [stage]));
  return stages.length === 0 ? '' : `reading the output of ${stages.join(', ')}`;
}
