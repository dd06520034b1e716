import { createHash } from 'node:crypto';
import { decodeAwsChunked } from './aws-chunked.ts';
import { checksumAlgorithm, startChecksum } from './checksum.ts';
import type { ChecksumAlgorithm } from './checksum.ts';
import { badRequest, notImplemented, S3Error } from './errors.ts';
import type { S3Request } from './request.ts';
import type { ScratchFile, ScratchSpace } from './scratch-space.ts';

/** Largest object or part of one request: 5 GiB. */
const MAX_BODY_BYTES = 5 * 1024 ** 3;

const MAX_XML_BYTES = 8 * 1024 * 1024;

/** Smaller bodies are known by their MD5 whatever was sent of them. */
const OPAQUE_FROM_BYTES = 1024 * 1024;

const CHUNKED_UNSIGNED = 'STREAMING-UNSIGNED-PAYLOAD-TRAILER';

/** What was measured while a body came in, all of it checked against what the client claimed. */
export interface BodyDigest {
  readonly sizeBytes: number;
  /** Undefined where the ETag need not be it. */
  readonly md5Hex: string | undefined;
  /** Base64; there only if the client sent one or the caller asked for one. */
  readonly checksum: { readonly algorithm: ChecksumAlgorithm; readonly value: string } | undefined;
}

/** A body in a file of scratch space, still open for its metadata. */
export interface ReceivedFile extends BodyDigest {
  readonly file: ScratchFile;
}

/**
 * Streams the body of a request into a scratch file. Whatever fails, the file is removed.
 *
 * @param wanted - a checksum to make even if the client sends none.
 * @throws {S3Error} BadDigest, IncompleteBody and their like.
 */
export async function receiveFile(
  request: S3Request,
  scratch: ScratchSpace,
  wanted?: ChecksumAlgorithm,
): Promise<ReceivedFile> {
  const claims = readClaims(request, wanted);
  const file = await scratch.create();
  try {
    const digest = await measure(request, claims, (chunk) => file.write(chunk));
    return { ...digest, file };
  } catch (cause) {
    await file.discard();
    throw cause;
  }
}

/**
 * The body of a request that is a document.
 *
 * @param headerChecksum - what an `x-amz-checksum-*` header is of: the body, or an object.
 * @throws {S3Error} MalformedXML beyond 8 MiB; BadDigest and their like.
 */
export async function receiveText(
  request: S3Request,
  headerChecksum: 'of-body' | 'of-object' = 'of-body',
): Promise<string> {
  const read = readClaims(request, undefined);
  const claims =
    headerChecksum === 'of-body' ? read : { ...read, algorithm: undefined, checksumValue: undefined };
  if (claims.lengthBytes > MAX_XML_BYTES)
    throw badRequest('MalformedXML', 'The XML you provided is too large.');
  const chunks: Buffer[] = [];
  await measure(request, claims, (chunk) => {
    chunks.push(Buffer.from(chunk));
  });
  return Buffer.concat(chunks).toString('utf8');
}

/** True if the client sent a digest of the body, which DeleteObjects demands. */
export function claimsDigest(request: S3Request): boolean {
  return (
    request.headers.has('content-md5') ||
    claimedChecksum(request) !== undefined ||
    trailerAlgorithm(request) !== undefined
  );
}

interface Claims {
  readonly lengthBytes: number;
  readonly chunked: boolean;
  readonly md5: string | undefined;
  readonly sha256Hex: string | undefined;
  readonly algorithm: ChecksumAlgorithm | undefined;
  readonly checksumValue: string | undefined;
  readonly inTrailer: boolean;
}

function readClaims(request: S3Request, wanted: ChecksumAlgorithm | undefined): Claims {
  const streaming = request.payloadHash.startsWith('STREAMING-');
  if (streaming && request.payloadHash !== CHUNKED_UNSIGNED) throw notImplemented(request.payloadHash);
  const lengthText = request.headers.get(streaming ? 'x-amz-decoded-content-length' : 'content-length');
  const chunkedTransfer = request.headers.has('transfer-encoding');
  if (lengthText === undefined && (streaming || chunkedTransfer)) {
    throw new S3Error(411, 'MissingContentLength', 'You must provide the Content-Length HTTP header.');
  }
  const lengthBytes = Number(lengthText ?? 0);
  if (!Number.isSafeInteger(lengthBytes) || lengthBytes < 0)
    throw badRequest('InvalidArgument', 'Bad content length.');
  if (lengthBytes > MAX_BODY_BYTES) {
    throw badRequest('EntityTooLarge', 'Your proposed upload exceeds the maximum allowed object size.');
  }
  const md5 = request.headers.get('content-md5');
  if (md5 !== undefined && Buffer.from(md5, 'base64').length !== 16) {
    throw badRequest('InvalidDigest', 'The Content-MD5 you specified was invalid.');
  }
  const inHeader = claimedChecksum(request);
  const inTrailer = streaming ? trailerAlgorithm(request) : undefined;
  return {
    lengthBytes,
    chunked: streaming,
    md5,
    sha256Hex: /^[0-9a-f]{64}$/.test(request.payloadHash) ? request.payloadHash : undefined,
    algorithm: inHeader?.algorithm ?? inTrailer ?? wanted,
    checksumValue: inHeader?.value,
    inTrailer: inTrailer !== undefined,
  };
}

