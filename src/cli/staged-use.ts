import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import { isSource, type JobSpec } from '../contracts/job-spec.ts';
import { parseUri } from '../contracts/keys.ts';
import { finalJobStates } from '../contracts/records.ts';
import { carriedPrefix, taskFilesOf } from '../contracts/task-files.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { eachPage } from '../lib/pages.ts';
import type { ApiClient } from './api-client.ts';
import { badInput, systemCode, systemReason } from './failures.ts';
import type { LocalFile } from './local-inputs.ts';

/** All that people's files come under. */
const stagedPrefix = 'input/';
/**
 * Who is about to use which of them: `jobs/staged-uses/<place>/<ms since 1970>-<random>`, where the bucket itself drops
 * what is forgotten.
 */
const usesPrefix = 'jobs/staged-uses/';
/** What was staged, and may be removed therefore: `jobs/staged-places/<place>`. All else below `input/` is somebody's own. */
const placesPrefix = 'jobs/staged-places/';
/** A submission has its job by then, which says itself what it reads. */
const useMs = 10 * 60_000;
const renewMs = useMs / 4;
const pageJobs = 100;
/** Of a stack with more jobs than that nobody clears up from here. */
const mostPages = 100;
const tokenChars = 24;

/**
 * A name for a set of files that is the same where their names, order and contents are: what lies under it already need
 * not be uploaded again.
 *
 * @throws InvalidInputError where one cannot be read.
 */
export async function contentToken(files: readonly LocalFile[], signal: AbortSignal): Promise<string> {
  const all = createHash('sha256');
  for (const { path } of files) {
    const one = createHash('sha256');
    try {
      for await (const chunk of createReadStream(path, { signal })) one.update(chunk as Buffer);
    } catch (error) {
      signal.throwIfAborted();
      if (systemCode(error) === undefined) throw error;
      throw badInput(`${path} cannot be read: ${systemReason(error)}`, error);
    }
    all.update(`${basename(path)}\0${one.digest('hex')}\n`);
  }
  return all.digest('hex').slice(0, tokenChars);
}

/** Where a key lies: `files/<sha256>` of what is carried, else the first part of the key below `input/`. */
function placeOf(key: string): string | undefined {
  if (!key.startsWith(stagedPrefix)) return undefined;
  const depth = key.startsWith(carriedPrefix) ? 2 : 1;
  const place = key.slice(stagedPrefix.length).split('/').slice(0, depth).join('/');
  return place === '' ? undefined : place;
}

/** Says that somebody is about to use these keys; the function takes that back. */
export async function announceUse(
  store: ObjectStore,
  bucket: string,
  keys: readonly string[],
  nowMs: number,
): Promise<() => Promise<void>> {
  const places = new Set(keys.flatMap((key) => placeOf(key) ?? []));
  const id = `${String(nowMs)}-${randomBytes(6).toString('hex')}`;
  const marks = [...places].map((place) => `${usesPrefix}${place}/${id}`);
  for (const key of [...[...places].map((place) => `${placesPrefix}${place}`), ...marks])
    await store.write({ bucket, key }, new Uint8Array());
  return () => store.remove(bucket, marks);
}

/** A use that is said again before it counts as forgotten, for as long as it takes until somebody uses the keys. */
export interface KeptUse {
  /** Says now that the keys are about to be used. */
  renew(): Promise<void>;
  /** Says it no more, and leaves what was said: it counts for ten minutes yet. */
  readonly settle: () => void;
  takeBack(): Promise<void>;
}

/** Announces a use as {@link announceUse} does, and again every few minutes until it is settled or taken back. */
export async function keepUse(store: ObjectStore, bucket: string, keys: readonly string[]): Promise<KeptUse> {
  let remove = await announceUse(store, bucket, keys, Date.now());
  let renewal = Promise.resolve();
  const renewOnce = async (): Promise<void> => {
    const before = remove;
    remove = await announceUse(store, bucket, keys, Date.now());
    await before();
  };
  // One after the other: each takes back the one before it.
  const renew = (): Promise<void> => (renewal = renewal.then(renewOnce, renewOnce));
  const timer = setInterval(() => {
    // Where the store does not answer, the upload fails by itself.
    renew().catch(() => undefined);
  }, renewMs);
  timer.unref();
  const settle = (): void => {
    clearInterval(timer);
  };
  return {
    renew,
    settle,
    takeBack: async () => {
      settle();
      await renewal.catch(() => undefined);
      await remove();
    },
  };
}

