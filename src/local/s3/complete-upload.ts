import { isDirectoryBucket } from '../../contracts/directory-buckets.ts';
import { CHECKSUM_ALGORITHMS, startChecksum } from './checksum.ts';
import { parseWriteCondition, unquote } from './conditions.ts';
import { badRequest, noSuchUpload, preconditionFailed } from './errors.ts';
import { joinedEtag } from './etag.ts';
import { checksumElement, checksumElementName } from './meta-headers.ts';
import { readUploadId } from './multipart-operations.ts';
import type { ObjectMeta, StoredChecksum } from './object-file.ts';
import { finishFile, readRange } from './object-operations.ts';
import type { Bucket, ObjectStore, WriteCondition } from './object-store.ts';
import { claimedChecksum, receiveText } from './receive-body.ts';
import type { Reply, S3Request } from './request.ts';
import { wholeRoom } from './room-file.ts';
import type { ScratchFile } from './scratch-space.ts';
import { findUpload, openPart, removeUpload } from './upload-store.ts';
import type { Upload } from './upload-store.ts';
import { childrenOf, childText, parseXml, textElement, xmlDocument } from './xml.ts';

const MAX_PARTS = 10_000;

/** All parts but the last must have at least 5 MiB. */
const MIN_PART_BYTES = 5 * 1024 ** 2;

/** A part as the client lists it. */
interface ClaimedPart {
  readonly partNumber: number;
  readonly etag: string;
  readonly checksum: string | undefined;
}

/** A claimed part that is there and as claimed. */
interface CheckedPart {
  readonly partNumber: number;
  readonly meta: ObjectMeta;
}

/**
 * Makes one object of the parts listed.
 *
 * Sent again with the same parts after it succeeded, it answers the same as long as that object
 * stands. With `If-None-Match: *` the repetition finds the object there and gets 412, as a
 * repeated conditional PutObject does; the client has to look whose object it is.
 */
export async function completeMultipartUpload(store: ObjectStore, request: S3Request): Promise<Reply> {
  const bucket = await store.bucket(request.bucket);
  const condition = parseWriteCondition(request);
  const uploadId = readUploadId(request);
  const claimed = readClaimedParts(await receiveText(request, 'of-object'));
  if (isDirectoryBucket(request.bucket)) refuseGaps(claimed);
  return await store.uploadLocks.run(uploadId, async () => {
    const present = await store.findMeta(bucket, request.key);
    // Asked early to spare the copying; the link decides.
    if (condition.ifNoneMatchAny === true && present !== undefined) throw preconditionFailed('If-None-Match');
    if (present?.uploadId === uploadId && present.etag === joinedEtag(claimed.map((part) => part.etag))) {
      await removeUpload(bucket, uploadId);
      return completed(request, present);
    }
    const upload = await findUpload(bucket, request.key, uploadId);
    refuseMissingChecksums(upload, claimed);
    const parts = await checkParts(bucket, upload, claimed);
    if (hasPartChecksums(upload, parts)) refuseGaps(claimed);
    checkTotal(request, parts);
    const meta = await assemble(store, bucket, upload, parts, request, condition);
    await removeUpload(bucket, uploadId);
    return completed(request, meta);
  });
}

function readClaimedParts(text: string): readonly ClaimedPart[] {
  const root = parseXml(text, 'CompleteMultipartUpload');
  const parts = childrenOf(root, 'Part').map((node) => {
    const checksumNames = CHECKSUM_ALGORITHMS.map(checksumElementName);
    return {
      partNumber: Number(childText(node, 'PartNumber')),
      etag: unquote(childText(node, 'ETag') ?? ''),
      checksum: checksumNames.map((name) => childText(node, name)).find((value) => value !== undefined),
    };
  });
  const whole = parts.every((part) => Number.isInteger(part.partNumber) && part.etag !== '');
  if (parts.length === 0 || parts.length > MAX_PARTS || !whole) {
    throw badRequest('MalformedXML', 'The XML you provided did not validate against our published schema');
  }
  const ascending = parts.every((part, at) => at === 0 || part.partNumber > (parts[at - 1]?.partNumber ?? 0));
  if (!ascending) throw badRequest('InvalidPartOrder', 'The list of parts was not in ascending order.');
  return parts;
}

function refuseGaps(parts: readonly ClaimedPart[]): void {
  if (parts.every(({ partNumber }, at) => partNumber === at + 1)) return;
  throw badRequest(
    'InvalidPartOrder',
    'Parts that have checksums, or are in a directory bucket, are numbered from 1 without a gap.',
  );
}

/**
 * The checksum of such an upload is made of those of its parts, which the request repeats.
 *
 * Source: docs.aws.amazon.com/AmazonS3/latest/API/API_CompletedPart.html, and S3's own words.
 */
function refuseMissingChecksums({ checksum }: Upload, claimed: readonly ClaimedPart[]): void {
  if (checksum?.type !== 'COMPOSITE') return;
  const missing = claimed.find((part) => part.checksum === undefined);
  if (missing === undefined) return;
  throw badRequest(
    'InvalidRequest',
    `The upload was created using a ${checksum.algorithm} checksum. The complete request must include the checksum for each part. It was missing for part ${String(missing.partNumber)} in the request.`,
  );
}

/**
 * Whether the whole is known by checksums of its parts. S3 documents gaps as refused where each part has one; an upload in which
 * some have is refused here as well, since nothing says that it is not.
 */
const hasPartChecksums = (upload: Upload, parts: readonly CheckedPart[]): boolean =>
  upload.checksum?.type !== 'FULL_OBJECT' && parts.some(({ meta }) => meta.checksum !== undefined);

