import type { FileHandle } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { isDirectoryBucket } from '../../contracts/directory-buckets.ts';
import { HandedQuery } from '../../contracts/handed-files.ts';
import { parseQuery, splitUrl } from '../http/canonical-request.ts';
import type { Principal } from '../http/principals.ts';
import { badRequest, notImplemented, S3Error } from './errors.ts';

/** The operations this server knows, by their names in the SDK. */
export type Operation =
  | 'ListBuckets'
  | 'CreateBucket'
  | 'HeadBucket'
  | 'DeleteBucket'
  | 'GetBucketLocation'
  | 'CreateSession'
  | 'ListObjectsV2'
  | 'DeleteObjects'
  | 'PutObject'
  | 'CopyObject'
  | 'GetObject'
  | 'HeadObject'
  | 'DeleteObject'
  | 'CreateMultipartUpload'
  | 'UploadPart'
  | 'UploadPartCopy'
  | 'CompleteMultipartUpload'
  | 'AbortMultipartUpload'
  | 'ListParts'
  | 'ListMultipartUploads'
  | HandingOperation;

/** What no S3 has: bytes by files, for workers of this machine. */
export type HandingOperation = 'HandFiles' | 'HandRoom' | 'HandPart';

/** What a request is addressed to; `bucket` and `key` are empty where there is none. */
export interface Target {
  readonly bucket: string;
  readonly key: string;
  readonly query: ReadonlyMap<string, string>;
  /** Headers, with those that a presigned URL carries in its query. Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
}

/** A request whose signature is good, as the operations see it. */
export interface S3Request extends Target {
  /** What was signed for the body: hex, or a word. */
  readonly payloadHash: string;
  /** Who signed it. May do the operation; whatever else it touches by its body or headers is still to be asked. */
  readonly principal: Principal;
  /** Asks the client for the body, if it waits to be asked, and reads it. Once only. */
  body(): AsyncIterable<Buffer>;
}

/** Part of a stored object as the body of an answer; the server closes the handle. */
export interface FileBody {
  readonly handle: FileHandle;
  readonly startByte: number;
  readonly sizeBytes: number;
  /** How many times as long it is to take to be sent; absent: once. */
  readonly slowdown?: number;
}

/** An answer: at most one of `xml`, `json` and `file`; none of them means no body. */
export interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly xml?: string;
  readonly json?: string;
  readonly file?: FileBody;
}

const MAX_KEY_BYTES = 1024;

/** @throws {S3Error} InvalidURI, KeyTooLongError. */
export function parseTarget(url: string, headers: IncomingHttpHeaders): Target {
  const [rawPath, rawQuery] = splitUrl(url);
  const pairs = parseQuery(rawQuery);
  const path = rawPath.replace(/^\//, '');
  const slash = path.indexOf('/');
  const bucket = decode(slash < 0 ? path : path.slice(0, slash));
  const rest = decode(slash < 0 ? '' : path.slice(slash + 1));
  // Behind the name of a directory bucket the SDK writes two slashes where the endpoint is an address.
  const isDouble = bucket !== undefined && isDirectoryBucket(bucket) && rest?.startsWith('/') === true;
  const key = isDouble ? rest.slice(1) : rest;
  if (pairs === undefined || bucket === undefined || key === undefined) {
    throw badRequest('InvalidURI', "Couldn't parse the specified URI.");
  }
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) throw badRequest('KeyTooLongError', 'Your key is too long');

  const query = new Map(pairs);
  const merged = new Map<string, string>();
  for (const [name, value] of query) {
    if (/^x-amz-/i.test(name)) merged.set(name.toLowerCase(), value);
  }
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string') merged.set(name, value);
  }
  return { bucket, key, query, headers: merged };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

interface Rule {
  readonly operation: Operation;
  readonly method: string;
  readonly scope: 'service' | 'bucket' | 'object';
  readonly needs?: readonly string[];
  readonly allows?: readonly string[];
  readonly copies?: boolean;
}

const OVERRIDES = [
  'response-cache-control',
  'response-content-disposition',
  'response-content-encoding',
  'response-content-language',
  'response-content-type',
  'response-expires',
];

const LISTING = ['prefix', 'encoding-type'];

