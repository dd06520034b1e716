import { constants, type Stats } from 'node:fs';
import { access, readdir, realpath, stat } from 'node:fs/promises';
import { join, relative, resolve, sep } from 'node:path';
import { glob, isDynamicPattern } from 'tinyglobby';
import { isHiddenName } from '../contracts/keys.ts';
import { limits } from '../contracts/limits.ts';
import { badInput, systemCode, systemReason } from './failures.ts';
import { observedFiles } from './observed-files.ts';

/** A file to read, and its size when it was found. */
export interface LocalFile {
  readonly path: string;
  readonly sizeBytes: number;
}

/** Which names directories and patterns that lead to them do not count, and how messages say so. */
export interface HiddenNames {
  readonly isHidden: (name: string) => boolean;
  readonly beginWith: string;
}

/** Of data: as below a prefix on S3. */
const hiddenData: HiddenNames = { isHidden: isHiddenName, beginWith: '"_" or "."' };

const deepestDirectory = 100;

/**
 * The readable files behind paths, directories and glob patterns, each once, in byte order of their absolute
 * paths. Directories are walked; in them, hidden entries are left out and symbolic links followed. A path that
 * exists is itself, whatever characters are in it; only then is it a pattern, which leads to what is hidden only if it
 * says so in its own letters.
 *
 * @param option - How the user names this input in messages, such as `--input`.
 * @param hidden - Names that are passed over; absent: those that are no data.
 * @throws InvalidInputError where a path is missing or cannot be read, a pattern matches nothing or leads into a directory
 * that cannot be read, there is no file at all, or there are more than a job may have.
 */
export async function findLocalFiles(
  option: string,
  patterns: readonly string[],
  cwd: string,
  hidden = hiddenData,
): Promise<readonly LocalFile[]> {
  const found = new Map<string, LocalFile>();
  const search = { option, found, hidden };
  for (const pattern of patterns) {
    if (pattern === '') throw badInput(`${option} is empty: name a file, a directory or a pattern`);
    for (const path of await matches(search, pattern, cwd)) await collect(search, path, []);
  }
  if (found.size === 0) {
    throw badInput(
      `${option} ${patterns.join(' ')} holds no files (those whose names begin with ${hidden.beginWith} do not count)`,
    );
  }
  const files = [...found.values()].map((file) => ({ file, order: Buffer.from(file.path) }));
  return files.sort((a, b) => Buffer.compare(a.order, b.order)).map(({ file }) => file);
}

/** A search for files, and those that it has found, by path. */
interface Search {
  readonly option: string;
  readonly found: Map<string, LocalFile>;
  readonly hidden: HiddenNames;
}

async function matches({ option, hidden }: Search, pattern: string, cwd: string): Promise<readonly string[]> {
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
  const paths = found.map((match) => resolve(match));
  const wanted = paths.filter(meantBy(pattern, cwd, hidden));
  if (wanted.length === 0)
    throw badInput(
      `${option} ${pattern} matches no file but those whose names begin with ${hidden.beginWith}, which are passed over`,
    );
  return wanted;
}

/** Which of what a pattern matches it means: not what is hidden, but where letters of its own lead to such a name. */
function meantBy(pattern: string, cwd: string, { isHidden }: HiddenNames): (path: string) => boolean {
  const names = pattern.split('/');
  // By each sign that may be one: alternatives may span several names, of which none is a pattern by itself.
  const first = names.findIndex((name) => /[*?[\](){}!+@|\\]/.test(name));
  // Behind each sign a name may begin.
  const begun = names.slice(first).flatMap((name) => name.split(/[{,(|]|^\[/));
  if (first < 0 || begun.some(isHidden)) return () => true;
  const base = resolve(cwd, names.slice(0, first).join('/') || (pattern.startsWith('/') ? '/' : '.'));
  return (path) => !relative(base, path).split(sep).some(isHidden);
}

/** `above` are the real paths of the directories that led here: a link back to one of them is a circle. */
async function collect(search: Search, path: string, above: readonly string[]): Promise<void> {
  const { option } = search;
  try {
    const info = await stat(path);
    if (info.isDirectory()) {
      await walk(search, path, above);
      return;
    }
    await addFile(search, path, info);
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
    throw badInput(`${option} ${path} cannot be read: ${systemReason(error)}`, error);
  }
}

async function walk(search: Search, path: string, above: readonly string[]): Promise<void> {
  const { option, hidden } = search;
  const real = await realpath(path);
  if (above.includes(real)) return;
  if (above.length >= deepestDirectory) {
    throw badInput(`${option} ${path} lies more than ${String(deepestDirectory)} directories deep`);
  }
  for (const name of await readdir(path)) {
    if (!hidden.isHidden(name)) await collect(search, join(path, name), [...above, real]);
  }
}

async function addFile({ option, found }: Search, path: string, info: Stats): Promise<void> {
  if (!info.isFile()) throw badInput(`${option} ${path} is neither a file nor a directory`);
  await access(path, constants.R_OK);
  found.set(path, { path, sizeBytes: info.size });
  if (found.size > limits.inputObjects) {
    throw badInput(
      `${option} holds more than ${String(limits.inputObjects)} files, the most that a job may read`,
    );
  }
}