async function checkParts(
  bucket: Bucket,
  upload: Upload,
  claimed: readonly ClaimedPart[],
): Promise<readonly CheckedPart[]> {
  const parts: CheckedPart[] = [];
  for (const part of claimed) {
    const opened = await openPart(bucket, upload, part.partNumber);
    await opened?.handle.close();
    const checksum = opened?.meta.checksum?.value;
    if (opened?.meta.etag !== part.etag || (part.checksum !== undefined && part.checksum !== checksum)) {
      throw badRequest(
        'InvalidPart',
        'One or more of the specified parts could not be found, or its entity tag or checksum did not match.',
      );
    }
    parts.push({ partNumber: part.partNumber, meta: opened.meta });
  }
  if (parts.slice(0, -1).some((part) => part.meta.sizeBytes < MIN_PART_BYTES)) {
    throw badRequest('EntityTooSmall', 'Your proposed upload is smaller than the minimum allowed size');
  }
  return parts;
}

function checkTotal(request: S3Request, parts: readonly CheckedPart[]): void {
  const claimed = request.headers.get('x-amz-mp-object-size');
  if (claimed !== undefined && Number(claimed) !== totalBytes(parts)) {
    throw badRequest(
      'InvalidRequest',
      'The provided x-amz-mp-object-size does not match the size of the parts.',
    );
  }
}

function totalBytes(parts: readonly CheckedPart[]): number {
  return parts.reduce((sum, part) => sum + part.meta.sizeBytes, 0);
}

async function assemble(
  store: ObjectStore,
  bucket: Bucket,
  upload: Upload,
  parts: readonly CheckedPart[],
  request: S3Request,
  condition: WriteCondition,
): Promise<ObjectMeta> {
  const room = await wholeRoom(bucket, upload, parts);
  const file = room ?? (await store.scratch.create());
  try {
    const fullChecksum = room === undefined ? await concatenate(bucket, upload, parts, file) : undefined;
    const checksum = fullChecksum ?? compositeChecksum(upload, parts);
    checkClaimedChecksum(request, checksum);
    const meta: ObjectMeta = {
      key: upload.key,
      sizeBytes: totalBytes(parts),
      etag: joinedEtag(parts.map((part) => part.meta.etag)),
      lastModifiedMs: Date.now(),
      headers: upload.headers,
      userMetadata: upload.userMetadata,
      uploadId: upload.uploadId,
      ...(checksum === undefined ? {} : { checksum }),
    };
    await finishFile(file, meta);
    await store.publish(bucket, file, meta, condition);
    return meta;
  } catch (cause) {
    await file.discard();
    throw cause;
  }
}

/** Writes all parts behind each other; answers the checksum of the whole if the upload has that kind. */
async function concatenate(
  bucket: Bucket,
  upload: Upload,
  parts: readonly CheckedPart[],
  file: ScratchFile,
): Promise<StoredChecksum | undefined> {
  const algorithm = upload.checksum?.type === 'FULL_OBJECT' ? upload.checksum.algorithm : undefined;
  const checksum = algorithm === undefined ? undefined : startChecksum(algorithm);
  for (const part of parts) {
    const opened = await openPart(bucket, upload, part.partNumber);
    if (opened === undefined) throw noSuchUpload();
    try {
      // A part uploaded anew since it was checked is not the part that the client listed.
      if (opened.meta.etag !== part.meta.etag)
        throw badRequest('InvalidPart', 'A part was replaced meanwhile.');
      const { startByte = 0, meta } = opened;
      for await (const chunk of readRange(opened, { startByte, sizeBytes: meta.sizeBytes })) {
        checksum?.update(chunk);
        await file.write(chunk);
      }
    } finally {
      await opened.handle.close();
    }
  }
  if (algorithm === undefined || checksum === undefined) return undefined;
  return { algorithm, value: checksum.digest().toString('base64'), type: 'FULL_OBJECT' };
}

function compositeChecksum(upload: Upload, parts: readonly CheckedPart[]): StoredChecksum | undefined {
  if (upload.checksum === undefined) return undefined;
  const { algorithm } = upload.checksum;
  const checksum = startChecksum(algorithm);
  for (const { meta } of parts) {
    // Of those whose bytes were written into a room nobody made one.
    if (meta.checksum === undefined) return undefined;
    checksum.update(Buffer.from(meta.checksum.value, 'base64'));
  }
  const value = `${checksum.digest().toString('base64')}-${String(parts.length)}`;
  return { algorithm, value, type: 'COMPOSITE' };
}

function checkClaimedChecksum(request: S3Request, checksum: StoredChecksum | undefined): void {
  const type = request.headers.get('x-amz-checksum-type')?.toUpperCase();
  if (type !== undefined && type !== checksum?.type) {
    throw badRequest('InvalidRequest', 'The upload was created with another checksum type.');
  }
  const claimed = claimedChecksum(request);
  if (claimed === undefined) return;
  const actual = checksum?.algorithm === claimed.algorithm ? checksum.value : undefined;
  // The number of parts may be left out.
  if (claimed.value !== actual && claimed.value !== actual?.replace(/-\d+$/, '')) {
    throw badRequest(
      'BadDigest',
      `The ${claimed.algorithm} you specified did not match the calculated checksum.`,
    );
  }
}

function completed(request: S3Request, meta: ObjectMeta): Reply {
  const xml = xmlDocument(
    'CompleteMultipartUploadResult',
    textElement('Location', `/${request.bucket}/${request.key}`),
    textElement('Bucket', request.bucket),
    textElement('Key', request.key),
    textElement('ETag', `"${meta.etag}"`),
    checksumElement(meta.checksum),
    textElement('ChecksumType', meta.checksum?.type),
  );
  return { status: 200, xml };
}