const NOT_VALUES: ReadonlySet<string> = new Set(['mode', 'type', 'algorithm']);

/**
 * The checksum in the headers of a request, or `undefined`.
 *
 * @throws {S3Error} if there are several, or one of an algorithm that is not known here.
 */
export function claimedChecksum(
  request: S3Request,
): { readonly algorithm: ChecksumAlgorithm; readonly value: string } | undefined {
  const found: { algorithm: ChecksumAlgorithm; value: string }[] = [];
  for (const [name, value] of request.headers) {
    const suffix = /^x-amz-checksum-(.+)$/.exec(name)?.[1];
    if (suffix === undefined || NOT_VALUES.has(suffix)) continue;
    const algorithm = checksumAlgorithm(suffix);
    if (algorithm === undefined) throw notImplemented(`The header ${name}`);
    found.push({ algorithm, value });
  }
  if (found.length > 1) {
    throw badRequest(
      'InvalidRequest',
      'Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.',
    );
  }
  return found[0];
}

function trailerAlgorithm(request: S3Request): ChecksumAlgorithm | undefined {
  const name = request.headers.get('x-amz-trailer');
  if (name === undefined) return undefined;
  const algorithm = checksumAlgorithm(name.trim().replace(/^x-amz-checksum-/i, ''));
  if (algorithm === undefined)
    throw badRequest('InvalidRequest', 'The value specified in the x-amz-trailer header is not supported');
  return algorithm;
}

/**
 * Whether the ETag is to be the MD5 of the body. It takes longer than all other checks of a large one together, and
 * who has signed another checksum of it has no need to find the MD5 there: on S3 it depends on the encryption, too.
 */
function isKnownByMd5({ md5, checksumValue, lengthBytes }: Claims): boolean {
  return md5 !== undefined || checksumValue === undefined || lengthBytes < OPAQUE_FROM_BYTES;
}

async function measure(
  request: S3Request,
  claims: Claims,
  take: (chunk: Buffer) => Promise<void> | void,
): Promise<BodyDigest> {
  const trailers = new Map<string, string>();
  const md5 = isKnownByMd5(claims) ? createHash('md5') : undefined;
  const sha256 = claims.sha256Hex === undefined ? undefined : createHash('sha256');
  const checksum = claims.algorithm === undefined ? undefined : startChecksum(claims.algorithm);
  let sizeBytes = 0;
  for await (const chunk of claims.chunked ? decodeAwsChunked(request.body(), trailers) : request.body()) {
    sizeBytes += chunk.length;
    if (sizeBytes > claims.lengthBytes) throw incomplete();
    md5?.update(chunk);
    sha256?.update(chunk);
    checksum?.update(chunk);
    await take(chunk);
    free(chunk);
  }
  if (sizeBytes !== claims.lengthBytes) throw incomplete();
  const md5Digest = md5?.digest();
  const value = checksum?.digest().toString('base64');
  if (claims.md5 !== undefined && claims.md5 !== md5Digest?.toString('base64')) {
    throw badRequest('BadDigest', 'The Content-MD5 you specified did not match what we received.');
  }
  if (claims.sha256Hex !== undefined && claims.sha256Hex !== sha256?.digest('hex')) {
    throw badRequest(
      'XAmzContentSHA256Mismatch',
      "The provided 'x-amz-content-sha256' header does not match what was computed.",
    );
  }
  checkChecksum(claims, trailers, value);
  return {
    sizeBytes,
    md5Hex: md5Digest?.toString('hex'),
    checksum:
      claims.algorithm === undefined || value === undefined
        ? undefined
        : { algorithm: claims.algorithm, value },
  };
}

/**
 * Gives back at once what a chunk has for itself. Left to the collector, which counts such memory against the whole heap,
 * each 16 MB that come in make it mark all that this process has.
 */
function free({ buffer, length }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}

function checkChecksum(
  claims: Claims,
  trailers: ReadonlyMap<string, string>,
  value: string | undefined,
): void {
  if (claims.algorithm === undefined) return;
  const trailing = trailers.get(`x-amz-checksum-${claims.algorithm}`);
  if (claims.inTrailer && trailing === undefined) {
    throw badRequest(
      'MalformedTrailerError',
      'The request contained trailing data that was not well-formed.',
    );
  }
  const claimed = claims.checksumValue ?? trailing;
  if (claimed !== undefined && claimed !== value) {
    throw badRequest(
      'BadDigest',
      `The ${claims.algorithm.toUpperCase()} you specified did not match the calculated checksum.`,
    );
  }
}

function incomplete(): S3Error {
  return badRequest(
    'IncompleteBody',
    'You did not provide the number of bytes specified by the Content-Length HTTP header',
  );
}
