import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { hasErrorCode, noSuchUpload, notImplemented, S3Error } from './errors.ts';
import { openObjectFile, readMetaSync, TornFileError } from './object-file.ts';
import type { ObjectMeta, OpenObject } from './object-file.ts';
import type { Bucket } from './object-store.ts';
import type { ScratchFile, ScratchSpace } from './scratch-space.ts';

const uploadSchema = z.object({
  uploadId: z.string(),
  key: z.string(),
  initiatedMs: z.number(),
  headers: z.record(z.string(), z.string()),
  userMetadata: z.record(z.string(), z.string()),
  checksum: z
    .object({
      algorithm: z.enum(['crc32', 'crc32c', 'crc64nvme', 'sha1', 'sha256']),
      type: z.enum(['FULL_OBJECT', 'COMPOSITE']),
    })
    .optional(),
});

/** A multipart upload under way. */
export type Upload = z.infer<typeof uploadSchema>;

/** A part as listed; its `meta.key` is its number. */
export interface StoredPart {
  readonly partNumber: number;
  readonly meta: ObjectMeta;
}

const UPLOAD_FILE = 'upload.json';
const PART_SUFFIX = '.part';
const ROOM_FILE = 'room';

/** Notes down a new upload; it exists once this resolves. */
export async function createUpload(
  bucket: Bucket,
  scratch: ScratchSpace,
  upload: Omit<Upload, 'uploadId'>,
): Promise<Upload> {
  const created = { ...upload, uploadId: randomUUID().replaceAll('-', '') };
  const path = scratch.newPath();
  await writeFile(path, JSON.stringify(created));
  await mkdir(uploadDir(bucket, created.uploadId));
  await rename(path, join(uploadDir(bucket, created.uploadId), UPLOAD_FILE));
  return created;
}

/**
 * The upload of that id and key.
 *
 * @throws {S3Error} NoSuchUpload.
 */
export async function findUpload(bucket: Bucket, key: string, uploadId: string): Promise<Upload> {
  const upload = isUploadId(uploadId) ? await readUpload(bucket, uploadId) : undefined;
  if (upload?.key !== key) throw noSuchUpload();
  return upload;
}

/** Publishes a finished file as a part, in the place of an earlier one of that number. */
export async function publishPart(
  bucket: Bucket,
  upload: Upload,
  partNumber: number,
  file: ScratchFile,
): Promise<void> {
  try {
    await rename(file.path, partPath(bucket, upload, partNumber));
  } catch (error) {
    // The upload was completed or aborted while the part came in.
    throw hasErrorCode(error, 'ENOENT') ? noSuchUpload() : error;
  } finally {
    await file.discard();
  }
}

