import type * as z from 'zod';
import {
  type FilesAnswer,
  filesRequestSchema,
  type HandedFile,
  partRequestSchema,
} from '../../contracts/handed-files.ts';
import { badRequest, hasErrorCode } from './errors.ts';
import { opaquePartEtag } from './etag.ts';
import { readPartNumber, readUploadId } from './multipart-operations.ts';
import { identifyObjectSync } from './object-file.ts';
import { finishFile } from './object-operations.ts';
import { type Bucket, objectPath, type ObjectStore } from './object-store.ts';
import { receiveText } from './receive-body.ts';
import type { Reply, S3Request } from './request.ts';
import { findUpload, makeRoom, publishPart, roomBytes } from './upload-store.ts';

/*
 * Bytes by files, for workers of this machine: they may do what a GET or an UploadPart would let them do, and the kernel
 * then moves bytes once that would pass two sockets and two processes.
 */

/**
 * Files of objects that the caller may read. Null for all others, and for objects that are not there: a GET says why. An
 * object that is written anew is another file, so that what was handed out stays as it is.
 */
export async function handFiles(store: ObjectStore, request: S3Request): Promise<Reply> {
  const bucket = await store.bucket(request.bucket);
  const { keys } = await received(request, filesRequestSchema);
  const mayRead = (key: string): boolean =>
    request.principal.authorize?.({
      service: 's3',
      operation: 'GetObject',
      resource: `${request.bucket}/${key}`,
    }) === undefined;
  const answer: FilesAnswer = {
    files: keys.map((key) => (mayRead(key) ? (identify(bucket, key) ?? null) : null)),
  };
  return { status: 200, json: JSON.stringify(answer) };
}

function identify(bucket: Bucket, key: string): HandedFile | undefined {
  const path = objectPath(bucket, key);
  try {
    const { meta, ino, mtimeNs } = identifyObjectSync(path);
    return {
      path,
      ino: String(ino),
      mtimeNs: String(mtimeNs),
      sizeBytes: meta.sizeBytes,
      etag: `"${meta.etag}"`,
    };
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** A file for the parts of an upload, to one caller: two would write over each other. */
export async function handRoom(store: ObjectStore, request: S3Request): Promise<Reply> {
  const bucket = await store.bucket(request.bucket);
  const upload = await findUpload(bucket, request.key, readUploadId(request));
  return { status: 200, json: JSON.stringify({ path: await makeRoom(bucket, upload) }) };
}

/** Takes bytes in the upload's room for a part. It has no checksum: nothing lies between that could damage them. */
export async function takePartInRoom(store: ObjectStore, request: S3Request): Promise<Reply> {
  const bucket = await store.bucket(request.bucket);
  const upload = await findUpload(bucket, request.key, readUploadId(request));
  const partNumber = readPartNumber(request);
  const { at, sizeBytes } = await received(request, partRequestSchema);
  if (at + sizeBytes > (await roomBytes(bucket, upload)))
    throw badRequest('IncompleteBody', 'The upload has no file, or one that ends before the part does.');
  const meta = {
    key: String(partNumber),
    sizeBytes,
    etag: opaquePartEtag(),
    lastModifiedMs: Date.now(),
    headers: {},
    userMetadata: {},
    inRoomAt: at,
  };
  const note = await store.scratch.create();
  await finishFile(note, meta);
  await publishPart(bucket, upload, partNumber, note);
  return { status: 200, json: JSON.stringify({ etag: `"${meta.etag}"` }) };
}

async function received<T extends z.ZodType>(request: S3Request, schema: T): Promise<z.output<T>> {
  const text = await receiveText(request);
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    throw badRequest('MalformedJSON', 'The body is no JSON of the form that is wanted.');
  }
}
