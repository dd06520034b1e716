import { NotFoundError, StoreUnavailableError } from '../../../contracts/errors.ts';
import type { ObjectRef } from '../../../contracts/keys.ts';
import { workerOfBucket } from '../../../contracts/worker-places.ts';
import type {
  ByteRange,
  ObjectInfo,
  ObjectMetadata,
  ObjectStore,
  ReadOptions,
  UploadedPart,
  UploadRef,
} from '../../../ports/object-store.ts';
import { askBeside } from './ask-beside.ts';
import type { KeptClient } from './kept-client.ts';
import type { KeptFiles } from './kept-files.ts';

/** Workers that have begun to answer and break off are asked so often in all, each time for the rest. */
const mostAsked = 2;
/**
 * A worker that lives answers sooner: for so long nobody asks besides whether it has put what it kept elsewhere, and for so long
 * once one has. Of workers that have ended in good order nobody refuses a connection on AWS, and each would cost two silences.
 */
const patienceMs = { first: 1_000, then: 100 };
const everything = { start: 0, end: Number.MAX_SAFE_INTEGER };

/** What keeps outputs on a worker. */
export interface Keeping {
  readonly client: KeptClient;
  /** What is written for others to read: to the bucket that stands for this worker, whatever its address. */
  readonly files: KeptFiles;
  /** Where a worker puts what it keeps before it ends, under the same key. */
  readonly dataBucket: string;
}

/**
 * The objects of a store, and those that workers keep, in buckets that stand for their addresses. Those of others are
 * asked for by HTTP, and where they are not there any more, in the data bucket. This worker's own, which is whatever is
 * written to a worker's bucket, are files.
 */
export class KeptObjects implements ObjectStore {
  private readonly inner: ObjectStore;
  private readonly keeping: Keeping;
  /** Addresses at which nobody has answered, and how: each such try takes its time. */
  private readonly silent = new Map<string, StoreUnavailableError>();
  /** Whether what a worker kept was found in the data bucket while that said nothing. */
  private hasFound = false;

  constructor(inner: ObjectStore, keeping: Keeping) {
    this.inner = inner;
    this.keeping = keeping;
  }

  async *read(ref: ObjectRef, options: ReadOptions = {}): AsyncGenerator<Uint8Array> {
    const address = workerOfBucket(ref.bucket);
    const { range = everything, signal } = options;
    if (range.end <= range.start) return;
    if (address === undefined) {
      yield* this.inner.read(ref, options);
      return;
    }
    if (this.keeping.files.sizeOf(ref.key) !== undefined) {
      yield* this.keeping.files.read(ref.key, range);
      return;
    }
    const silence = this.silent.get(address);
    if (silence !== undefined) {
      yield* this.moved(ref.key, options, silence);
      return;
    }
    let { start } = range;
    for (let asked = 1; ; asked++) {
      const from = start;
      try {
        for await (const chunk of this.kept(address, ref, { ...range, start }, signal)) {
          start += chunk.length;
          yield chunk;
        }
        return;
      } catch (cause) {
        if (!isMissed(cause)) throw cause;
        const hasAnswered = start > from;
        // One connection may break while the worker lives; what was taken is good, and is not asked for again.
        if (hasAnswered && asked < mostAsked) continue;
        if (!hasAnswered && cause instanceof StoreUnavailableError) this.silent.set(address, cause);
        yield* this.moved(ref.key, { ...options, range: { ...range, start } }, cause);
        return;
      }
    }
  }

  /** What a worker answers; it does not where it says nothing for a while and has put the object into the data bucket. */
  private async answerOf<T>(
    address: string,
    ref: ObjectRef,
    ask: (signal: AbortSignal) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    const asked = await askBeside({
      ask,
      hasMoved: async () =>
        (await this.inner.head({ bucket: this.keeping.dataBucket, key: ref.key })) !== undefined,
      patienceMs: this.hasFound ? patienceMs.then : patienceMs.first,
      signal,
    });
    if (asked !== 'moved') return asked.answer;
    this.hasFound = true;
    throw new StoreUnavailableError(
      `the worker at ${address} does not answer, and has put ${ref.key} elsewhere`,
    );
  }

  /** The bytes that a worker gives; throws as its client does, and as `answerOf`. */
  private async *kept(
    address: string,
    ref: ObjectRef,
    range: ByteRange,
    signal?: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    let chunks: AsyncGenerator<Uint8Array> | undefined;
    const begin = (stop: AbortSignal): Promise<IteratorResult<Uint8Array>> => {
      chunks = this.keeping.client.read(address, ref.key, range, stop);
      return chunks.next();
    };
    const first = await this.answerOf(address, ref, begin, signal);
    try {
      if (first.done !== true) yield first.value;
      if (chunks !== undefined) yield* chunks;
    } finally {
      await chunks?.return(undefined); // Whoever breaks off after the first chunk leaves no answer open.
    }
  }