/** Opens a part for reading, or answers `undefined` if it was never uploaded, or its file is torn. */
export async function openPart(
  bucket: Bucket,
  upload: Upload,
  partNumber: number,
): Promise<OpenObject | undefined> {
  try {
    const opened = await openObjectFile(partPath(bucket, upload, partNumber));
    const { meta } = opened;
    if (meta.inRoomAt === undefined) return opened;
    await opened.handle.close();
    return { meta, handle: await open(roomPath(bucket, upload), 'r'), startByte: meta.inRoomAt };
  } catch (error) {
    if (error instanceof TornFileError || hasErrorCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/**
 * Makes the room of an upload, an empty file in which whoever uploads writes parts himself, and answers its path.
 *
 * @throws {S3Error} 409 where it has one already; NotImplemented where the object needs a checksum of all its bytes.
 */
export async function makeRoom(bucket: Bucket, upload: Upload): Promise<string> {
  if (upload.checksum?.type === 'FULL_OBJECT') throw notImplemented('A room with a checksum of the whole');
  const path = roomPath(bucket, upload);
  try {
    await writeFile(path, '', { flag: 'wx' });
  } catch (error) {
    if (hasErrorCode(error, 'EEXIST'))
      throw new S3Error(409, 'OperationAborted', 'The upload has a room already.');
    throw hasErrorCode(error, 'ENOENT') ? noSuchUpload() : error;
  }
  return path;
}

/** Where parts lie that are in an upload's room. */
export const roomPath = (bucket: Bucket, { uploadId }: Upload): string =>
  join(uploadDir(bucket, uploadId), ROOM_FILE);

/** How large the room of an upload is by now; 0 where there is none. */
export async function roomBytes(bucket: Bucket, upload: Upload): Promise<number> {
  try {
    return (await stat(roomPath(bucket, upload))).size;
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return 0;
    throw error;
  }
}

/** All parts whose files are whole, by number. */
export async function listStoredParts(bucket: Bucket, upload: Upload): Promise<readonly StoredPart[]> {
  const names = (await readdir(uploadDir(bucket, upload.uploadId)))
    .filter((name) => name.endsWith(PART_SUFFIX))
    .sort();
  return names.flatMap((name) => {
    const meta = wholeMeta(join(uploadDir(bucket, upload.uploadId), name));
    return meta === undefined ? [] : [{ partNumber: Number(name.slice(0, -PART_SUFFIX.length)), meta }];
  });
}

function wholeMeta(path: string): ObjectMeta | undefined {
  try {
    return readMetaSync(path);
  } catch (error) {
    if (error instanceof TornFileError) return undefined;
    throw error;
  }
}

/** All uploads under way, in no order, but for those whose notes the system cannot read. */
export async function listUploads(bucket: Bucket): Promise<readonly Upload[]> {
  const found: Upload[] = [];
  for await (const { upload } of readUploads(bucket)) if (upload !== undefined) found.push(upload);
  return found;
}

/**
 * All that lies among the uploads and is one, with its note as {@link readUpload} answers it. One whose note the system
 * cannot read is passed over: it alone cannot be gone on with.
 */
async function* readUploads(
  bucket: Bucket,
): AsyncGenerator<{ readonly uploadId: string; readonly upload: Upload | undefined }> {
  for (const uploadId of (await readdir(join(bucket.dir, 'uploads'))).filter(isUploadId)) {
    try {
      yield { uploadId, upload: await readUpload(bucket, uploadId) };
    } catch (error) {
      if (!isSystemError(error)) throw error;
    }
  }
}

const isSystemError = (error: unknown): boolean => error instanceof Error && 'code' in error;

/** Ends an upload and removes its parts. The note goes first, so that a crash leaves no half of it. */
export async function removeUpload(bucket: Bucket, uploadId: string): Promise<void> {
  await rm(join(uploadDir(bucket, uploadId), UPLOAD_FILE), { force: true });
  // A part may be renamed into the directory while it is being emptied.
  await rm(uploadDir(bucket, uploadId), { recursive: true, force: true, maxRetries: 3 });
}

/**
 * Removes what a crash left of uploads that nobody can go on with: those without a note, or with a torn one. One whose note
 * the system cannot read, or that it cannot remove, stays: all else can be served.
 */
export async function sweepUploads(bucket: Bucket): Promise<void> {
  for await (const { uploadId, upload } of readUploads(bucket)) {
    if (upload !== undefined) continue;
    await removeUpload(bucket, uploadId).catch((error: unknown) => {
      if (!isSystemError(error)) throw error;
    });
  }
}

/** Undefined where there is none, or its note is torn: then it is lost, as is a task's whose process has ended. */
async function readUpload(bucket: Bucket, uploadId: string): Promise<Upload | undefined> {
  let text: string;
  try {
    text = await readFile(join(uploadDir(bucket, uploadId), UPLOAD_FILE), 'utf8');
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return undefined;
    throw error;
  }
  try {
    return uploadSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function isUploadId(text: string): boolean {
  return /^[0-9a-f]{32}$/.test(text);
}

function uploadDir(bucket: Bucket, uploadId: string): string {
  return join(bucket.dir, 'uploads', uploadId);
}

function partPath(bucket: Bucket, upload: Upload, partNumber: number): string {
  return join(uploadDir(bucket, upload.uploadId), `${String(partNumber).padStart(5, '0')}${PART_SUFFIX}`);
}