/** Places that a job reads in the bucket. */
function placesOf({ stages }: JobSpec, bucket: string): readonly string[] {
  const uris = stages.flatMap(({ inputs, code, operator, options }) => [
    ...inputs.flatMap((input) => (isSource(input) ? input.s3 : [])),
    ...(code === undefined ? [] : [code.s3]),
    ...(operator === 'exec' ? taskFilesOf(options).map(({ s3 }) => s3) : []),
  ]);
  return uris.flatMap((uri) => {
    const ref = parseUri(uri);
    return ref?.bucket === bucket ? (placeOf(ref.key) ?? []) : [];
  });
}

/** Places that unfinished jobs read; undefined where not all jobs are known. */
async function placesInUse(client: ApiClient, bucket: string): Promise<Set<string> | undefined> {
  const places = new Set<string>();
  const ask = (cursor?: string): ReturnType<ApiClient['list']> =>
    client.list({ limit: pageJobs, ...(cursor === undefined ? {} : { cursor }) });
  for await (const { jobs, unreadable = [], cursor } of eachPage(ask, mostPages)) {
    if (unreadable.length > 0) return undefined;
    for (const { state, spec } of jobs)
      if (!finalJobStates.includes(state)) for (const place of placesOf(spec, bucket)) places.add(place);
    if (cursor === undefined) return places;
  }
  return undefined;
}

interface Marks {
  /** Places that somebody is about to use. */
  readonly fresh: ReadonlySet<string>;
  readonly old: readonly string[];
}

async function marksIn(store: ObjectStore, bucket: string, nowMs: number): Promise<Marks> {
  const fresh = new Set<string>();
  const old: string[] = [];
  for await (const { key } of store.list({ bucket, key: usesPrefix })) {
    const text = key.slice(usesPrefix.length);
    const end = text.lastIndexOf('/');
    const since = Number(/^(\d+)-/.exec(text.slice(end + 1))?.[1] ?? Number.NaN);
    if (nowMs - since < useMs) fresh.add(text.slice(0, end));
    else old.push(key);
  }
  return { fresh, old };
}

/**
 * Removes inputs and files that were staged, by the record of it, and that no unfinished job reads and nobody is about to
 * use. Who is about to is asked last: a submission that comes meanwhile has announced itself before it looks what is there.
 *
 * @returns How many objects were removed.
 */
export async function clearStaged(
  store: ObjectStore,
  client: ApiClient,
  bucket: string,
  nowMs: number,
): Promise<number> {
  const places: string[] = [];
  for await (const { key } of store.list({ bucket, key: placesPrefix }))
    places.push(key.slice(placesPrefix.length));
  const { fresh, old } = await marksIn(store, bucket, nowMs);
  const used = await placesInUse(client, bucket);
  if (used === undefined) return 0;
  const keysOf = new Map<string, readonly string[]>();
  for (const place of places.filter((each) => !used.has(each) && !fresh.has(each)))
    keysOf.set(place, await keysIn(store, bucket, place));
  const again = await marksIn(store, bucket, nowMs);
  const unused = [...keysOf].filter(([place]) => !again.fresh.has(place));
  const keys = unused.flatMap(([, those]) => those);
  await store.remove(bucket, [...keys, ...old]);
  await store.remove(
    bucket,
    unused.map(([place]) => placesPrefix + place),
  );
  return keys.length;
}

async function keysIn(store: ObjectStore, bucket: string, place: string): Promise<readonly string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list({ bucket, key: stagedPrefix + place }))
    if (placeOf(key) === place) keys.push(key);
  return keys;
}