  /** What a worker that has ended may have put into the data bucket; where it has not, what went wrong with the worker counts. */
  private async *moved(key: string, options: ReadOptions, missed: unknown): AsyncGenerator<Uint8Array> {
    let hasBegun = false;
    try {
      for await (const chunk of this.inner.read({ bucket: this.keeping.dataBucket, key }, options)) {
        hasBegun = true;
        yield chunk;
      }
    } catch (cause) {
      throw hasBegun ? cause : missed;
    }
  }

  async readAll(ref: ObjectRef, range?: ByteRange, signal?: AbortSignal): Promise<Uint8Array> {
    if (workerOfBucket(ref.bucket) === undefined) return this.inner.readAll(ref, range, signal);
    const chunks: Uint8Array[] = [];
    const options = {
      ...(range === undefined ? {} : { range }),
      ...(signal === undefined ? {} : { signal }),
    };
    for await (const chunk of this.read(ref, options)) chunks.push(chunk);
    // A copy in any case: whoever gets it may keep it, and a pooled buffer holds others' bytes.
    return Buffer.concat(chunks);
  }

  async head(ref: ObjectRef): Promise<(ObjectInfo & { readonly metadata: ObjectMetadata }) | undefined> {
    const address = workerOfBucket(ref.bucket);
    if (address === undefined) return this.inner.head(ref);
    const { key } = ref;
    const silence = this.silent.get(address);
    const sizeOf = (signal: AbortSignal): Promise<number> => this.keeping.client.sizeOf(address, key, signal);
    try {
      if (silence !== undefined) throw silence;
      return { key, sizeBytes: await this.answerOf(address, ref, sizeOf), etag: '', metadata: {} };
    } catch (cause) {
      if (!isMissed(cause)) throw cause;
      if (cause instanceof StoreUnavailableError) this.silent.set(address, cause);
      const moved = await this.inner.head({ bucket: this.keeping.dataBucket, key }).catch(() => undefined);
      if (moved === undefined && cause instanceof StoreUnavailableError) throw cause;
      return moved;
    }
  }

  async write(
    ref: ObjectRef,
    body: Uint8Array,
    options?: { ifAbsent?: boolean; metadata?: ObjectMetadata },
  ): Promise<'written' | 'exists'> {
    if (workerOfBucket(ref.bucket) === undefined) return this.inner.write(ref, body, options);
    await this.keeping.files.write(ref.key, body);
    return 'written';
  }

  async remove(bucket: string, keys: readonly string[]): Promise<void> {
    if (workerOfBucket(bucket) === undefined) return this.inner.remove(bucket, keys);
    for (const key of keys) await this.keeping.files.remove(key);
  }

  async beginUpload(ref: ObjectRef, metadata?: ObjectMetadata): Promise<UploadRef> {
    if (workerOfBucket(ref.bucket) === undefined) return this.inner.beginUpload(ref, metadata);
    return { ...ref, uploadId: this.keeping.files.beginUpload() };
  }

  async uploadPart(upload: UploadRef, number: number, body: Uint8Array): Promise<UploadedPart> {
    if (workerOfBucket(upload.bucket) === undefined) return this.inner.uploadPart(upload, number, body);
    await this.keeping.files.writePart(upload.uploadId, number, body);
    return { number, etag: '' };
  }

  async completeUpload(
    upload: UploadRef,
    parts: readonly UploadedPart[],
    options?: { ifAbsent?: boolean },
  ): Promise<'completed' | 'exists' | 'gone'> {
    if (workerOfBucket(upload.bucket) === undefined) return this.inner.completeUpload(upload, parts, options);
    const numbers = parts.map(({ number }) => number);
    return (await this.keeping.files.completeUpload(upload.uploadId, upload.key, numbers))
      ? 'completed'
      : 'gone';
  }

  abortUpload(upload: UploadRef): Promise<void> {
    if (workerOfBucket(upload.bucket) === undefined) return this.inner.abortUpload(upload);
    return this.keeping.files.abortUpload(upload.uploadId);
  }

  copy(...args: Parameters<ObjectStore['copy']>): ReturnType<ObjectStore['copy']> {
    return this.inner.copy(...args);
  }

  list(ref: ObjectRef): AsyncIterable<ObjectInfo> {
    return this.inner.list(ref);
  }

  listUploads(ref: ObjectRef): AsyncIterable<UploadRef> {
    return this.inner.listUploads(ref);
  }
}

const isMissed = (cause: unknown): boolean =>
  cause instanceof NotFoundError || cause instanceof StoreUnavailableError;
