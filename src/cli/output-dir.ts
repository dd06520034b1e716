import { UnreadableRecordError } from '../contracts/errors.ts';
import { constants, createWriteStream, existsSync, type Dirent } from 'node:fs';
import { access, chmod, lstat, mkdir, mkdtemp, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isOutputName, type ObjectRef, parseUri, partName, successName, uriOf } from '../contracts/keys.ts';
import { decodePartList, type PartList } from '../contracts/part-list.ts';
import type { JobRecord, OutputPart } from '../contracts/records.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { formatCount, oneLine, plural } from '../report/format.ts';
import { badInput, LeftBehindError, systemCode, systemReason } from './failures.ts';
import { forEachBounded } from '../lib/bounded.ts';
import { usualMode } from '../local/private-files.ts';

const parallelDownloads = 4;
const deepestPath = 1_000;

/** How a directory for outputs is asked for. */
export interface OutputDirOptions {
  /** What errors call it; `--output` where nothing is said. */
  readonly name?: string;
  /** Whether it may hold the output of an earlier job, which gives way to the new one. */
  readonly force?: boolean;
}

/**
 * The absolute path of a directory that may take a job's output: absent, or empty and writable; with `force` it may
 * hold an earlier output, and nothing else. Leaves nothing.
 *
 * @throws InvalidInputError where it is a file, holds anything, or cannot be written.
 */
export async function checkOutputDir(
  text: string,
  cwd: string,
  { name = '--output', force = false }: OutputDirOptions = {},
): Promise<string> {
  if (text === '') throw badInput(`${name} is empty: name a directory that is empty or not there yet`);
  if (text.startsWith('s3://'))
    throw badInput(`${name} ${text} must be a local path: only "outrider submit" writes to s3:// addresses`);
  const path = resolve(cwd, text);
  try {
    const info = await stat(path);
    if (!info.isDirectory())
      throw badInput(`${name} ${text} is not a directory: name one that is empty or not there yet`);
    refuseStrangers(`${name} ${text}`, await readdir(path, { withFileTypes: true }), force);
    await tryWriting(path);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') await checkParent(text, path, name);
    else if (systemCode(error) === undefined) throw error;
    else throw badInput(`${name} ${text} cannot be written: ${systemReason(error)}`, error);
  }
  return path;
}

/** Throws where there is anything in a directory but, with `force`, the output of a job. */
function refuseStrangers(directory: string, entries: readonly Dirent[], force: boolean): void {
  const stranger = entries.find((entry) => !force || !isOutputName(entry.name) || entry.isDirectory());
  if (stranger === undefined) return;
  throw badInput(
    force
      ? `${directory} holds ${oneLine(stranger.name)}, which is no output of a job: remove it, or name another directory`
      : `${directory} is not empty: empty it, name another directory, or give --force where it holds an earlier output`,
  );
}

/**
 * Throws the system's error where nothing can be made in a directory. The rights alone do not tell: root passes
 * them everywhere, and some file systems (such as /proc) take no files from anybody.
 */
async function tryWriting(directory: string): Promise<void> {
  await access(directory, constants.W_OK | constants.X_OK);
  await rmdir(await mkdtemp(join(directory, '.outrider-')));
}

/** The nearest directory above that is there must let us make one in it, and no link may be where one is to be made. */
async function checkParent(text: string, path: string, name: string): Promise<void> {
  let parent = path;
  for (let step = 0; step < deepestPath && !existsSync(parent); step++) {
    if (await isLink(parent))
      throw badInput(
        `${name} ${text} cannot be made: ${parent} is a link to what is not there: remove it, or name another directory`,
      );
    parent = dirname(parent);
  }
  try {
    const info = await stat(parent);
    if (!info.isDirectory()) throw badInput(`${name} ${text} cannot be made: ${parent} is not a directory`);
    await tryWriting(parent);
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
    throw badInput(`${name} ${text} cannot be made in ${parent}: ${systemReason(error)}`, error);
  }
}

const isLink = async (path: string): Promise<boolean> =>
  (await lstat(path).catch(() => undefined))?.isSymbolicLink() ?? false;

/** Gives the store, once it is needed. */
export type StoreSource = () => ObjectStore | Promise<ObjectStore>;

