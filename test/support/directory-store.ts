import {
  closeSync,
  mkdirSync,
  openSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { ConflictError, NotFoundError } from '../../src/contracts/errors.ts';
import { type ObjectRef, uriOf } from '../../src/contracts/keys.ts';
import type {
  ByteRange,
  ObjectInfo,
  ObjectStore,
  ReadOptions,
  UploadedPart,
  UploadRef,
} from '../../src/ports/object-store.ts';

/** What a socket gives at most at once. */
const chunkBytes = 64 * 1024;

/**
 * Objects as files of a directory, for measuring: it costs what the kernel takes to copy bytes and nothing else, and
 * keeps account of that, so that it can be set apart. One process may use it.
 */
export class DirectoryStore implements ObjectStore {
  /** CPU microseconds of this thread within the store, and its requests. */
  spentMicros = 0;
  requests = 0;
  readonly #root: string;
  #uploads = 0;
  readonly #partBytes = new Map<string, Map<number, number>>();

  constructor(root: string) {
    this.#root = root;
  }

  /** The file of an object. */
  pathOf({ bucket, key }: ObjectRef): string {
    return join(this.#root, bucket, encodeURIComponent(key));
  }

  #counted<T>(work: () => T): T {
    const before = process.threadCpuUsage();
    try {
      return work();
    } finally {
      const { user, system } = process.threadCpuUsage(before);
      this.spentMicros += user + system;
    }
  }

  #etagOf(path: string): string {
    const { mtimeMs, size } = statSync(path);
    return `"${String(mtimeMs)}-${String(size)}"`;
  }

  async *read(ref: ObjectRef, options: ReadOptions = {}): AsyncIterable<Uint8Array> {
    const { range, etag, signal } = options;
    if (range !== undefined && range.end <= range.start) return;
    this.requests++;
    const path = this.pathOf(ref);
    if (etag !== undefined && this.#etagOf(path) !== etag)
      throw new ConflictError('the object has changed', { uri: uriOf(ref) });
    const file = openSync(path, 'r');
    try {
      const end = Math.min(range?.end ?? Infinity, statSync(path).size);
      for (let at = range?.start ?? 0; at < end; at += chunkBytes) {
        await Promise.resolve();
        signal?.throwIfAborted();
        yield this.#counted(() => {
          const chunk = Buffer.allocUnsafeSlow(Math.min(chunkBytes, end - at));
          return chunk.subarray(0, readSync(file, chunk, 0, chunk.length, at));
        });
      }
    } finally {
      closeSync(file);
    }
  }

  readAll(ref: ObjectRef, range?: ByteRange): Promise<Uint8Array> {
    this.requests++;
    return Promise.resolve(
      this.#counted(() => {
        const file = openSync(this.pathOf(ref), 'r');
        try {
          const start = range?.start ?? 0;
          const end = Math.min(range?.end ?? Infinity, statSync(this.pathOf(ref)).size);
          const bytes = new Uint8Array(Math.max(0, end - start));
          readSync(file, bytes, 0, bytes.length, start);
          return bytes;
        } finally {
          closeSync(file);
        }
      }),
    );
  }

  head(
    ref: ObjectRef,
  ): Promise<(ObjectInfo & { readonly metadata: Readonly<Record<string, string>> }) | undefined> {
    const path = this.pathOf(ref);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined) return Promise.resolve(undefined);
    return Promise.resolve({ key: ref.key, sizeBytes: found.size, etag: this.#etagOf(path), metadata: {} });
  }

  write(ref: ObjectRef, body: Uint8Array): Promise<'written' | 'exists'> {
    this.requests++;
    return Promise.resolve(
      this.#counted(() => {
        mkdirSync(dirname(this.pathOf(ref)), { recursive: true });
        writeFileSync(this.pathOf(ref), body);
        return 'written' as const;
      }),
    );
  }

  copy(): Promise<'copied' | 'gone'> {
    throw new Error('a worker copies nothing');
  }

  remove(bucket: string, keys: readonly string[]): Promise<void> {
    for (const key of keys) rmSync(this.pathOf({ bucket, key }), { force: true });
    return Promise.resolve();
  }

  beginUpload({ bucket, key }: ObjectRef): Promise<UploadRef> {
    this.requests++;
    const uploadId = `upload-${String(++this.#uploads)}`;
    this.#partBytes.set(uploadId, new Map());
    mkdirSync(dirname(this.pathOf({ bucket, key })), { recursive: true });
    writeFileSync(this.pathOf({ bucket, key }), '');
    return Promise.resolve({ bucket, key, uploadId });
  }

  /** Parts of one size but the last, in any order. */
  uploadPart(upload: UploadRef, number: number, body: Uint8Array): Promise<UploadedPart> {
    this.requests++;
    const parts = this.#partBytes.get(upload.uploadId);
    if (parts === undefined) throw new NotFoundError('no such upload', { uri: uriOf(upload) });
    parts.set(number, body.length);
    this.#counted(() => {
      const file = openSync(this.pathOf(upload), 'r+');
      writeSync(file, body, 0, body.length, (number - 1) * Math.max(...parts.values()));
      closeSync(file);
    });
    return Promise.resolve({ number, etag: String(number) });
  }

  completeUpload(): Promise<'completed'> {
    this.requests++;
    return Promise.resolve('completed');
  }

  abortUpload(upload: UploadRef): Promise<void> {
    return this.remove(upload.bucket, [upload.key]);
  }

  list(): AsyncIterable<ObjectInfo> {
    throw new Error('a worker lists nothing');
  }

  listUploads(): AsyncIterable<UploadRef> {
    throw new Error('a worker lists nothing');
  }
}
