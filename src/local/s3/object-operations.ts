import { createHash } from 'node:crypto';
import { isDirectoryBucket } from '../../contracts/directory-buckets.ts';
import { startChecksum } from './checksum.ts';
import type { ChecksumAlgorithm } from './checksum.ts';
import { checkCopyConditions, checkReadConditions, parseRange, parseWriteCondition } from './conditions.ts';
import { badRequest, notImplemented, S3Error } from './errors.ts';
import {
  checksumHeaders,
  checksumElement,
  objectHeaders,
  readStoredHeaders,
  xmlTime,
} from './meta-headers.ts';
import { opaqueEtag, opaquePartEtag } from './etag.ts';
import { encodeMeta } from './object-file.ts';
import type { ObjectMeta, OpenObject, StoredChecksum } from './object-file.ts';
import type { Bucket, ObjectStore } from './object-store.ts';
import { receiveFile } from './receive-body.ts';
import type { BodyDigest } from './receive-body.ts';
import type { Reply, S3Request, Target } from './request.ts';
import type { ScratchFile } from './scratch-space.ts';
import { textElement, xmlDocument } from './xml.ts';

/** Largest source of one CopyObject: 5 GiB. */
const MAX_COPY_BYTES = 5 * 1024 ** 3;

const COPY_CHUNK_BYTES = 256 * 1024;

/** Stores the body under the key, once it has come whole and its digests are right. */
export async function putObject(store: ObjectStore, request: S3Request): Promise<Reply> {
  const bucket = await store.bucket(request.bucket);
  const condition = parseWriteCondition(request);
  const stored = readStoredHeaders(request);
  const received = await receiveFile(request, store.scratch);
  const etag = isDirectoryBucket(request.bucket) ? opaquePartEtag() : undefined;
  const meta = wholeObjectMeta(request.key, received, stored, etag);
  await finishFile(received.file, meta);
  await store.publish(bucket, received.file, meta, condition);
  return { status: 200, headers: { etag: `"${meta.etag}"`, ...checksumHeaders(meta.checksum) } };
}

/** Ends a file with its metadata; the file is removed if that fails. */
export async function finishFile(file: ScratchFile, meta: ObjectMeta): Promise<void> {
  try {
    await file.finish(encodeMeta(meta));
  } catch (cause) {
    await file.discard();
    throw cause;
  }
}

/** Metadata of an object or part that came in one piece. */
export function wholeObjectMeta(
  key: string,
  digest: BodyDigest,
  stored: Pick<ObjectMeta, 'headers' | 'userMetadata'>,
  etag = digest.md5Hex ?? opaqueEtag(),
): ObjectMeta {
  const checksum: StoredChecksum | undefined =
    digest.checksum === undefined ? undefined : { ...digest.checksum, type: 'FULL_OBJECT' };
  return {
    key,
    sizeBytes: digest.sizeBytes,
    etag,
    lastModifiedMs: Date.now(),
    ...stored,
    ...(checksum === undefined ? {} : { checksum }),
  };
}

/** The object or a range of it, as a file to be streamed. */
export async function getObject(store: ObjectStore, request: S3Request): Promise<Reply> {
  const bucket = await store.bucket(request.bucket);
  const object = await store.openObject(bucket, request.key);
  try {
    const reply = describeObject(request, object);
    if (reply.file === undefined) await object.handle.close();
    return reply;
  } catch (cause) {
    await object.handle.close();
    throw cause;
  }
}

/** What GetObject would answer, without the body. */
export async function headObject(store: ObjectStore, request: S3Request): Promise<Reply> {
  const bucket = await store.bucket(request.bucket);
  const object = await store.openObject(bucket, request.key);
  try {
    const { status, headers } = describeObject(request, object);
    return headers === undefined ? { status } : { status, headers };
  } finally {
    await object.handle.close();
  }
}

