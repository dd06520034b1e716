import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import * as z from 'zod';

/**
 * A stored object is one file: its bytes, then its metadata as JSON, then a footer that tells how
 * long the metadata is. So one link or rename publishes both, and an open file never changes.
 */
const FOOTER_MAGIC = Buffer.from('ORS3OBJ1');
const FOOTER_BYTES = FOOTER_MAGIC.length + 4;

/** Read in one go from the end of the file; metadata hardly ever is longer. */
const TAIL_BYTES = 2048;

const checksumSchema = z.object({
  algorithm: z.enum(['crc32', 'crc32c', 'crc64nvme', 'sha1', 'sha256']),
  value: z.string(),
  type: z.enum(['FULL_OBJECT', 'COMPOSITE']),
});

const objectMetaSchema = z.object({
  key: z.string(),
  sizeBytes: z.number(),
  etag: z.string(),
  lastModifiedMs: z.number(),
  /** Content-type and its like, under the header names. */
  headers: z.record(z.string(), z.string()),
  /** `x-amz-meta-*`, without that prefix. */
  userMetadata: z.record(z.string(), z.string()),
  checksum: checksumSchema.optional(),
  /** The multipart upload that made the object. */
  uploadId: z.string().optional(),
  /** Of a part whose bytes lie in its upload's room, and not before this: where they begin there. */
  inRoomAt: z.number().optional(),
});

/** A checksum as sent and as answered: base64, with `-N` if composed of N parts. */
export type StoredChecksum = z.infer<typeof checksumSchema>;

/** All that is known of an object, or of a part, but for its bytes. `etag` has no quotes. */
export type ObjectMeta = z.infer<typeof objectMetaSchema>;

/** An object opened for reading: stays whole whatever happens to its key. The caller closes it. */
export interface OpenObject {
  readonly meta: ObjectMeta;
  readonly handle: FileHandle;
  /** Where its bytes begin in the file; 0 where nothing is said. */
  readonly startByte?: number;
}

/** A file that was cut short, or filled with zeros, as by a crash of the machine. */
export class TornFileError extends Error {
  override readonly name = 'TornFileError';

  constructor(path: string, options?: ErrorOptions) {
    super(`${path} is not a whole object file`, options);
  }
}

/** The bytes that follow an object's data in its file. */
export function encodeMeta(meta: ObjectMeta): Buffer {
  const json = Buffer.from(JSON.stringify(meta));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(json.length);
  return Buffer.concat([json, length, FOOTER_MAGIC]);
}

/**
 * Opens an object file and reads its metadata.
 *
 * @throws the file system's ENOENT if there is none; TornFileError.
 */
export async function openObjectFile(path: string): Promise<OpenObject> {
  const handle = await open(path, 'r');
  try {
    const { size } = await handle.stat();
    const tail = await readFully(handle, Math.max(0, size - TAIL_BYTES), Math.min(size, TAIL_BYTES));
    const jsonBytes = metaLength(tail, path, size);
    const held = jsonBytes + FOOTER_BYTES;
    const json =
      held <= tail.length
        ? tail.subarray(tail.length - held, tail.length - FOOTER_BYTES)
        : await readFully(handle, size - held, jsonBytes);
    return { meta: decodeMeta(json, path), handle };
  } catch (cause) {
    await handle.close();
    throw cause;
  }
}

/** As {@link openObjectFile}, with its errors, but only the metadata, and blocking: a start reads thousands of them. */
export const readMetaSync = (path: string): ObjectMeta => identifyObjectSync(path).meta;

/** The metadata of an object, and what tells its file from any other that comes into its place later. */
export function identifyObjectSync(path: string): {
  readonly meta: ObjectMeta;
  readonly ino: bigint;
  readonly mtimeNs: bigint;
} {
  const descriptor = openSync(path, 'r');
  try {
    const { size: sizeBytes, ino, mtimeNs } = fstatSync(descriptor, { bigint: true });
    const size = Number(sizeBytes);
    const readAt = (position: number, lengthBytes: number): Buffer => {
      const bytes = Buffer.alloc(lengthBytes);
      return bytes.subarray(0, readSync(descriptor, bytes, 0, lengthBytes, position));
    };
    const tail = readAt(Math.max(0, size - TAIL_BYTES), Math.min(size, TAIL_BYTES));
    const held = metaLength(tail, path, size) + FOOTER_BYTES;
    const whole = held <= tail.length ? tail.subarray(tail.length - held) : readAt(size - held, held);
    return { meta: decodeMeta(whole.subarray(0, whole.length - FOOTER_BYTES), path), ino, mtimeNs };
  } finally {
    closeSync(descriptor);
  }
}

/** Exactly `lengthBytes` bytes from `position`; fewer only if the file ends before. */
export async function readFully(handle: FileHandle, position: number, lengthBytes: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(lengthBytes);
  let filled = 0;
  while (filled < lengthBytes) {
    const { bytesRead } = await handle.read(bytes, filled, lengthBytes - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}

function metaLength(tail: Buffer, path: string, size: number): number {
  const magic = tail.subarray(Math.max(0, tail.length - FOOTER_MAGIC.length));
  if (tail.length < FOOTER_BYTES || !magic.equals(FOOTER_MAGIC)) throw new TornFileError(path);
  const length = tail.readUInt32BE(tail.length - FOOTER_BYTES);
  if (length + FOOTER_BYTES > size) throw new TornFileError(path);
  return length;
}

function decodeMeta(json: Buffer, path: string): ObjectMeta {
  try {
    return objectMetaSchema.parse(JSON.parse(json.toString('utf8')));
  } catch (cause) {
    throw new TornFileError(path, { cause });
  }
}
