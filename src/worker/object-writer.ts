import { crc32 } from 'node:zlib';
import { invariant, StoreRefusedError, StoreUnavailableError } from '../contracts/errors.ts';
import type { ObjectRef } from '../contracts/keys.ts';
import { mostParts, type ObjectStore, type UploadedPart, type UploadRef } from '../ports/object-store.ts';
import { BadInputError } from './operator.ts';

/** Size of the parts of an upload; objects up to this size are written in one request. */
export const partBytes = 8 * 1024 * 1024;
const mostPartsInFlight = 2;
/** Buffers of parts that nobody uses, kept for the next object of this process: see `kept-memory.ts`. */
const spareBuffers: Buffer[] = [];
const mostSpareBuffers = mostPartsInFlight + 1;
const nothing = Buffer.alloc(0);

/**
 * What came of the bytes. `none`: there was no byte, nothing was written. `inline`: so few that nothing was written
 * either. `upload`: complete, not yet visible.
 */
export type WrittenObject =
  | { readonly kind: 'none' }
  | { readonly kind: 'object'; readonly sizeBytes: number }
  | { readonly kind: 'inline'; readonly body: Uint8Array }
  | {
      readonly kind: 'upload';
      readonly upload: UploadRef;
      readonly parts: readonly UploadedPart[];
      readonly sizeBytes: number;
    };

export interface ObjectWriterOptions {
  /** Always an upload in parts, which somebody else completes. */
  readonly leaveUpload: boolean;
  /** Up to so many bytes are given back instead of being written: an upload and its note cost more. Absent: none. */
  readonly inlineBytes?: number;
  /** Called before an upload is begun, and with its id before a part is sent. Where it throws, none is. */
  readonly noteUpload?: (upload: { readonly uploadId?: string }) => Promise<void>;
  readonly metadata?: Readonly<Record<string, string>>;
  /**
   * Where the object goes if its bucket, which is in one zone, does not answer. That is asked no more by this process for
   * objects of the same store, since each such try takes its time.
   */
  readonly fallback?: ObjectRef;
}

/** Directory buckets that did not answer. */
const unreachable = new WeakMap<ObjectStore, Set<string>>();

/**
 * The zone of an object was lost while the object was written, so that its bytes cannot be sent elsewhere: a fault of the
 * place, and nobody's own.
 */
export class LostZoneError extends StoreUnavailableError {}

const takeBuffer = (): Buffer => spareBuffers.pop() ?? Buffer.allocUnsafeSlow(partBytes);

function giveBuffer(buffer: Buffer): void {
  if (spareBuffers.length < mostSpareBuffers) spareBuffers.push(buffer);
}

/** Streams bytes into one object. Holds at most three parts in memory; `discard` leaves nothing behind. */
export class ObjectWriter {
  readonly #objects: ObjectStore;
  #ref: ObjectRef;
  #options: ObjectWriterOptions;
  #buffer: Buffer;
  #used = 0;
  #sentBytes = 0;
  #upload: Promise<UploadRef> | undefined;
  /** As `#upload`, also where it could not be noted. */
  #begun: UploadRef | undefined;
  readonly #parts: UploadedPart[] = [];
  #partsBegun = 0;
  readonly #inFlight = new Set<Promise<void>>();
  #failure: Error | undefined;
  #isWritten = false;
  #isClosed = false;
  #crc = 0;
  /** Where in the buffer the bytes begin that are not in `#crc` yet. */
  #crcFrom = 0;
  #markBytes = 0;

  constructor(objects: ObjectStore, ref: ObjectRef, options: ObjectWriterOptions) {
    const { fallback } = options;
    const isDown = fallback !== undefined && unreachable.get(objects)?.has(ref.bucket) === true;
    this.#objects = objects;
    this.#ref = isDown ? fallback : ref;
    this.#options = options;
    this.#buffer = takeBuffer();
  }

  /** Of the object, as far as is known yet. */
  get bucket(): string {
    return this.#ref.bucket;
  }