function describeObject(request: S3Request, { meta, handle }: OpenObject): Reply {
  if (checkReadConditions(request, meta) === 'not-modified') {
    return { status: 304, headers: { etag: `"${meta.etag}"` } };
  }
  const headers = { ...objectHeaders(meta), ...overrides(request) };
  const range = parseRange(request.headers.get('range'), meta.sizeBytes);
  if (range === 'unsatisfiable') {
    throw new S3Error(416, 'InvalidRange', 'The requested range is not satisfiable', {
      'content-range': `bytes */${String(meta.sizeBytes)}`,
    });
  }
  if (range === undefined) {
    const wantsChecksum = request.headers.get('x-amz-checksum-mode')?.toUpperCase() === 'ENABLED';
    return {
      status: 200,
      headers: {
        ...headers,
        ...(wantsChecksum ? checksumHeaders(meta.checksum) : {}),
        'content-length': String(meta.sizeBytes),
      },
      file: { handle, startByte: 0, sizeBytes: meta.sizeBytes },
    };
  }
  // No checksum here: it is of the whole object, and clients would hold the part against it.
  const sizeBytes = range.endByte - range.startByte + 1;
  const contentRange = `bytes ${String(range.startByte)}-${String(range.endByte)}/${String(meta.sizeBytes)}`;
  return {
    status: 206,
    headers: { ...headers, 'content-range': contentRange, 'content-length': String(sizeBytes) },
    file: { handle, startByte: range.startByte, sizeBytes },
  };
}

function overrides(target: Target): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of target.query) {
    if (name.startsWith('response-')) headers[name.slice('response-'.length)] = value;
  }
  return headers;
}

/** 204, whether there was an object or not. */
export async function deleteObject(store: ObjectStore, request: S3Request): Promise<Reply> {
  const bucket = await store.bucket(request.bucket);
  const ifMatch = parseWriteCondition(request);
  if (ifMatch.ifNoneMatchAny === true) throw notImplemented('If-None-Match on a delete');
  await store.deleteObject(bucket, request.key, ifMatch);
  return { status: 204 };
}

/** Copies an object whole; the copy's ETag is the MD5 of its bytes, even of a multipart source. */
export async function copyObject(store: ObjectStore, request: S3Request): Promise<Reply> {
  const bucket = await store.bucket(request.bucket);
  const condition = parseWriteCondition(request);
  const replaces = request.headers.get('x-amz-metadata-directive')?.toUpperCase() === 'REPLACE';
  const source = await openCopySource(store, request);
  let file: ScratchFile | undefined;
  try {
    if (source.meta.sizeBytes > MAX_COPY_BYTES) {
      throw badRequest(
        'InvalidRequest',
        'The specified copy source is larger than the maximum allowable size',
      );
    }
    if (!replaces && source.bucket.name === bucket.name && source.meta.key === request.key) {
      throw badRequest(
        'InvalidRequest',
        'This copy request is illegal: an object cannot be copied to itself unchanged.',
      );
    }
    file = await store.scratch.create();
    const whole = { startByte: 0, sizeBytes: source.meta.sizeBytes };
    const digest = await copyBytes(
      source,
      whole,
      file,
      copyAlgorithm(request) ?? source.meta.checksum?.algorithm,
    );
    const meta = wholeObjectMeta(
      request.key,
      digest,
      replaces
        ? readStoredHeaders(request)
        : { headers: source.meta.headers, userMetadata: source.meta.userMetadata },
    );
    await finishFile(file, meta);
    await store.publish(bucket, file, meta, condition);
    return { status: 200, xml: copyDocument('CopyObjectResult', meta) };
  } catch (cause) {
    await file?.discard();
    throw cause;
  } finally {
    await source.handle.close();
  }
}

function copyAlgorithm(request: S3Request): ChecksumAlgorithm | undefined {
  const name = request.headers.get('x-amz-checksum-algorithm');
  if (name === undefined) return undefined;
  return requireAlgorithm(name);
}