/** How objects become files. */
export interface Bringing {
  /** Writes an object to a file that may be there already. */
  bring(ref: ObjectRef, path: string, signal: AbortSignal): Promise<void>;
  /** Takes a file away that `bring` has written, or was to write; but not what nothing else has any more: then it throws. */
  giveBack(ref: ObjectRef, path: string): Promise<void>;
}

interface DownloadOptions extends Pick<OutputDirOptions, 'force'> {
  /** Takes how many more bytes are here. */
  readonly onBytes?: (more: number) => void;
  /** How objects come; they are read where nothing is said. */
  readonly bringing?: Bringing;
}

/**
 * Brings a succeeded job's parts and then its `_SUCCESS` into `directory`: all of them under temporary names, and once all are
 * there under their own. With `force` an earlier output there goes between the two, and is removed at the end.
 * When it throws, nothing of it is left there, and an earlier output still is; what could not be put back is named.
 *
 * @returns Absolute paths of the parts, in order.
 * @throws InvalidInputError where the directory does not take it.
 */
export async function downloadOutput(
  store: StoreSource,
  job: JobRecord,
  directory: string,
  signal: AbortSignal,
  { force = false, onBytes = () => undefined, bringing = reading(store) }: DownloadOptions = {},
): Promise<readonly string[]> {
  const prefix = parseUri(job.output);
  if (prefix === undefined) throw new Error(`the job's output ${job.output} is no s3:// address`);
  const parts = await partsOf(store, job, prefix);
  const objects = [...parts, { key: `${prefix.key}${successName}`, sizeBytes: 0 }].map((part) => ({
    ...part,
    ref: { bucket: prefix.bucket, key: part.key },
    path: join(directory, nameOf(part.key)),
  }));
  const done: Done = { made: [], brought: new Map(), aside: new Map() };
  try {
    await makeDirectories(directory, done.made);
    const earlier = await readdir(directory, { withFileTypes: true });
    refuseStrangers(directory, earlier, force);
    await forEachBounded(objects, parallelDownloads, async ({ ref, path, sizeBytes }) => {
      signal.throwIfAborted();
      const temporary = hiddenName(path, 'partial');
      done.brought.set(ref, temporary);
      await bringing.bring(ref, temporary, signal);
      await openToOthers(temporary, 0o666);
      onBytes(sizeBytes);
    });
    // "_SUCCESS" is the first,
    for (const path of earlier.map(({ name }) => join(directory, name)).toSorted()) {
      await rename(path, hiddenName(path, 'earlier'));
      done.aside.set(path, hiddenName(path, 'earlier'));
    }
    for (const { ref, path } of objects) {
      await rename(hiddenName(path, 'partial'), path); // and here the last.
      done.brought.set(ref, path);
    }
  } catch (error) {
    const { parts, earlier } = await undo(done, bringing);
    const left = [...parts, ...earlier];
    if (left.length === 0 && (systemCode(error) === undefined || signal.aborted)) throw error;
    const why = `the output cannot be written to ${directory}: ${systemReason(error)}`;
    if (left.length === 0) throw badInput(why, error);
    throw new LeftBehindError(
      `${why}; what could not be put back stays there: ${someOf(left)}`,
      { parts: parts.length },
      { cause: error },
    );
  }
  for (const path of done.aside.values()) await rm(path, { force: true }).catch(() => undefined);
  return objects.slice(0, -1).map(({ path }) => path);
}

/** What has been done to a directory. */
interface Done {
  /** Directories that were made, from the top down. */
  readonly made: string[];
  /** Where the file of an object lies, if it is there yet. */
  readonly brought: Map<ObjectRef, string>;
  /** Where an earlier output's files lie now, by their own paths. */
  readonly aside: Map<string, string>;
}

/** Names of files that stay: nothing else may have what is in them. */
interface Left {
  readonly parts: readonly string[];
  /** Of an earlier output. */
  readonly earlier: readonly string[];
}

const mostNamed = 3;

/** There may be ten thousand. */
const someOf = (names: readonly string[]): string => {
  const more = names.length - mostNamed;
  return `${names.slice(0, mostNamed).join(', ')}${more > 0 ? ` and ${formatCount(more)} more` : ''}`;
};

