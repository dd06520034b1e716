import type { CHECKSUM_ALGORITHMS } from './checksum.ts';
import { badRequest } from './errors.ts';
import type { ObjectMeta, StoredChecksum } from './object-file.ts';
import type { Target } from './request.ts';
import { textElement } from './xml.ts';

/** The headers of a write that come back with each read. */
export type StoredHeaders = Pick<ObjectMeta, 'headers' | 'userMetadata'>;

const KEPT_HEADERS = ['content-type', 'content-disposition', 'content-language', 'cache-control', 'expires'];
const USER_PREFIX = 'x-amz-meta-';
const MAX_USER_METADATA_BYTES = 2048;

/** @throws {S3Error} MetadataTooLarge. */
export function readStoredHeaders(target: Target): StoredHeaders {
  const headers: Record<string, string> = {};
  for (const name of KEPT_HEADERS) {
    const value = target.headers.get(name);
    if (value !== undefined) headers[name] = value;
  }
  // aws-chunked belongs to the transfer, not to the object.
  const encoding = (target.headers.get('content-encoding') ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '' && part !== 'aws-chunked')
    .join(',');
  if (encoding !== '') headers['content-encoding'] = encoding;

  const userMetadata = new Map<string, string>();
  let sizeBytes = 0;
  for (const [name, value] of target.headers) {
    if (!name.startsWith(USER_PREFIX)) continue;
    const shortName = name.slice(USER_PREFIX.length);
    userMetadata.set(shortName, value);
    sizeBytes += Buffer.byteLength(shortName) + Buffer.byteLength(value);
  }
  if (sizeBytes > MAX_USER_METADATA_BYTES) {
    throw badRequest('MetadataTooLarge', 'Your metadata headers exceed the maximum allowed metadata size');
  }
  return { headers, userMetadata: Object.fromEntries(userMetadata) };
}

/** The headers with which an object is answered, without its length. */
export function objectHeaders(meta: ObjectMeta): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': 'binary/octet-stream',
    ...meta.headers,
    etag: `"${meta.etag}"`,
    'last-modified': new Date(meta.lastModifiedMs).toUTCString(),
    'accept-ranges': 'bytes',
  };
  for (const [name, value] of Object.entries(meta.userMetadata)) headers[`${USER_PREFIX}${name}`] = value;
  return headers;
}

/** The header of a checksum and of its type; nothing for none. */
export function checksumHeaders(checksum: StoredChecksum | undefined): Record<string, string> {
  if (checksum === undefined) return {};
  return { [`x-amz-checksum-${checksum.algorithm}`]: checksum.value, 'x-amz-checksum-type': checksum.type };
}

/** The XML element of a checksum; nothing for none. */
export function checksumElement(checksum: Pick<StoredChecksum, 'algorithm' | 'value'> | undefined): string {
  return checksum === undefined ? '' : textElement(checksumElementName(checksum.algorithm), checksum.value);
}

/** As `ChecksumCRC32`. */
export function checksumElementName(algorithm: (typeof CHECKSUM_ALGORITHMS)[number]): string {
  return `Checksum${algorithm.toUpperCase()}`;
}

/** Times as XML answers have them: whole seconds, like the headers. */
export function xmlTime(ms: number): string {
  return new Date(Math.floor(ms / 1000) * 1000).toISOString();
}
