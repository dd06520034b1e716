import { compareUtf8 } from '../../lib/compare-utf8.ts';
import { isDirectoryBucket } from '../../contracts/directory-buckets.ts';
import { parseRange } from './conditions.ts';
import { badRequest, noSuchUpload } from './errors.ts';
import { keyEncoder } from './bucket-operations.ts';
import { opaquePartEtag } from './etag.ts';
import { checksumElement, readStoredHeaders, xmlTime } from './meta-headers.ts';
import {
  copyBytes,
  copyDocument,
  finishFile,
  openCopySource,
  requireAlgorithm,
  wholeObjectMeta,
} from './object-operations.ts';
import type { ObjectMeta } from './object-file.ts';
import type { ObjectStore } from './object-store.ts';
import { receiveFile } from './receive-body.ts';
import type { BodyDigest, ReceivedFile } from './receive-body.ts';
import { countParameter } from './request.ts';
import type { Reply, S3Request } from './request.ts';
import type { ScratchFile } from './scratch-space.ts';
import {
  createUpload,
  findUpload,
  listStoredParts,
  listUploads,
  publishPart,
  removeUpload,
} from './upload-store.ts';
import type { Upload } from './upload-store.ts';
import { parentElement, textElement, xmlDocument } from './xml.ts';

const MAX_PARTS = 10_000;
const MAX_LISTED = 1000;
const NO_HEADERS = { headers: {}, userMetadata: {} };

/** Begins an upload; its checksum algorithm and type are settled here. */
export async function createMultipartUpload(store: ObjectStore, request: S3Request): Promise<Reply> {
  const bucket = await store.bucket(request.bucket);
  const checksum = uploadChecksum(request);
  const upload = await createUpload(bucket, store.scratch, {
    key: request.key,
    initiatedMs: Date.now(),
    ...readStoredHeaders(request),
    ...(checksum === undefined ? {} : { checksum }),
  });
  const xml = xmlDocument(
    'InitiateMultipartUploadResult',
    textElement('Bucket', bucket.name),
    textElement('Key', request.key),
    textElement('UploadId', upload.uploadId),
  );
  if (checksum === undefined) return { status: 200, xml };
  const headers = {
    'x-amz-checksum-algorithm': checksum.algorithm.toUpperCase(),
    'x-amz-checksum-type': checksum.type,
  };
  return { status: 200, headers, xml };
}

function uploadChecksum(request: S3Request): Upload['checksum'] {
  const name = request.headers.get('x-amz-checksum-algorithm');
  const type = request.headers.get('x-amz-checksum-type')?.toUpperCase();
  if (name === undefined) {
    if (type !== undefined)
      throw badRequest('InvalidRequest', 'x-amz-checksum-type needs x-amz-checksum-algorithm.');
    return undefined;
  }
  const algorithm = requireAlgorithm(name);
  const cyclic = algorithm.startsWith('crc');
  const allowed =
    algorithm === 'crc64nvme' ? ['FULL_OBJECT'] : cyclic ? ['COMPOSITE', 'FULL_OBJECT'] : ['COMPOSITE'];
  const chosen = type ?? allowed[0];
  if (chosen === undefined || !allowed.includes(chosen)) {
    throw badRequest(
      'InvalidRequest',
      `The ${String(type)} checksum type cannot be used with the ${name} checksum algorithm.`,
    );
  }
  return { algorithm, type: chosen === 'COMPOSITE' ? 'COMPOSITE' : 'FULL_OBJECT' };
}

/** Stores the body as one part, in the place of an earlier one of that number. */
export async function uploadPart(store: ObjectStore, request: S3Request): Promise<Reply> {
  const partNumber = readPartNumber(request);
  const bucket = await store.bucket(request.bucket);
  const upload = await findUpload(bucket, request.key, readUploadId(request));
  const received = await receiveFile(request, store.scratch, upload.checksum?.algorithm);
  if (isDirectoryBucket(request.bucket)) await refuseUnsaid(upload, received);
  const meta = await finishPart(received.file, upload, partNumber, received);
  await publishPart(bucket, upload, partNumber, received.file);
  const checksum =
    meta.checksum === undefined ? {} : { [`x-amz-checksum-${meta.checksum.algorithm}`]: meta.checksum.value };
  return { status: 200, headers: { etag: `"${meta.etag}"`, ...checksum } };
}

