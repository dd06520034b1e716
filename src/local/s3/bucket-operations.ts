import { claimsDigest, receiveText } from './receive-body.ts';
import { inListedOrder } from './directory-buckets.ts';
import { badRequest, notImplemented, S3Error } from './errors.ts';
import type { ListEntry } from './key-index.ts';
import { xmlTime } from './meta-headers.ts';
import { isBucketName } from './object-store.ts';
import type { ObjectStore } from './object-store.ts';
import type { Reply, S3Request, Target } from './request.ts';
import { countParameter } from './request.ts';
import { childrenOf, childText, parentElement, parseXml, textElement, xmlDocument } from './xml.ts';

/** Most keys of a page, and of one DeleteObjects. */
const MAX_KEYS = 1000;

/** Answers 200, or 409 if the bucket is there: it can only be the caller's own. */
export async function createBucket(store: ObjectStore, request: S3Request): Promise<Reply> {
  if (!isBucketName(request.bucket))
    throw badRequest('InvalidBucketName', 'The specified bucket is not valid.');
  // The location constraint in the body says nothing here; its digest is still checked.
  await receiveText(request);
  if (!(await store.createBucket(request.bucket, Date.now()))) {
    throw new S3Error(
      409,
      'BucketAlreadyOwnedByYou',
      'Your previous request to create the named bucket succeeded.',
    );
  }
  return { status: 200, headers: { location: `/${request.bucket}` } };
}

/** Answers 200 or, by NoSuchBucket, 404. */
export async function headBucket(store: ObjectStore, request: S3Request, region: string): Promise<Reply> {
  await store.bucket(request.bucket);
  return { status: 200, headers: { 'x-amz-bucket-region': region } };
}

/** Only an empty bucket can go. */
export async function deleteBucket(store: ObjectStore, request: S3Request): Promise<Reply> {
  await store.deleteBucket(request.bucket);
  return { status: 204 };
}

/** The region, or nothing for us-east-1, as on S3. */
export async function getBucketLocation(
  store: ObjectStore,
  request: S3Request,
  region: string,
): Promise<Reply> {
  await store.bucket(request.bucket);
  return { status: 200, xml: xmlDocument('LocationConstraint', region === 'us-east-1' ? '' : region) };
}

/** All buckets on one page. */
export function listBuckets(store: ObjectStore): Reply {
  const buckets = store
    .listBuckets()
    .map((bucket) =>
      parentElement(
        'Bucket',
        textElement('Name', bucket.name),
        textElement('CreationDate', xmlTime(bucket.createdMs)),
      ),
    );
  return {
    status: 200,
    xml: xmlDocument('ListAllMyBucketsResult', OWNER, parentElement('Buckets', ...buckets)),
  };
}

const OWNER = parentElement('Owner', textElement('ID', 'local'), textElement('DisplayName', 'local'));

/** One page of keys; the continuation token is the last name listed, in base64. */
export async function listObjects(store: ObjectStore, request: S3Request): Promise<Reply> {
  if (request.query.get('list-type') !== '2') throw notImplemented('Listing of that type');
  const bucket = await store.bucket(request.bucket);
  const encode = keyEncoder(request);
  const prefix = request.query.get('prefix') ?? '';
  const delimiter = request.query.get('delimiter') ?? '';
  const startAfter = request.query.get('start-after');
  const token = request.query.get('continuation-token');
  const maxKeys = countParameter(request, 'max-keys', MAX_KEYS);
  const page = bucket.index.list({
    prefix,
    delimiter,
    maxKeys,
    after: decodeToken(token) ?? startAfter ?? '',
  });
  const withOwner = request.query.get('fetch-owner') === 'true';
  const xml = xmlDocument(
    'ListBucketResult',
    textElement('Name', bucket.name),
    textElement('Prefix', encode(prefix)),
    textElement('StartAfter', startAfter === undefined ? undefined : encode(startAfter)),
    textElement('ContinuationToken', token),
    textElement('NextContinuationToken', page.next === undefined ? undefined : encodeToken(page.next)),
    textElement('KeyCount', page.entries.length),
    textElement('MaxKeys', maxKeys),
    delimiter === '' ? '' : textElement('Delimiter', encode(delimiter)),
    textElement('EncodingType', request.query.get('encoding-type')),
    textElement('IsTruncated', page.next !== undefined),
    ...inListedOrder(bucket.name, page.entries, nameOf).map((entry) =>
      entryElement(entry, encode, withOwner),
    ),
  );
  return { status: 200, xml };
}

