import { constants, type Stats } from 'node:fs';
import { access, readdir, realpath, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { glob, isDynamicPattern } from 'tinyglobby';
import { limits } from '../contracts/limits.ts';
import { badInput, systemCode, systemReason } from './failures.ts';
import { observedFiles } from './observed-files.ts';

/** A file to read, and its size when it was found. */
export interface LocalFile {
  readonly path: string;
  readonly sizeBytes: number;
}

const deepestDirectory = 100;

/**
 * The readable files behind paths, directories and glob patterns, each once, in byte order of their absolute
 * paths. Directories are walked; in them, hidden entries are left out and symbolic links followed. A path that
 * exists is itself, whatever characters are in it; only then is it a pattern.
 *
 * @param option - How the user names this input in messages, such as `--input`.
 * @throws InvalidInputError where a path is missing or cannot be read, a pattern matches nothing or leads into a directory
 * that cannot be read, there is no file at all, or there are more than a job may have.
 */
export async function findLocalFiles(
  option: string,
  patterns: readonly string[],
  cwd: string,
): Promise<readonly LocalFile[]> {
  const found = new Map<string, LocalFile>();
  for (const pattern of patterns) {
    if (pattern === '') throw badInput(`${option} is empty: name a file, a directory or a pattern`);
    for (const path of await matches(option, pattern, cwd)) await collect(option, path, found, []);
  }
  if (found.size === 0) {
    throw badInput(`${option} ${patterns.join(' ')} holds no files (hidden ones do not count)`);
  }
  const files = [...found.values()].map((file) => ({ file, order: Buffer.from(file.path) }));
  return files.sort((a, b) => Buffer.compare(a.order, b.order)).map(({ file }) => file);
}

async function matches(option: string, pattern: string, cwd: string): Promise<readonly string[]> {
  const path = resolve(cwd, pattern);
  const failure = await stat(path).then(
    () => undefined,
    (error: unknown) => error,
  );
  if (failure === undefined) return [path];
  if (systemCode(failure) !== 'ENOENT' || !isDynamicPattern(pattern)) {
    throw badInput(`${option} ${pattern} cannot be read: ${systemReason(failure)}`, failure);
  }
  const { files: fs, unread } = observedFiles(pattern, cwd);
  const found = await glob(pattern, { cwd, absolute: true, onlyFiles: true, dot: false, fs });
  const failed = unread();
  if (failed !== undefined) {
    throw badInput(
      `${option} ${pattern}: the directory ${failed.path} cannot be read: ${systemReason(failed.error)}`,
      failed.error,
    );
  }
  if (found.length === 0) throw badInput(`${option} ${pattern} matches no file`);
  return found.map((match) => resolve(match));
}

/** `above` are the real paths of the directories that led here: a link back to one of them is a circle. */
async function collect(
  option: string,
  path: string,
  found: Map<string, LocalFile>,
  above: readonly string[],
): Promise<void> {
  try {
    const info = await stat(path);
    if (info.isDirectory()) {
      await walk(option, path, found, above);
      return;
    }
    await addFile(option, path, info, found);
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
    throw badInput(`${option} ${path} cannot be read: ${systemReason(error)}`, error);
  }
}

async function walk(
  option: string,
  path: string,
  found: Map<string, LocalFile>,
  above: readonly string[],
): Promise<void> {
  const real = await realpath(path);
  if (above.includes(real)) return;
  if (above.length >= deepestDirectory) {
    throw badInput(`${option} ${path} lies more than ${String(deepestDirectory)} directories deep`);
  }
  for (const name of await readdir(path)) {
    if (!name.startsWith('.')) await collect(option, join(path, name), found, [...above, real]);
  }
}

async function addFile(
  option: string,
  path: string,
  info: Stats,
  found: Map<string, LocalFile>,
): Promise<void> {
  if (!info.isFile()) throw badInput(`${option} ${path} is neither a file nor a directory`);
  await access(path, constants.R_OK);
  found.set(path, { path, sizeBytes: info.size });
  if (found.size > limits.inputObjects) {
    throw badInput(
      `${option} holds more than ${String(limits.inputObjects)} files, the most that a job may read`,
    );
  }
}
