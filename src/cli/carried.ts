import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { relative, sep } from 'node:path';
import { uriOf } from '../contracts/keys.ts';
import { limits } from '../contracts/limits.ts';
import { carriedKey, type TaskFile } from '../contracts/task-files.ts';
import { forEachBounded } from '../lib/bounded.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { badInput, systemCode, systemReason } from './failures.ts';
import { findLocalFiles, type HiddenNames } from './local-inputs.ts';

/** What travels with a job by its content: it lies in the data bucket under its digest, once for all jobs. */
export interface Carried {
  readonly sha256: string;
  readonly bytes: Uint8Array;
}

/** A file of the user's that is laid into the working directory of a stage's program. */
export interface CarriedFile extends Carried {
  /** Where it is laid. */
  readonly path: string;
  readonly executable: boolean;
}

const anyExecute = 0o111;
const parallelUploads = 4;

/** Something to carry, by its bytes. */
export const carriedOf = (bytes: Uint8Array): Carried => ({
  bytes,
  sha256: createHash('sha256').update(bytes).digest('hex'),
});

/** Programs have files of such names as `__init__.py`. */
const hiddenCode: HiddenNames = { isHidden: (name) => name.startsWith('.'), beginWith: '"."' };

/**
 * The files behind paths, directories and patterns that lie in `directory` or below it, in byte order.
 *
 * @param where - How messages name the field, such as `stages[0].options.files`.
 * @throws InvalidInputError where one is missing, lies elsewhere, or there are too many or too large ones.
 */
export async function readCarriedFiles(
  where: string,
  patterns: readonly string[],
  directory: string,
): Promise<readonly CarriedFile[]> {
  const found = await findLocalFiles(where, patterns, directory, hiddenCode);
  if (found.length > limits.filesPerStage)
    throw badInput(
      `${where} holds ${String(found.length)} files: it may hold ${String(limits.filesPerStage)}`,
    );
  let total = 0;
  const files: CarriedFile[] = [];
  for (const { path, sizeBytes } of found) {
    const name = relative(directory, path).split(sep).join('/');
    if (name.startsWith('../') || name === '..' || name.startsWith('/'))
      throw badInput(`${where}: ${path} must lie in ${directory} or below it, beside the spec`);
    total += sizeBytes;
    if (sizeBytes > limits.fileBytes)
      throw badInput(`${where}: ${name} is larger than ${String(limits.fileBytes)} bytes`);
    if (total > limits.filesBytes)
      throw badInput(`${where} must be at most ${String(limits.filesBytes)} bytes together`);
    try {
      const { mode } = await stat(path);
      const executable = (mode & anyExecute) !== 0;
      files.push({ ...carriedOf(await readFile(path)), path: name, executable });
    } catch (error) {
      if (systemCode(error) === undefined) throw error;
      throw badInput(`${where}: ${name} cannot be read: ${systemReason(error)}`, error);
    }
  }
  return files;
}

/** How a spec names a carried file that lies in `bucket`. */
export const taskFileOf = ({ path, executable, sha256 }: CarriedFile, bucket: string): TaskFile => ({
  path,
  s3: uriOf({ bucket, key: carriedKey(sha256) }),
  sha256,
  executable,
});

/**
 * Writes what is not there yet; each object appears whole or not at all. `isRefreshed` writes all anew, for a bucket
 * that drops what has grown old.
 *
 * @returns How many it wrote.
 */
export async function uploadCarried(
  store: ObjectStore,
  bucket: string,
  carried: readonly Carried[],
  { signal, isRefreshed = false }: { readonly signal: AbortSignal; readonly isRefreshed?: boolean },
): Promise<number> {
  let written = 0;
  const distinct = [...new Map(carried.map((each) => [each.sha256, each])).values()];
  await forEachBounded(distinct, parallelUploads, async ({ sha256, bytes }) => {
    signal.throwIfAborted();
    const ref = { bucket, key: carriedKey(sha256) };
    if (!isRefreshed && (await store.head(ref))?.sizeBytes === bytes.length) return;
    await store.write(ref, bytes);
    written++;
  });
  return written;
}
