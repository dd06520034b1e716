import { open } from 'node:fs/promises';
import { encodeMeta, readFully } from './object-file.ts';
import type { ObjectStore } from './object-store.ts';

/** What may become of an object once it is written. */
export type Harm = 'lose' | 'corrupt';

/** An object that was written just now. */
export interface WrittenObject {
  readonly bucket: string;
  readonly key: string;
}

/** Says what is to become of an object once it is written; undefined: nothing. */
export type HarmHook = (written: WrittenObject) => Harm | undefined;

/** Removes an object, or flips a bit in its middle, with its length and all that is told of it as before. */
export async function harmObject(
  store: ObjectStore,
  { bucket: name, key }: WrittenObject,
  harm: Harm,
): Promise<void> {
  const bucket = await store.bucket(name);
  if (harm === 'lose') {
    await store.deleteObject(bucket, key, {});
    return;
  }
  const { meta, handle } = await store.openObject(bucket, key);
  const path = store.scratch.newPath();
  // A file of its own: who has the object open goes on reading what it was.
  const copy = await open(path, 'wx');
  try {
    const bytes = await readFully(handle, 0, meta.sizeBytes);
    const middle = bytes.length >> 1;
    if (bytes.length > 0) bytes[middle] = (bytes[middle] ?? 0) ^ 1;
    await copy.writeFile(Buffer.concat([bytes, encodeMeta(meta)]));
  } finally {
    await Promise.all([handle.close(), copy.close()]);
  }
  await store.publishPath(bucket, path, meta);
}