  /**
   * Whether the bytes so far can still become a plain object in a bucket that outlasts the worker: none has been sent
   * elsewhere.
   */
  canMoveTo({ bucket, key }: ObjectRef): boolean {
    const isThere = bucket === this.#ref.bucket && key === this.#ref.key && !this.#options.leaveUpload;
    return isThere || (this.#partsBegun === 0 && !this.#isClosed);
  }

  /** Has them become that object; where `canMoveTo` says so. */
  moveTo(ref: ObjectRef): void {
    invariant(this.canMoveTo(ref), 'bytes of an object that were sent elsewhere', { key: ref.key });
    this.#ref = ref;
    this.#options = { leaveUpload: false };
  }

  /** Makes the first request for the object, elsewhere where its bucket does not answer. */
  async #first<T>(request: (ref: ObjectRef) => Promise<T>): Promise<T> {
    try {
      return await request(this.#ref);
    } catch (error) {
      this.#ref = this.#giveUpZone(error);
      return await request(this.#ref);
    }
  }

  /** Where to go on after a fault of the object's zone. Throws any other. */
  #giveUpZone(cause: unknown): ObjectRef {
    const { fallback } = this.#options;
    if (fallback === undefined || this.bucket === fallback.bucket) throw cause;
    if (!(cause instanceof StoreUnavailableError)) throw cause;
    const known = unreachable.get(this.#objects) ?? new Set();
    unreachable.set(this.#objects, known.add(this.bucket));
    return fallback;
  }

  /** Makes a later request, of which the bytes before cannot be had again. */
  async #later<T>(request: () => Promise<T>): Promise<T> {
    try {
      return await request();
    } catch (cause) {
      this.#giveUpZone(cause);
      // The zone is there, and would refuse it from another attempt alike: that is to be told, and to count.
      if (cause instanceof StoreRefusedError) throw cause;
      throw new LostZoneError(`${this.bucket} does not answer`, {}, { cause });
    }
  }

  /** Bytes appended so far. */
  get sizeBytes(): number {
    return this.#sentBytes + this.#used;
  }

  /** Copies `bytes[start, end)`; await what is returned, and keep the bytes until then. */
  append(bytes: Uint8Array, start: number, end: number): Promise<void> | undefined {
    if (end - start > partBytes - this.#used || this.#isClosed) return this.#appendSlowly(bytes, start, end);
    this.#copy(bytes, start, end);
    return undefined;
  }

  #copy(bytes: Uint8Array, start: number, end: number): void {
    this.#buffer.set(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end), this.#used);
    this.#used += end - start;
  }

  async #appendSlowly(bytes: Uint8Array, start: number, end: number): Promise<void> {
    for (let at = start; at < end;) {
      invariant(!this.#isClosed, 'bytes after the end of an object');
      if (this.#used === partBytes) await this.#sendPart();
      const size = Math.min(end - at, partBytes - this.#used);
      this.#copy(bytes, at, at + size);
      at += size;
    }
  }

  /** Length and CRC-32 of the bytes since the last call. */
  takeChecksum(): { readonly lengthBytes: number; readonly crc: number } {
    this.#foldCrc();
    const taken = { lengthBytes: this.sizeBytes - this.#markBytes, crc: this.#crc };
    this.#markBytes = this.sizeBytes;
    this.#crc = 0;
    return taken;
  }

  #foldCrc(): void {
    if (this.#used > this.#crcFrom)
      this.#crc = crc32(this.#buffer.subarray(this.#crcFrom, this.#used), this.#crc);
    this.#crcFrom = this.#used;
  }

  async #sendPart(): Promise<void> {
    while (this.#inFlight.size >= mostPartsInFlight) await Promise.race(this.#inFlight);
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#partsBegun === mostParts)
      throw new BadInputError('the output of one task is larger than 75 GB');
    this.#foldCrc();
    const buffer = this.#buffer;
    const number = ++this.#partsBegun;
    this.#upload ??= this.#begin();
    const sent = this.#send(this.#upload, number, buffer, this.#used).finally(() =>
      this.#inFlight.delete(sent),
    );
    this.#inFlight.add(sent);
    this.#sentBytes += this.#used;
    this.#buffer = takeBuffer();
    this.#used = 0;
    this.#crcFrom = 0;
  }

  async #begin(): Promise<UploadRef> {
    const { metadata, noteUpload } = this.#options;
    await noteUpload?.({});
    this.#begun = await this.#first((ref) => this.#objects.beginUpload(ref, metadata));
    await noteUpload?.({ uploadId: this.#begun.uploadId });
    return this.#begun;
  }

  /** Never rejects: the failure is thrown by the next call that waits. */
  async #send(begun: Promise<UploadRef>, number: number, buffer: Buffer, size: number): Promise<void> {
    try {
      const upload = await begun;
      const part = buffer.subarray(0, size);
      this.#parts.push(await this.#later(() => this.#objects.uploadPart(upload, number, part)));
      giveBuffer(buffer);
    } catch (error) {
      this.#failure ??= error instanceof Error ? error : new Error(String(error));
    }
  }

  /** Writes what is left. Throws what any of the requests threw; `discard` then. */
  async finish(): Promise<WrittenObject> {
    this.#isClosed = true;
    const sizeBytes = this.sizeBytes;
    if (sizeBytes === 0) return { kind: 'none' };
    if (this.#partsBegun === 0 && !this.#options.leaveUpload) {
      this.#isWritten = true;
      const { metadata } = this.#options;
      const body = this.#buffer.subarray(0, this.#used);
      await this.#first((ref) => this.#objects.write(ref, body, metadata === undefined ? {} : { metadata }));
      return { kind: 'object', sizeBytes };
    }
    if (this.#partsBegun === 0 && sizeBytes <= (this.#options.inlineBytes ?? 0))
      return { kind: 'inline', body: Uint8Array.from(this.#buffer.subarray(0, this.#used)) };
    if (this.#used > 0) await this.#sendPart();
    while (this.#inFlight.size > 0) await Promise.race(this.#inFlight);
    if (this.#failure !== undefined) throw this.#failure;
    giveBuffer(this.#buffer);
    this.#buffer = nothing;
    const upload = await this.#upload;
    invariant(upload !== undefined, 'parts without an upload');
    const parts = this.#parts.toSorted((left, right) => left.number - right.number);
    if (this.#options.leaveUpload) return { kind: 'upload', upload, parts, sizeBytes };
    this.#isWritten = true;
    await this.#later(() => this.#objects.completeUpload(upload, parts));
    return { kind: 'object', sizeBytes };
  }

  /** Removes whatever was written, also after `finish`. Throws if the store does. */
  async discard(): Promise<void> {
    this.#isClosed = true;
    while (this.#inFlight.size > 0) await Promise.race(this.#inFlight);
    await this.#upload?.catch(() => undefined);
    if (this.#begun !== undefined) await this.#objects.abortUpload(this.#begun);
    if (this.#isWritten) await this.#objects.remove(this.#ref.bucket, [this.#ref.key]);
  }
}
