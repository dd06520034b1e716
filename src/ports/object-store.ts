import type { ObjectRef } from '../contracts/keys.ts';

export interface ObjectInfo {
  readonly key: string;
  readonly sizeBytes: number;
  readonly etag: string;
  /** Where it is archived, as the store calls that: it cannot be read before it is restored. Absent: it is not, as far as is told. */
  readonly archive?: string;
}

/** Why an archived object cannot be read, and what to do; `archive` as in `ObjectInfo`, empty where nobody tells. */
export const archivedText = (uri: string, archive: string): string =>
  `the object ${uri} is archived${archive === '' ? '' : ` (${archive})`}; restore it first`;

/** Parts of one upload at most: a tenth of S3's 10,000 numbers is left for parts that are sent twice. */
export const mostParts = 9_000;

/** What S3 copies in one request. */
export const mostCopyBytes = 5 * 1024 ** 3;

/** What `readAll` gives at most. */
export const mostWholeBytes = 64 * 1024 * 1024;

/** Bytes [start, end); `end` past the object's end is cut. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** What is read of an object, and until when. */
export interface ReadOptions {
  readonly range?: ByteRange;
  readonly etag?: string;
  readonly signal?: AbortSignal;
}

/** What is kept with an object, by name. */
export type ObjectMetadata = Readonly<Record<string, string>>;

export interface UploadRef extends ObjectRef {
  readonly uploadId: string;
}

export interface UploadedPart {
  readonly number: number;
  readonly etag: string;
  /** CRC-32 of its bytes in base64, where its upload is completed by it; absent elsewhere. */
  readonly crc32?: string;
}

/**
 * Objects in buckets. Writes of one object are atomic: readers see all of it or nothing. Every write may be
 * repeated with the same effect. Missing objects throw `NotFoundError`; passing faults are retried inside and
 * then throw `StoreUnavailableError`. Reads that come faster than the store serves them are slowed down and go on.
 */
export interface ObjectStore {
  /**
   * Streams an object or a range of it; an empty range is empty even where there is no object. `etag`: throws
   * `ConflictError` where the object is another by now.
   */
  read(ref: ObjectRef, options?: ReadOptions): AsyncIterable<Uint8Array>;
  /** A small object or range whole, at most `mostWholeBytes`. Ends early where the signal fires. */
  readAll(ref: ObjectRef, range?: ByteRange, signal?: AbortSignal): Promise<Uint8Array>;
  /** Size, etag and metadata, or undefined where there is no such object. */
  head(ref: ObjectRef): Promise<(ObjectInfo & { readonly metadata: ObjectMetadata }) | undefined>;
  /** Objects whose key begins with `ref.key`: in byte order of keys, but in any order where the bucket is a directory bucket. */
  list(ref: ObjectRef): AsyncIterable<ObjectInfo>;
  /** Writes a small object whole. With `ifAbsent` exactly one of several writers gets `written`. */
  write(
    ref: ObjectRef,
    body: Uint8Array,
    options?: { ifAbsent?: boolean; metadata?: ObjectMetadata },
  ): Promise<'written' | 'exists'>;
  /**
   * Copies an object of at most `mostCopyBytes`, metadata too, without its bytes coming here. `exists`: there was one under
   * that name, which is left as it is; `gone`: there is none to copy. Throws `ConflictError` where that is another by now
   * than `etag` says. Where the signal fires nobody waits for it any more; it may be made all the same.
   */
  copy(
    from: ObjectRef & Pick<ObjectInfo, 'etag'>,
    to: ObjectRef,
    signal?: AbortSignal,
  ): Promise<'copied' | 'exists' | 'gone'>;
  /** Removes objects; those that are not there are no error. Any number of keys. */
  remove(bucket: string, keys: readonly string[]): Promise<void>;

  /** Begins an upload in parts of at least 5 MiB but the last; part numbers from 1 to `mostParts`. */
  beginUpload(ref: ObjectRef, metadata?: ObjectMetadata): Promise<UploadRef>;
  /** What `completeUpload` is to be given: its number may be another, in the order of those that were said. */
  uploadPart(upload: UploadRef, number: number, body: Uint8Array): Promise<UploadedPart>;
  /**
   * Makes the object visible. `exists`: with `ifAbsent`, an object of that name was there; `gone`: no such
   * upload (completed before, or aborted). At least one part. Completing again what is complete may answer any
   * of the three, as S3 remembers completed uploads for a while: who must know looks at the object's metadata.
   */
  completeUpload(
    upload: UploadRef,
    parts: readonly UploadedPart[],
    options?: { ifAbsent?: boolean },
  ): Promise<'completed' | 'exists' | 'gone'>;
  /** Drops an upload; one that is not there is no error. */
  abortUpload(upload: UploadRef): Promise<void>;
  /** Uploads begun and neither completed nor aborted whose key begins with `ref.key`. */
  listUploads(ref: ObjectRef): AsyncIterable<UploadRef>;
}
