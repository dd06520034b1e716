import { setTimeout as delay } from 'node:timers/promises';
import { isHiddenPath, type ObjectRef, parseUri, uriOf } from '../contracts/keys.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { InputFile } from './input-formats.ts';

/** Objects of one address that are looked at: what is wrong is most often wrong in all of them. */
export const mostObjects = 5;
const mostAddresses = 20;
/** Objects that are listed for that, of which most may be none that the job reads. */
const mostListed = 10_000;
/** A look is a help and no condition: nobody waits long for it. */
const limitMs = 10_000;

/**
 * Objects behind addresses whose beginnings can be looked at, a few of each. None where the client may not read them, they
 * are not there, or S3 does not answer in time: the job may read what its client may not, and says what is missing.
 */
export async function objectsBehind(
  store: ObjectStore | undefined,
  uris: readonly string[],
): Promise<readonly InputFile[]> {
  if (store === undefined || uris.length === 0) return [];
  const found = Promise.all(
    uris.slice(0, mostAddresses).map(async (uri) => {
      const ref = parseUri(uri);
      return ref === undefined ? [] : await objectsAt(store, ref).catch(() => []);
    }),
  );
  return withinLimit(found, []).then((all) => all.flat());
}

async function objectsAt(store: ObjectStore, ref: ObjectRef): Promise<readonly InputFile[]> {
  if (ref.key !== '' && !ref.key.endsWith('/')) {
    const info = await store.head(ref);
    return info === undefined ? [] : [fileOf(store, ref, info.sizeBytes)];
  }
  const files: InputFile[] = [];
  let listed = 0;
  for await (const { key, sizeBytes } of store.list(ref)) {
    if (++listed > mostListed) return [];
    if (sizeBytes > 0 && !isHiddenPath(key.slice(ref.key.length)))
      files.push(fileOf(store, { bucket: ref.bucket, key }, sizeBytes));
    if (files.length === mostObjects) break;
  }
  return files;
}

const fileOf = (store: ObjectStore, ref: ObjectRef, sizeBytes: number): InputFile => ({
  path: uriOf(ref),
  sizeBytes,
  read: ({ start, end }) => {
    const reading = store.readAll(ref, { start, end: Math.min(end, sizeBytes) }).then(
      (found) => Buffer.from(found.buffer, found.byteOffset, found.length),
      () => undefined,
    );
    return withinLimit(reading, undefined);
  },
});

/** What comes in time, else something instead. */
async function withinLimit<T>(coming: Promise<T>, instead: T): Promise<T> {
  const over = new AbortController();
  try {
    return await Promise.race([
      coming,
      delay(limitMs, instead, { signal: over.signal, ref: false }).catch(() => instead),
    ]);
  } finally {
    over.abort();
  }
}
