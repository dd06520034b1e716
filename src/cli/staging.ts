import { randomBytes } from 'node:crypto';
import { open } from 'node:fs/promises';
import { basename } from 'node:path';
import type { ObjectRef } from '../contracts/keys.ts';
import { uriOf } from '../contracts/keys.ts';
import type { ObjectFiles } from '../local/s3/object-files.ts';
import { mostParts, type ObjectStore, type UploadedPart } from '../ports/object-store.ts';
import { badInput, systemCode, systemReason } from './failures.ts';
import type { LocalFile } from './local-inputs.ts';
import { forEachBounded } from '../lib/bounded.ts';

/** Files of a user under one prefix of S3, in an order that listings keep. */
export interface StagedSet {
  /** `s3://bucket/input/<token>/`: names all of them, in order. */
  readonly uri: string;
  readonly bucket: string;
  readonly prefix: string;
  /** Whether others may have uploaded it before. */
  readonly isShared: boolean;
  readonly objects: readonly { readonly key: string; readonly file: LocalFile }[];
}

const parallelUploads = 4;
/** Up to this size an object is written in one request. */
const partBytes = 8 * 1024 * 1024;
const longestName = 100;

/**
 * Where files will lie once uploaded; uploads nothing. The order of keys is the order of `files`. `token` names the set;
 * without it, it is one of its own.
 */
export function planStaging(bucket: string, files: readonly LocalFile[], token?: string): StagedSet {
  const prefix = `input/${token ?? randomBytes(6).toString('hex')}/`;
  const digits = String(files.length).length;
  return {
    uri: uriOf({ bucket, key: prefix }),
    bucket,
    prefix,
    isShared: token !== undefined,
    objects: files.map((file, index) => ({
      key: `${prefix}${String(index).padStart(digits, '0')}-${keyName(file.path)}`,
      file,
    })),
  };
}

/**
 * Uploads files a few at a time, but for those that are there already; `onBytes` takes how much of them has come over.
 *
 * @returns How many were not there.
 * @throws InvalidInputError where one cannot be read any more, or has another size by now.
 */
export async function uploadStaged(
  store: ObjectStore,
  set: StagedSet,
  signal: AbortSignal,
  onBytes: (more: number) => void = () => undefined,
): Promise<number> {
  const there = set.isShared ? await sizesIn(store, set) : new Map<string, number>();
  const missing = set.objects.filter(({ key, file }) => there.get(key) !== file.sizeBytes);
  await forEachBounded(missing, parallelUploads, async ({ key, file }) => {
    signal.throwIfAborted();
    await uploadFile(store, { bucket: set.bucket, key }, file, { signal, onBytes });
  });
  return missing.length;
}

/** As {@link uploadStaged}, for a stack that lives in this process: its objects are copies that the kernel makes. */
export async function adoptStaged(
  files: ObjectFiles,
  set: StagedSet,
  signal: AbortSignal,
  onBytes: (more: number) => void = () => undefined,
): Promise<void> {
  await forEachBounded(set.objects, parallelUploads, async ({ key, file }) => {
    signal.throwIfAborted();
    await adoptFile(files, { bucket: set.bucket, key }, file);
    onBytes(file.sizeBytes);
  });
}

async function adoptFile(files: ObjectFiles, ref: ObjectRef, { path, sizeBytes }: LocalFile): Promise<void> {
  const outcome = await files.adopt(ref, path, sizeBytes).catch((error: unknown) => {
    const code = systemCode(error);
    if (code === undefined) throw error;
    throw isOfRoom(code) ? noRoom(path, error) : unreadable(path, error);
  });
  if (outcome === 'changed') throw changed(path);
}

const changed = (path: string): Error =>
  badInput(`${path} changed while it was read: name a file that nobody writes to, such as a copy of it`);

const isOfRoom = (code: string): boolean => ['ENOSPC', 'EDQUOT', 'EROFS'].includes(code);

const noRoom = (path: string, error: unknown): Error =>
  badInput(
    `there is no room for a copy of ${path} where the stack keeps its data: make some, or name another place with --state-dir`,
    error,
  );

async function sizesIn(
  store: ObjectStore,
  { bucket, prefix }: StagedSet,
): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>();
  for await (const { key, sizeBytes } of store.list({ bucket, key: prefix })) sizes.set(key, sizeBytes);
  return sizes;
}

/** Removes what was uploaded; what is not there is no error. */
export async function removeStaged(store: ObjectStore, set: StagedSet): Promise<void> {
  await store.remove(
    set.bucket,
    set.objects.map(({ key }) => key),
  );
}

/** The file's name without what keys bear badly; its end is kept, since `.gz` there means something. */
const keyName = (path: string): string =>
  basename(path)
    .replace(/[^A-Za-z0-9._-]+/g, '_')
    .slice(-longestName);

async function uploadFile(
  store: ObjectStore,
  ref: ObjectRef,
  file: LocalFile,
  { signal, onBytes }: { readonly signal: AbortSignal; readonly onBytes: (more: number) => void },
): Promise<void> {
  const size = Math.max(partBytes, Math.ceil(file.sizeBytes / mostParts));
  let upload: Awaited<ReturnType<ObjectStore['beginUpload']>> | undefined;
  const parts: UploadedPart[] = [];
  let sent = 0;
  try {
    for await (const chunk of readParts(file, size)) {
      signal.throwIfAborted();
      sent += chunk.bytes.length;
      if (chunk.isLast && sent !== file.sizeBytes) throw changed(file.path);
      if (upload === undefined && chunk.isLast) {
        await store.write(ref, chunk.bytes);
        onBytes(chunk.bytes.length);
        return;
      }
      upload ??= await store.beginUpload(ref);
      if (chunk.bytes.length > 0) parts.push(await store.uploadPart(upload, parts.length + 1, chunk.bytes));
      onBytes(chunk.bytes.length);
    }
    if (upload !== undefined) await store.completeUpload(upload, parts);
  } catch (error) {
    if (upload !== undefined) await store.abortUpload(upload).catch(() => undefined);
    throw error;
  }
}

/** The file in parts of `size` bytes, all full but the last; an empty file is one empty part. */
async function* readParts(
  { path, sizeBytes }: LocalFile,
  size: number,
): AsyncGenerator<{ readonly bytes: Uint8Array; readonly isLast: boolean }> {
  const handle = await open(path).catch((error: unknown) => {
    throw unreadable(path, error);
  });
  try {
    for (let part = 0; part <= mostParts; part++) {
      // A small file needs no more than its own room, and one byte to see that it is at its end.
      const bytes = Buffer.allocUnsafe(Math.min(size, sizeBytes + 1));
      let filled = 0;
      // A read may give less than was asked for before the file's end.
      while (filled < bytes.length) {
        const { bytesRead } = await handle.read(bytes, filled, bytes.length - filled, null);
        if (bytesRead === 0) break;
        filled += bytesRead;
      }
      const isLast = filled < bytes.length;
      if (!isLast && bytes.length < size) throw badInput(`${path} grew while it was read`);
      yield { bytes: bytes.subarray(0, filled), isLast };
      if (isLast) return;
    }
    throw badInput(`${path} grew while it was read`);
  } catch (error) {
    throw systemCode(error) === undefined ? error : unreadable(path, error);
  } finally {
    await handle.close();
  }
}

const unreadable = (path: string, error: unknown): Error =>
  badInput(`${path} cannot be read: ${systemReason(error)}`, error);