/** Undoes it as far as that goes. */
async function undo({ made, brought, aside }: Done, bringing: Bringing): Promise<Left> {
  const parts: string[] = [];
  const earlier: string[] = [];
  for (const [ref, path] of brought)
    await bringing.giveBack(ref, path).catch(() => parts.push(oneLine(basename(path))));
  // "_SUCCESS" is the last; and never in the place of what stays.
  for (const [path, hidden] of [...aside].toReversed())
    if (existsSync(path)) earlier.push(oneLine(basename(hidden)));
    else await rename(hidden, path).catch(() => earlier.push(oneLine(basename(hidden))));
  // Only what was made here, and only while it is empty.
  for (const each of made.toReversed()) await rmdir(each).catch(() => undefined);
  return { parts, earlier };
}

/** The parts of a job: those of its record, or of the manifest where the record has not all. */
async function partsOf(
  store: StoreSource,
  job: JobRecord,
  { bucket, key }: { readonly bucket: string; readonly key: string },
): Promise<readonly OutputPart[]> {
  const isWhole = job.unreadable?.includes('parts') !== true && job.parts.length > 0;
  if (isWhole && job.parts.length === (job.partTotals?.count ?? job.parts.length)) return job.parts;
  const success = { bucket, key: `${key}${successName}` };
  let list: PartList;
  try {
    list = decodePartList(await (await store()).readAll(success));
  } catch (cause) {
    throw new UnreadableRecordError(
      `which parts job ${job.jobId} wrote cannot be read: look under ${job.output}`,
      {},
      { cause },
    );
  }
  checkParts(list, job, success, key);
  return list.parts;
}

/**
 * Whoever may write to the output may write this list too, such as code of the job with the job's credentials: it must not
 * name files here, nor have objects read from elsewhere with the rights of the person.
 *
 * @throws UnreadableRecordError where it is not what the job published below `prefix`.
 */
function checkParts(
  { jobId, parts }: PartList,
  job: Pick<JobRecord, 'jobId' | 'partTotals'>,
  success: ObjectRef,
  prefix: string,
): void {
  const refuse = (what: string): never => {
    throw new UnreadableRecordError(`${uriOf(success)} is not as job ${job.jobId} wrote it: ${what}`);
  };
  if (jobId !== job.jobId) refuse(`its jobId is "${oneLine(jobId)}"`);
  const count = job.partTotals?.count ?? parts.length;
  if (parts.length !== count) refuse(`it names ${plural(parts.length, 'part')} of ${formatCount(count)}`);
  for (const [index, part] of parts.entries()) {
    const right = `${prefix}${partName(index)}`;
    if (part.key !== right)
      refuse(`parts[${String(index)}].key is "${oneLine(part.key)}" and not "${right}"`);
  }
}

/**
 * Makes a directory and those above it that are missing. Step by step: where a file system refuses a directory
 * with "not found", as /proc does, Node's own `recursive` tries for ever.
 *
 * @param made - takes what it made, from the top down.
 */
async function makeDirectories(directory: string, made: string[]): Promise<void> {
  const missing: string[] = [];
  for (let path = directory; missing.length < deepestPath && !existsSync(path); path = dirname(path))
    missing.unshift(path);
  for (const path of missing) {
    await mkdir(path);
    made.push(path);
    await openToOthers(path, 0o777);
  }
}

const reading = (store: StoreSource): Bringing => ({
  async bring(ref, path, signal) {
    const body = Readable.from((await store()).read(ref, { signal }), { objectMode: false });
    await pipeline(body, createWriteStream(path), { signal });
  },
  giveBack: (_ref, path) => rm(path, { force: true }),
});

/** The stack keeps all new files private; the output is the person's, who may share it as any other file. */
async function openToOthers(path: string, mode: 0o666 | 0o777): Promise<void> {
  const usual = usualMode(mode);
  if (usual !== undefined) await chmod(path, usual);
}

const nameOf = (key: string): string => key.slice(key.lastIndexOf('/') + 1);

/** Hidden, so that whoever lists the parts meanwhile does not meet half of one. */
const hiddenName = (path: string, kind: 'partial' | 'earlier'): string =>
  join(dirname(path), `.${nameOf(path)}.${kind}`);