/** @throws {S3Error} InvalidRequest for an algorithm that is not known. */
export function requireAlgorithm(name: string): ChecksumAlgorithm {
  const lower = name.toLowerCase();
  switch (lower) {
    case 'crc32':
    case 'crc32c':
    case 'crc64nvme':
    case 'sha1':
    case 'sha256':
      return lower;
    default:
      throw badRequest('InvalidRequest', 'Checksum algorithm provided is unsupported.');
  }
}

/** The answer to a copy of an object or of a part. */
export function copyDocument(root: string, meta: ObjectMeta): string {
  return xmlDocument(
    root,
    textElement('ETag', `"${meta.etag}"`),
    textElement('LastModified', xmlTime(meta.lastModifiedMs)),
    checksumElement(meta.checksum),
    textElement('ChecksumType', meta.checksum?.type),
  );
}

/**
 * Opens what `x-amz-copy-source` names. The caller closes it.
 *
 * @throws {S3Error} NoSuchBucket, NoSuchKey, PreconditionFailed, InvalidArgument.
 */
export async function openCopySource(
  store: ObjectStore,
  request: S3Request,
): Promise<OpenObject & { readonly bucket: Bucket }> {
  const source = copySourceOf(request.headers) ?? '';
  const match = /^([^/]+)\/(.+)$/s.exec(source);
  const [, bucketName, key] = match ?? [];
  if (bucketName === undefined || key === undefined) {
    throw badRequest(
      'InvalidArgument',
      'Copy Source must mention the source bucket and key: sourcebucket/sourcekey',
    );
  }
  const bucket = await store.bucket(bucketName);
  const object = await store.openObject(bucket, key);
  try {
    checkCopyConditions(request, object.meta);
  } catch (cause) {
    await object.handle.close();
    throw cause;
  }
  return { ...object, bucket };
}

/**
 * The bucket/key that a request copies; undefined where it copies none.
 *
 * @throws {S3Error} InvalidArgument; NotImplemented for versions.
 */
export function copySourceOf(headers: Target['headers']): string | undefined {
  const header = headers.get('x-amz-copy-source');
  if (header === undefined) return undefined;
  if (header.includes('?')) throw notImplemented('A copy source with a version');
  try {
    return decodeURIComponent(header).replace(/^\//, '');
  } catch {
    throw badRequest('InvalidArgument', 'The copy source is not URL-encoded UTF-8.');
  }
}

/** Copies bytes of a stored object into a file, and measures them as a body is measured. */
export async function copyBytes(
  source: OpenObject,
  range: { readonly startByte: number; readonly sizeBytes: number },
  file: ScratchFile,
  algorithm: ChecksumAlgorithm | undefined,
): Promise<BodyDigest> {
  const md5 = createHash('md5');
  const checksum = algorithm === undefined ? undefined : startChecksum(algorithm);
  for await (const chunk of readRange(source, range)) {
    md5.update(chunk);
    checksum?.update(chunk);
    await file.write(chunk);
  }
  return {
    sizeBytes: range.sizeBytes,
    md5Hex: md5.digest('hex'),
    checksum:
      algorithm === undefined || checksum === undefined
        ? undefined
        : { algorithm, value: checksum.digest().toString('base64') },
  };
}

/**
 * The bytes of a range, in chunks of their own.
 *
 * @throws if the file ends before the range does.
 */
export async function* readRange(
  { handle }: Pick<OpenObject, 'handle'>,
  range: { readonly startByte: number; readonly sizeBytes: number },
): AsyncGenerator<Buffer, void, undefined> {
  const endByte = range.startByte + range.sizeBytes;
  for (let at = range.startByte; at < endByte;) {
    const chunk = Buffer.allocUnsafe(Math.min(COPY_CHUNK_BYTES, endByte - at));
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, at);
    if (bytesRead === 0) throw new Error('an object file is shorter than its metadata says');
    at += bytesRead;
    yield chunk.subarray(0, bytesRead);
  }
}