const nameOf = (entry: ListEntry): string => (entry.kind === 'prefix' ? entry.prefix : entry.key);

function entryElement(entry: ListEntry, encode: (text: string) => string, withOwner: boolean): string {
  if (entry.kind === 'prefix')
    return parentElement('CommonPrefixes', textElement('Prefix', encode(entry.prefix)));
  return parentElement(
    'Contents',
    textElement('Key', encode(entry.key)),
    textElement('LastModified', xmlTime(entry.summary.lastModifiedMs)),
    textElement('ETag', `"${entry.summary.etag}"`),
    textElement('Size', entry.summary.sizeBytes),
    withOwner ? OWNER : '',
    textElement('StorageClass', 'STANDARD'),
  );
}

/**
 * How names go into the XML: as they are, or encoded as S3 does for `encoding-type=url`.
 *
 * @throws {S3Error} InvalidArgument for other encodings.
 */
export function keyEncoder(target: Target): (text: string) => string {
  const encoding = target.query.get('encoding-type');
  if (encoding === undefined || encoding === '') return (text) => text;
  if (encoding !== 'url') throw badRequest('InvalidArgument', 'Invalid Encoding Method specified in Request');
  return (text) =>
    encodeURIComponent(text)
      .replace(/[!'()~]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
      .replaceAll('%2F', '/')
      .replaceAll('%20', '+');
}

function encodeToken(name: string): string {
  return Buffer.from(`after:${name}`).toString('base64');
}

function decodeToken(token: string | undefined): string | undefined {
  if (token === undefined) return undefined;
  const text = Buffer.from(token, 'base64').toString('utf8');
  if (!text.startsWith('after:'))
    throw badRequest('InvalidArgument', 'The continuation token provided is incorrect');
  return text.slice('after:'.length);
}

/** Deletes up to 1,000 keys; each key's outcome is in the answer, absent keys count as deleted. */
export async function deleteObjects(store: ObjectStore, request: S3Request): Promise<Reply> {
  const bucket = await store.bucket(request.bucket);
  if (!claimsDigest(request)) {
    throw badRequest(
      'InvalidRequest',
      'Missing required header for this request: Content-MD5 OR x-amz-checksum-*',
    );
  }
  const root = parseXml(await receiveText(request), 'Delete');
  const objects = childrenOf(root, 'Object');
  const keys = objects.map((object) => childText(object, 'Key'));
  if (keys.length === 0 || keys.length > MAX_KEYS || keys.includes(undefined) || keys.includes('')) {
    throw badRequest('MalformedXML', 'The XML you provided did not validate against our published schema');
  }
  for (const name of ['VersionId', 'ETag', 'LastModifiedTime', 'Size']) {
    if (objects.some((object) => childrenOf(object, name).length > 0))
      throw notImplemented(`Delete with ${name}`);
  }
  const quiet = childText(root, 'Quiet') === 'true';
  const lines: string[] = [];
  for (const key of keys) {
    if (key === undefined) continue;
    const resource = `${request.bucket}/${key}`;
    const denial = request.principal.authorize?.({ service: 's3', operation: 'DeleteObject', resource });
    if (denial !== undefined) {
      const told = [
        textElement('Key', key),
        textElement('Code', 'AccessDenied'),
        textElement('Message', denial),
      ];
      lines.push(parentElement('Error', ...told));
      continue;
    }
    await store.deleteObject(bucket, key, {});
    if (!quiet) lines.push(parentElement('Deleted', textElement('Key', key)));
  }
  return { status: 200, xml: xmlDocument('DeleteResult', ...lines) };
}