const RULES: readonly Rule[] = [
  { operation: 'ListBuckets', method: 'GET', scope: 'service' },
  { operation: 'CreateBucket', method: 'PUT', scope: 'bucket' },
  { operation: 'HeadBucket', method: 'HEAD', scope: 'bucket' },
  { operation: 'DeleteBucket', method: 'DELETE', scope: 'bucket' },
  { operation: 'GetBucketLocation', method: 'GET', scope: 'bucket', needs: ['location'] },
  { operation: 'CreateSession', method: 'GET', scope: 'bucket', needs: ['session'] },
  {
    operation: 'ListObjectsV2',
    method: 'GET',
    scope: 'bucket',
    needs: ['list-type'],
    allows: [...LISTING, 'delimiter', 'max-keys', 'continuation-token', 'start-after', 'fetch-owner'],
  },
  {
    operation: 'ListMultipartUploads',
    method: 'GET',
    scope: 'bucket',
    needs: ['uploads'],
    allows: [...LISTING, 'max-uploads', 'key-marker', 'upload-id-marker'],
  },
  { operation: 'DeleteObjects', method: 'POST', scope: 'bucket', needs: ['delete'] },
  { operation: 'PutObject', method: 'PUT', scope: 'object', copies: false },
  { operation: 'CopyObject', method: 'PUT', scope: 'object', copies: true },
  {
    operation: 'UploadPart',
    method: 'PUT',
    scope: 'object',
    needs: ['partNumber', 'uploadId'],
    copies: false,
  },
  {
    operation: 'UploadPartCopy',
    method: 'PUT',
    scope: 'object',
    needs: ['partNumber', 'uploadId'],
    copies: true,
  },
  { operation: 'GetObject', method: 'GET', scope: 'object', allows: OVERRIDES },
  { operation: 'HeadObject', method: 'HEAD', scope: 'object', allows: OVERRIDES },
  { operation: 'DeleteObject', method: 'DELETE', scope: 'object' },
  { operation: 'CreateMultipartUpload', method: 'POST', scope: 'object', needs: ['uploads'] },
  { operation: 'CompleteMultipartUpload', method: 'POST', scope: 'object', needs: ['uploadId'] },
  { operation: 'AbortMultipartUpload', method: 'DELETE', scope: 'object', needs: ['uploadId'] },
  {
    operation: 'ListParts',
    method: 'GET',
    scope: 'object',
    needs: ['uploadId'],
    allows: ['max-parts', 'part-number-marker', 'encoding-type'],
  },
  { operation: 'HandFiles', method: 'POST', scope: 'bucket', needs: [HandedQuery.files] },
  { operation: 'HandRoom', method: 'POST', scope: 'object', needs: [HandedQuery.room, 'uploadId'] },
  {
    operation: 'HandPart',
    method: 'POST',
    scope: 'object',
    needs: [HandedQuery.part, 'partNumber', 'uploadId'],
  },
];

/**
 * Which operation is meant.
 *
 * @throws {S3Error} NotImplemented for every query parameter or header that would otherwise be
 * passed over in silence.
 */
export function chooseOperation(method: string, target: Target): Operation {
  const scope = target.bucket === '' ? 'service' : target.key === '' ? 'bucket' : 'object';
  const copies = target.headers.has('x-amz-copy-source');
  const parameters = [...target.query.keys()].filter((name) => name !== 'x-id' && !/^x-amz-/i.test(name));
  const rule = RULES.find(
    (candidate) =>
      candidate.method === method &&
      candidate.scope === scope &&
      (candidate.copies ?? copies) === copies &&
      (candidate.needs ?? []).every((name) => target.query.has(name)) &&
      parameters.every(
        (name) => candidate.needs?.includes(name) === true || candidate.allows?.includes(name) === true,
      ),
  );
  if (rule === undefined) throw notImplemented(`${method} on this resource with these parameters`);
  refuseHeaders(target.headers);
  return rule.operation;
}

const REFUSED_HEADER =
  /^(?:if-range$|x-amz-(?:grant-|tagging|object-lock-|server-side-encryption-|copy-source-server-|website-|write-offset|mfa|bucket-object-lock|object-ownership|rename-))/;

const HARMLESS_VALUES: ReadonlyMap<string, readonly string[]> = new Map([
  ['x-amz-acl', ['private', 'bucket-owner-full-control']],
  ['x-amz-storage-class', ['STANDARD', 'EXPRESS_ONEZONE']],
  ['x-amz-server-side-encryption', ['AES256']],
]);

function refuseHeaders(headers: ReadonlyMap<string, string>): void {
  for (const [name, value] of headers) {
    const harmless = HARMLESS_VALUES.get(name);
    if (REFUSED_HEADER.test(name) || (harmless !== undefined && !harmless.includes(value))) {
      throw notImplemented(`The header ${name}`);
    }
  }
}

/** A count from the query, between 0 and `most`; more is cut to `most`, as on S3. */
export function countParameter(target: Target, name: string, most: number): number {
  const text = target.query.get(name);
  if (text === undefined || text === '') return most;
  const count = Number(text);
  if (!Number.isInteger(count) || count < 0) {
    throw new S3Error(400, 'InvalidArgument', `Argument ${name} must be an integer between 0 and 2147483647`);
  }
  return Math.min(count, most);
}