/**
 * A checksum of a part must be of the algorithm that its upload was begun with. Of other buckets S3 has borne since 2024 that none was
 * named; for directory buckets nothing says so.
 *
 * Source: docs.aws.amazon.com/AmazonS3/latest/API/API_UploadPart.html, ChecksumAlgorithm.
 */
async function refuseUnsaid(upload: Upload, { file, checksum }: ReceivedFile): Promise<void> {
  if (upload.checksum !== undefined || checksum === undefined) return;
  await file.discard();
  throw badRequest(
    'InvalidRequest',
    `Checksum Type mismatch occurred, expected checksum Type: null, actual checksum Type: ${checksum.algorithm}`,
  );
}

async function finishPart(
  file: ScratchFile,
  upload: Upload,
  partNumber: number,
  digest: BodyDigest,
): Promise<ObjectMeta> {
  const wanted = upload.checksum?.algorithm;
  if (wanted !== undefined && digest.checksum?.algorithm !== wanted) {
    await file.discard();
    throw badRequest('InvalidRequest', `Checksum Type mismatch occurred, expected checksum Type: ${wanted}`);
  }
  const etag = digest.md5Hex ?? opaquePartEtag();
  const meta = wholeObjectMeta(String(partNumber), digest, NO_HEADERS, etag);
  await finishFile(file, meta);
  return meta;
}

/** Makes a part of an object, or of a range of it. */
export async function uploadPartCopy(store: ObjectStore, request: S3Request): Promise<Reply> {
  const partNumber = readPartNumber(request);
  const bucket = await store.bucket(request.bucket);
  const upload = await findUpload(bucket, request.key, readUploadId(request));
  const source = await openCopySource(store, request);
  let file: ScratchFile | undefined;
  try {
    const range = readCopyRange(request, source.meta.sizeBytes);
    file = await store.scratch.create();
    const digest = await copyBytes(source, range, file, upload.checksum?.algorithm);
    const meta = await finishPart(file, upload, partNumber, digest);
    await publishPart(bucket, upload, partNumber, file);
    return { status: 200, xml: copyDocument('CopyPartResult', meta) };
  } catch (cause) {
    await file?.discard();
    throw cause;
  } finally {
    await source.handle.close();
  }
}

function readCopyRange(request: S3Request, sizeBytes: number): { startByte: number; sizeBytes: number } {
  const header = request.headers.get('x-amz-copy-source-range');
  if (header === undefined) return { startByte: 0, sizeBytes };
  const match = /^bytes=(\d+)-(\d+)$/.exec(header);
  const range = parseRange(header, sizeBytes);
  // Unlike a read, a copy must name both ends, and both must exist.
  if (
    match === null ||
    range === undefined ||
    range === 'unsatisfiable' ||
    range.endByte !== Number(match[2])
  ) {
    throw badRequest(
      'InvalidArgument',
      'The x-amz-copy-source-range value must be of the form bytes=first-last within the source.',
    );
  }
  return { startByte: range.startByte, sizeBytes: range.endByte - range.startByte + 1 };
}

/** Ends an upload without an object. */
export async function abortMultipartUpload(store: ObjectStore, request: S3Request): Promise<Reply> {
  const bucket = await store.bucket(request.bucket);
  const uploadId = readUploadId(request);
  return await store.uploadLocks.run(uploadId, async () => {
    await findUpload(bucket, request.key, uploadId);
    await removeUpload(bucket, uploadId);
    return { status: 204 };
  });
}

