import { close, closeSync, fstatSync, openSync, read as readFd, readSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { isDirectoryBucket } from '../../contracts/directory-buckets.ts';
import type { HandedFile } from '../../contracts/handed-files.ts';
import type { ObjectRef } from '../../contracts/keys.ts';
import type { RequestTally } from '../../contracts/requests.ts';
import { mostWholeBytes } from '../../ports/object-store.ts';
import type {
  ByteRange,
  ObjectInfo,
  ObjectMetadata,
  ObjectStore,
  ReadOptions,
  UploadedPart,
  UploadRef,
} from '../../ports/object-store.ts';
import type { HandingClient } from './handing-client.ts';

/** Up to this size a read that blocks takes less than to go to another thread and back. */
const blockingBytes = 1024 * 1024;
/** Small enough to come from memory that was used and given back: larger buffers are new pages each time. */
const chunkBytes = 112 * 1024;
/** Timers and other requests have their turn after so many chunks. */
const chunksPerTurn = 8;
/** Smaller parts go with their requests. */
const leastPartBytes = 256 * 1024;

const readAt = promisify(readFd);
const closeFd = promisify(close);

/** A file that begins with the bytes of an object, open. */
interface OpenFile {
  readonly fd: number;
  /** Of the range that is read. */
  readonly start: number;
  readonly end: number;
}

/** Where the parts of an upload go: one after the other into one file, as they are begun. */
interface Room {
  readonly path: string;
  nextNumber: number;
  nextAt: number;
}

/**
 * The objects of a store on this machine that hands files: their bytes are read and written as files, and all else is asked
 * of the store `inner`, which also serves whatever was not handed, so that its errors are those of this one.
 */
export class HandedObjects implements ObjectStore {
  private readonly inner: ObjectStore;
  private readonly client: HandingClient;
  private readonly count: (tally: RequestTally) => void;
  private readonly rooms = new WeakMap<UploadRef, Promise<Room | undefined>>();

  /** `count` takes the requests to S3 that reads and writes by files stand for. */
  constructor(inner: ObjectStore, client: HandingClient, count: (tally: RequestTally) => void) {
    this.inner = inner;
    this.client = client;
    this.count = count;
  }

  async *read(ref: ObjectRef, options: ReadOptions = {}): AsyncGenerator<Uint8Array> {
    const { range, signal } = options;
    if (range !== undefined && range.end <= range.start) return;
    const file = await this.open(ref, options);
    if (file === undefined) yield* this.inner.read(ref, options);
    else if (file.end - file.start <= blockingBytes) yield wholeSync(file);
    else yield* chunksOf(file, signal);
  }

  async readAll(ref: ObjectRef, range?: ByteRange, signal?: AbortSignal): Promise<Uint8Array> {
    if (range !== undefined && range.end <= range.start) return new Uint8Array();
    const options = {
      ...(range === undefined ? {} : { range }),
      ...(signal === undefined ? {} : { signal }),
    };
    const file = await this.open(ref, options, mostWholeBytes);
    if (file === undefined) return this.inner.readAll(ref, range, signal);
    if (file.end - file.start <= blockingBytes) return wholeSync(file);
    try {
      const bytes = Buffer.allocUnsafeSlow(file.end - file.start);
      await fill(file.fd, bytes, file.start);
      signal?.throwIfAborted();
      return bytes;
    } finally {
      await closeFd(file.fd);
    }
  }

  /** Undefined where the range has no byte there, is larger than `mostBytes`, or the file is not the one that was handed. */
  private async open(
    ref: ObjectRef,
    { range, etag, signal }: ReadOptions,
    mostBytes = Infinity,
  ): Promise<OpenFile | undefined> {
    signal?.throwIfAborted();
    // The requests of a zone are made of it, where they can fail with it.
    if (isDirectoryBucket(ref.bucket)) return undefined;
    const handed = await this.client.fileOf(ref);
    signal?.throwIfAborted();
    if (handed === undefined || (etag !== undefined && etag !== handed.etag)) return undefined;
    const start = range?.start ?? 0;
    const end = Math.min(range?.end ?? Infinity, handed.sizeBytes);
    if (end <= start || end - start > mostBytes) return undefined;
    const fd = openHanded(handed);
    if (fd === undefined) return undefined;
    this.count({ get: 1 });
    return { fd, start, end };
  }

  async uploadPart(upload: UploadRef, number: number, body: Uint8Array): Promise<UploadedPart> {
    const isSent = body.length < leastPartBytes || isDirectoryBucket(upload.bucket);
    const part = isSent ? undefined : await this.partInRoom(upload, number, body);
    return part ?? this.inner.uploadPart(upload, number, body);
  }

  /** Undefined where there is no room, or it is not this part's turn: one that is sent again goes with its request. */
  private async partInRoom(
    upload: UploadRef,
    number: number,
    body: Uint8Array,
  ): Promise<UploadedPart | undefined> {
    const asked = this.rooms.get(upload) ?? this.roomOf(upload);
    this.rooms.set(upload, asked);
    const room = await asked;
    if (room?.nextNumber !== number) return undefined;
    const at = room.nextAt;
    room.nextNumber++;
    room.nextAt += body.length;
    try {
      const file = await open(room.path, 'r+');
      try {
        for (let done = 0; done < body.length;)
          done += (await file.write(body, done, body.length - done, at + done)).bytesWritten;
      } finally {
        await file.close();
      }
    } catch {
      return undefined; // Such as that of a room that went with its upload: the request says so.
    }
    const etag = await this.client.partAt(upload, number, { at, sizeBytes: body.length });
    if (etag === undefined) return undefined;
    this.count({ put: 1 });
    return { number, etag };
  }

  private async roomOf(upload: UploadRef): Promise<Room | undefined> {
    const path = await this.client.roomOf(upload);
    return path === undefined ? undefined : { path, nextNumber: 1, nextAt: 0 };
  }

  head(ref: ObjectRef): Promise<(ObjectInfo & { readonly metadata: ObjectMetadata }) | undefined> {
    return this.inner.head(ref);
  }

  list(ref: ObjectRef): AsyncIterable<ObjectInfo> {
    return this.inner.list(ref);
  }

  write(
    ref: ObjectRef,
    body: Uint8Array,
    options?: { ifAbsent?: boolean; metadata?: ObjectMetadata },
  ): Promise<'written' | 'exists'> {
    return this.inner.write(ref, body, options);
  }

  copy(...args: Parameters<ObjectStore['copy']>): ReturnType<ObjectStore['copy']> {
    return this.inner.copy(...args);
  }

  remove(bucket: string, keys: readonly string[]): Promise<void> {
    return this.inner.remove(bucket, keys);
  }

  beginUpload(ref: ObjectRef, metadata?: ObjectMetadata): Promise<UploadRef> {
    return this.inner.beginUpload(ref, metadata);
  }

  completeUpload(
    upload: UploadRef,
    parts: readonly UploadedPart[],
    options?: { ifAbsent?: boolean },
  ): Promise<'completed' | 'exists' | 'gone'> {
    return this.inner.completeUpload(upload, parts, options);
  }

  abortUpload(upload: UploadRef): Promise<void> {
    return this.inner.abortUpload(upload);
  }

  listUploads(ref: ObjectRef): AsyncIterable<UploadRef> {
    return this.inner.listUploads(ref);
  }
}

/** The file's descriptor, if it is still the file that was handed: another object may have come into its place. */
function openHanded({ path, ino, mtimeNs, sizeBytes }: HandedFile): number | undefined {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    return undefined;
  }
  const found = fstatSync(fd, { bigint: true });
  if (String(found.ino) === ino && String(found.mtimeNs) === mtimeNs && found.size >= BigInt(sizeBytes))
    return fd;
  closeSync(fd);
  return undefined;
}

