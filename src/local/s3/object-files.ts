import { closeSync, constants, fstatSync, openSync, readSync, writeFileSync } from 'node:fs';
import type { BigIntStats } from 'node:fs';
import { appendFile, chmod, copyFile, rename, rm, stat, truncate } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { hasErrorCode } from './errors.ts';
import { opaqueEtag } from './etag.ts';
import { encodeMeta } from './object-file.ts';
import type { ObjectMeta } from './object-file.ts';
import { objectPath } from './object-store.ts';
import type { ObjectStore } from './object-store.ts';

/** Where an object lies. */
export interface ObjectName {
  readonly bucket: string;
  readonly key: string;
}

/**
 * Objects as files of this machine, for whoever runs the server in its own process: the kernel copies them (or has
 * both share their blocks, where the file system can), and nobody signs, hashes or sends a byte.
 */
export interface ObjectFiles {
  /**
   * Makes an object of a copy of a file, so that whatever is written to the file later does not reach it.
   *
   * @param sizeBytes - what the file must have, as it was found.
   * @returns `changed` where it has another size, or was written to meanwhile: then there is no object.
   * @throws S3Error NoSuchBucket; the file system's errors, such as EACCES of the file and ENOSPC of the store.
   */
  adopt(object: ObjectName, path: string, sizeBytes: number): Promise<'adopted' | 'changed'>;
  /**
   * Writes an object to a file, in the place of one that is there. With `isMoved` nobody needs the object any more, and it is
   * gone afterwards where its file could be renamed; one that had to be copied, to another file system, stays.
   *
   * @throws S3Error NoSuchBucket, NoSuchKey; the file system's errors.
   */
  bring(object: ObjectName, path: string, options?: { readonly isMoved?: boolean }): Promise<void>;
  /**
   * Takes a file away that `bring` has written, or was to write: where the object is gone, it is made of the file. Where
   * that fails the file stays, as nothing else has what is in it.
   *
   * @throws S3Error NoSuchBucket; the file system's errors.
   */
  giveBack(object: ObjectName, path: string): Promise<void>;
}

/** Up to this size one read and one write are less work than asking the kernel to copy. */
const ONE_PIECE_BYTES = 1024 * 1024;

/** Only its owner's, and writable, whatever the mode of what it is a copy of. */
const COPY_MODE = 0o600;

/** The objects of a store, as files. */
export function objectFilesOf(store: ObjectStore): ObjectFiles {
  return {
    async adopt({ bucket: name, key }, path, sizeBytes) {
      const bucket = await store.bucket(name);
      const copy = store.scratch.newPath();
      const meta = adoptedMeta(key, sizeBytes);
      try {
        const isWhole =
          sizeBytes <= ONE_PIECE_BYTES
            ? await copySmall(path, copy, meta)
            : await copyLarge(path, copy, meta);
        if (!isWhole) return 'changed';
        await store.publishPath(bucket, copy, meta);
        return 'adopted';
      } catch (cause) {
        await rm(copy, { force: true });
        throw cause;
      }
    },
    async bring({ bucket: name, key }, path, { isMoved = false } = {}) {
      const bucket = await store.bucket(name);
      const { handle, meta } = await store.openObject(bucket, key);
      await handle.close();
      const from = objectPath(bucket, key);
      const isGone = isMoved && (await isRenamed(from, path));
      if (!isGone) await copyFile(from, path, constants.COPYFILE_FICLONE);
      try {
        // What follows the data in the store's file is the store's.
        await truncate(path, meta.sizeBytes);
      } catch (cause) {
        if (isGone) await rename(path, from);
        throw cause;
      }
      if (isGone) await store.deleteObject(bucket, key, {});
    },
    async giveBack({ bucket: name, key }, path) {
      const bucket = await store.bucket(name);
      if ((await store.findMeta(bucket, key)) !== undefined) {
        await rm(path, { force: true });
        return;
      }
      const found = await stat(path).catch((cause: unknown) => {
        if (hasErrorCode(cause, 'ENOENT')) return undefined;
        throw cause;
      });
      if (found === undefined) return;
      const meta = adoptedMeta(key, found.size);
      try {
        await chmod(path, COPY_MODE);
        await appendFile(path, encodeMeta(meta));
        await store.publishPath(bucket, path, meta);
      } catch (cause) {
        await truncate(path, found.size); // Half of what was appended is none of the person's data.
        throw cause;
      }
    },
  };
}

/** As S3 says of an object that was uploaded in parts; it has no checksum, as none was sent. */
function adoptedMeta(key: string, sizeBytes: number): ObjectMeta {
  return {
    key,
    sizeBytes,
    etag: opaqueEtag(),
    lastModifiedMs: Date.now(),
    headers: {},
    userMetadata: {},
  };
}

/** Whether the copy is whole. Blocks, but for a moment between two files: less than to go to other threads and back. */
async function copySmall(from: string, to: string, meta: ObjectMeta): Promise<boolean> {
  await nextTurn();
  const bytes = readWhole(from, meta.sizeBytes);
  if (bytes === undefined) return false;
  writeFileSync(to, Buffer.concat([bytes, encodeMeta(meta)]), { flag: 'wx', mode: COPY_MODE });
  return true;
}

/** The bytes of a file that has so many, and is not being written to. */
function readWhole(path: string, sizeBytes: number): Buffer | undefined {
  // Not waiting for a writer, should it have become a pipe.
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const before = fstatSync(descriptor, { bigint: true });
    // One byte more, to see that it is at its end.
    const bytes = Buffer.allocUnsafe(sizeBytes + 1);
    let filled = 0;
    while (filled < bytes.length) {
      const read = readSync(descriptor, bytes, filled, bytes.length - filled, null);
      if (read === 0) break;
      filled += read;
    }
    const isSame = filled === sizeBytes && isUntouched(before, fstatSync(descriptor, { bigint: true }));
    return isSame ? bytes.subarray(0, filled) : undefined;
  } finally {
    closeSync(descriptor);
  }
}

/** Whether the copy is whole; where it is not, there is none. */
async function copyLarge(from: string, to: string, meta: ObjectMeta): Promise<boolean> {
  const before = await stat(from, { bigint: true });
  if (!before.isFile() || before.size !== BigInt(meta.sizeBytes)) return false;
  await copyFile(from, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
  const copied = await stat(to);
  const isSame = copied.size === meta.sizeBytes && isUntouched(before, await stat(from, { bigint: true }));
  if (!isSame) {
    await rm(to, { force: true });
    return false;
  }
  await chmod(to, COPY_MODE);
  await appendFile(to, encodeMeta(meta));
  return true;
}

/** The time of change tells of writes whose writer has set the time of modification back. */
const isUntouched = (before: BigIntStats, after: BigIntStats): boolean =>
  after.isFile() &&
  before.size === after.size &&
  before.mtimeNs === after.mtimeNs &&
  before.ctimeNs === after.ctimeNs;

/** Whether a file could be renamed: it cannot to another file system. */
async function isRenamed(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    if (hasErrorCode(error, 'EXDEV')) return false;
    throw error;
  }
}