/** One page of the parts of an upload. */
export async function listParts(store: ObjectStore, request: S3Request): Promise<Reply> {
  const bucket = await store.bucket(request.bucket);
  const upload = await findUpload(bucket, request.key, readUploadId(request));
  const maxParts = countParameter(request, 'max-parts', MAX_LISTED);
  const marker = request.query.has('part-number-marker')
    ? countParameter(request, 'part-number-marker', MAX_PARTS)
    : 0;
  const later = (await listStoredParts(bucket, upload)).filter((part) => part.partNumber > marker);
  const page = later.slice(0, maxParts);
  const encode = keyEncoder(request);
  const xml = xmlDocument(
    'ListPartsResult',
    textElement('Bucket', bucket.name),
    textElement('Key', encode(upload.key)),
    textElement('UploadId', upload.uploadId),
    textElement('PartNumberMarker', marker),
    textElement('NextPartNumberMarker', page.at(-1)?.partNumber ?? 0),
    textElement('MaxParts', maxParts),
    textElement('IsTruncated', later.length > page.length),
    textElement('ChecksumAlgorithm', upload.checksum?.algorithm.toUpperCase()),
    textElement('ChecksumType', upload.checksum?.type),
    textElement('StorageClass', 'STANDARD'),
    ...page.map(({ partNumber, meta }) =>
      parentElement(
        'Part',
        textElement('PartNumber', partNumber),
        textElement('LastModified', xmlTime(meta.lastModifiedMs)),
        textElement('ETag', `"${meta.etag}"`),
        textElement('Size', meta.sizeBytes),
        checksumElement(meta.checksum),
      ),
    ),
  );
  return { status: 200, xml };
}

/** One page of the uploads under way, by key, then by age. */
export async function listMultipartUploads(store: ObjectStore, request: S3Request): Promise<Reply> {
  const bucket = await store.bucket(request.bucket);
  const prefix = request.query.get('prefix') ?? '';
  const keyMarker = request.query.get('key-marker') ?? '';
  const idMarker = request.query.get('upload-id-marker') ?? '';
  const maxUploads = countParameter(request, 'max-uploads', MAX_LISTED);
  const sorted = (await listUploads(bucket))
    .filter((upload) => upload.key.startsWith(prefix))
    .sort(
      (a, b) =>
        compareUtf8(a.key, b.key) || a.initiatedMs - b.initiatedMs || compareUtf8(a.uploadId, b.uploadId),
    );
  const later = sorted.slice(firstAfterMarker(sorted, keyMarker, idMarker));
  const page = later.slice(0, maxUploads);
  const truncated = later.length > page.length;
  const last = truncated ? page.at(-1) : undefined;
  const encode = keyEncoder(request);
  const xml = xmlDocument(
    'ListMultipartUploadsResult',
    textElement('Bucket', bucket.name),
    textElement('KeyMarker', encode(keyMarker)),
    textElement('UploadIdMarker', idMarker),
    textElement('NextKeyMarker', last === undefined ? undefined : encode(last.key)),
    textElement('NextUploadIdMarker', last?.uploadId),
    textElement('Prefix', encode(prefix)),
    textElement('EncodingType', request.query.get('encoding-type')),
    textElement('MaxUploads', maxUploads),
    textElement('IsTruncated', truncated),
    ...page.map((upload) =>
      parentElement(
        'Upload',
        textElement('Key', encode(upload.key)),
        textElement('UploadId', upload.uploadId),
        textElement('StorageClass', 'STANDARD'),
        textElement('Initiated', xmlTime(upload.initiatedMs)),
      ),
    ),
  );
  return { status: 200, xml };
}

/** With an id marker, uploads of the marked key go on after it; without, that key is done with. */
function firstAfterMarker(sorted: readonly Upload[], keyMarker: string, idMarker: string): number {
  if (keyMarker === '') return 0;
  const marked = sorted.findIndex((upload) => upload.key === keyMarker && upload.uploadId === idMarker);
  if (marked >= 0) return marked + 1;
  const later = sorted.findIndex((upload) => compareUtf8(upload.key, keyMarker) > 0);
  return later < 0 ? sorted.length : later;
}

/** The id of the upload that a request is about. */
export function readUploadId(request: S3Request): string {
  const uploadId = request.query.get('uploadId');
  if (uploadId === undefined) throw noSuchUpload();
  return uploadId;
}

/** The number of the part that a request is about. */
export function readPartNumber(request: S3Request): number {
  const partNumber = Number(request.query.get('partNumber'));
  if (!Number.isInteger(partNumber) || partNumber < 1 || partNumber > MAX_PARTS) {
    throw badRequest('InvalidArgument', 'Part number must be an integer between 1 and 10000, inclusive');
  }
  return partNumber;
}