function wholeSync({ fd, start, end }: OpenFile): Buffer {
  try {
    return bytesAt(fd, start, end - start);
  } finally {
    closeSync(fd);
  }
}

/**
 * The range in chunks. Each read blocks, for as long as it takes to copy what is in memory as a rule, and from a disk that
 * reads ahead hardly longer: to have another thread read takes more.
 */
async function* chunksOf({ fd, start, end }: OpenFile, signal?: AbortSignal): AsyncGenerator<Buffer> {
  try {
    for (let at = start, chunks = 1; at < end; at += chunkBytes, chunks++) {
      if (chunks % chunksPerTurn === 0) await nextTurn();
      signal?.throwIfAborted();
      yield bytesAt(fd, at, Math.min(chunkBytes, end - at));
    }
  } finally {
    closeSync(fd);
  }
}

function bytesAt(fd: number, at: number, sizeBytes: number): Buffer {
  const bytes = Buffer.allocUnsafeSlow(sizeBytes);
  for (let done = 0; done < sizeBytes;)
    done += atLeastOne(readSync(fd, bytes, done, sizeBytes - done, at + done));
  return bytes;
}

async function fill(fd: number, bytes: Buffer, at: number): Promise<void> {
  for (let done = 0; done < bytes.length;)
    done += atLeastOne((await readAt(fd, bytes, done, bytes.length - done, at + done)).bytesRead);
}

function atLeastOne(bytesRead: number): number {
  if (bytesRead === 0) throw new Error('an object file is shorter than its store said');
  return bytesRead;
}
