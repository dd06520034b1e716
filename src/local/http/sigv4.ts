import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import {
  canonicalHeader,
  canonicalPath,
  canonicalQuery,
  parseQuery,
  type QueryPair,
  sha256Hex,
  signingKey,
  splitUrl,
} from './canonical-request.ts';
import {
  type Credentials,
  isSameSecret,
  type KeyEntry,
  type Principal,
  type Principals,
  principalsOf,
} from './principals.ts';
import { ALGORITHM, type Claim, readHeaderClaim, readQueryClaim } from './sigv4-claim.ts';
import { refuse, type SigV4Refusal } from './sigv4-refusal.ts';

export type { Credentials } from './principals.ts';
export type { SigV4Refusal } from './sigv4-refusal.ts';

/** A request as it came over the wire: `url` undecoded, header names in lower case. */
export interface WireRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

/** Whom and what a signature must be made for. */
export interface SigV4Settings {
  /** The keys of the one caller where there are no `principals`. */
  readonly credentials: Credentials;
  /** Whose keys are accepted. */
  readonly principals?: Principals | undefined;
  readonly region: string;
  /**
   * The signing name: `s3`, `s3express`, `lambda`, `states`, `ecs`, `execute-api`. Only the two of S3 take unsigned bodies,
   * and only `s3` presigned queries.
   */
  readonly service: string;
  /**
   * The body, or its SHA-256 in hex, where it is at hand. Needed for clients that send no
   * `x-amz-content-sha256`; where that header is a hash, the body must then have it.
   */
  readonly body?: Uint8Array | { readonly sha256Hex: string };
  /** Milliseconds since the epoch; default: the system clock. */
  readonly nowMs?: number;
}

/**
 * The signature is good. `payloadHash` is what was signed for the body: `UNSIGNED-PAYLOAD`,
 * a `STREAMING-…` word, or hex; if hex and no body was given, the caller still has to compare.
 */
export interface SigV4Acceptance {
  readonly ok: true;
  readonly payloadHash: string;
  readonly presigned: boolean;
  /** Who signed it. */
  readonly principal: Principal;
  readonly accessKeyId: string;
}

export type SigV4Result = SigV4Acceptance | SigV4Refusal;

const UNSIGNED = 'UNSIGNED-PAYLOAD';
const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
/** As on AWS: S3 allows for clocks that are further off. */
const MAX_SKEW_MS = { s3: 15 * 60 * 1000, others: 5 * 60 * 1000 } as const;

/** Under either name S3 reads paths and bodies alike. */
const isS3 = (service: string): boolean => service === 's3' || service === 's3express';

/**
 * Checks a header-signed or presigned Signature Version 4 by making it anew.
 * Never throws; a malformed request is a refusal.
 */
export function checkSigV4(request: WireRequest, settings: SigV4Settings): SigV4Result {
  const [, rawQuery] = splitUrl(request.url ?? '/');
  const query = parseQuery(rawQuery);
  if (query === undefined)
    return refuse('SignatureDoesNotMatch', 'The query string is not percent-encoded UTF-8.');

  const presigned = query.some(([key]) => key === 'X-Amz-Algorithm');
  const claim = readClaim(request.headers, query, presigned, settings.service);
  if ('ok' in claim) return claim;

  const entry = principalsOf(settings).find(claim.accessKeyId);
  if (entry === undefined) {
    return refuse('InvalidAccessKeyId', 'The AWS access key ID you provided does not exist in our records.');
  }
  const refusal = checkClaim(claim, request.headers, settings);
  if (refusal !== undefined) return refusal;

  const payloadHash = signedPayloadHash(request.headers, query, presigned, settings);
  if (typeof payloadHash !== 'string') return payloadHash;

  const given = Buffer.from(claim.signature, 'hex');
  const expected = signatureOf(request, { claim, entry, settings, query, payloadHash });
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
    return refuse(
      'SignatureDoesNotMatch',
      'The request signature we calculated does not match the signature you provided.',
    );
  }
  // After the signature: who does not hold the secret learns nothing about the token.
  const untrusted = checkToken(entry, request.headers, query, settings.nowMs ?? Date.now());
  return (
    untrusted ?? {
      ok: true,
      payloadHash,
      presigned,
      principal: entry.principal,
      accessKeyId: claim.accessKeyId,
    }
  );
}

function readClaim(
  headers: IncomingHttpHeaders,
  query: readonly QueryPair[],
  presigned: boolean,
  service: string,
): Claim | SigV4Refusal {
  if (!presigned) return readHeaderClaim(headers);
  if (service !== 's3') {
    // Whoever can make a person open an address could else make them send it.
    return refuse('AccessDenied', 'Signatures in the query string are not accepted; sign the headers.');
  }
  if (headers.authorization !== undefined) {
    return refuse('AuthorizationQueryParametersError', 'Only one of query and header may be signed.');
  }
  return readQueryClaim(query);
}

interface Signed {
  readonly claim: Claim;
  readonly entry: KeyEntry;
  readonly settings: SigV4Settings;
  readonly query: readonly QueryPair[];
  readonly payloadHash: string;
}

/** The signature that the request ought to have. */
function signatureOf(request: WireRequest, signed: Signed): Buffer {
  const { claim, entry, settings, query, payloadHash } = signed;
  const [rawPath] = splitUrl(request.url ?? '/');
  const canonicalRequest = [
    request.method ?? 'GET',
    isS3(settings.service) ? rawPath : canonicalPath(rawPath),
    canonicalQuery(query.filter(([key]) => claim.expiresS === undefined || key !== 'X-Amz-Signature')),
    ...claim.signedHeaders.map((name) => `${name}:${canonicalHeader(request.headers[name])}`),
    '',
    claim.signedHeaders.join(';'),
    payloadHash,
  ].join('\n');
  const stringToSign = [ALGORITHM, claim.amzDate, claim.scope, sha256Hex(canonicalRequest)].join('\n');
  const key = cachedKey(entry.credentials, claim);
  return createHmac('sha256', key).update(stringToSign).digest();
}

/** A day's keys of a pair by scope: four hashes less for each request. */
const signingKeys = new WeakMap<Credentials, Map<string, Buffer>>();
/** A pair is used for a few services and a day or two at a time. */
const MAX_CACHED_SCOPES = 64;

function cachedKey(credentials: Credentials, { scope, scopeParts }: Claim): Buffer {
  const known = signingKeys.get(credentials) ?? new Map<string, Buffer>();
  signingKeys.set(credentials, known);
  const found = known.get(scope);
  if (found !== undefined) return found;
  if (known.size >= MAX_CACHED_SCOPES) known.clear();
  const key = signingKey(credentials.secretAccessKey, scopeParts);
  known.set(scope, key);
  return key;
}

/** A token with keys that have none is let through: shells often hold one of other keys. */
function checkToken(
  { credentials, expiresAtMs, tokenHeader = 'x-amz-security-token' }: KeyEntry,
  headers: IncomingHttpHeaders,
  query: readonly QueryPair[],
  nowMs: number,
): SigV4Refusal | undefined {
  if (credentials.sessionToken !== undefined) {
    const inQuery = query.find(([key]) => key === 'X-Amz-Security-Token')?.[1];
    const token = headers[tokenHeader] ?? inQuery;
    if (typeof token !== 'string' || !isSameSecret(token, credentials.sessionToken)) {
      return refuse('InvalidToken', 'The provided token is malformed or otherwise invalid.');
    }
  }
  if (expiresAtMs !== undefined && nowMs >= expiresAtMs) {
    return refuse('ExpiredToken', 'The provided token has expired.');
  }
  return undefined;
}

function checkClaim(
  claim: Claim,
  headers: IncomingHttpHeaders,
  settings: SigV4Settings,
): SigV4Refusal | undefined {
  const scope = [claim.amzDate.slice(0, 8), settings.region, settings.service, 'aws4_request'].join('/');
  if (claim.scope !== scope) {
    return refuse(
      claim.expiresS === undefined ? 'AuthorizationHeaderMalformed' : 'AuthorizationQueryParametersError',
      `The credential scope is ${claim.scope}; expecting ${scope}.`,
    );
  }
  const unsigned = unsignedHeader(claim, headers);
  if (unsigned !== undefined) {
    return refuse('AccessDenied', `The header ${unsigned} was present in the request but not signed.`);
  }
  return checkTime(claim, settings.service, settings.nowMs ?? Date.now());
}

/** As AWS: the host and every x-amz header sent must be signed, or a middleman could change them. */
function unsignedHeader(claim: Claim, headers: IncomingHttpHeaders): string | undefined {
  const signed = new Set(claim.signedHeaders);
  if (!signed.has('host')) return 'host';
  return Object.keys(headers).find(
    (name) =>
      name.startsWith('x-amz-') &&
      !signed.has(name) &&
      !(name === 'x-amz-content-sha256' && claim.expiresS !== undefined),
  );
}

function checkTime(claim: Claim, service: string, nowMs: number): SigV4Refusal | undefined {
  const maxSkewMs = isS3(service) ? MAX_SKEW_MS.s3 : MAX_SKEW_MS.others;
  const signedMs = Date.parse(
    claim.amzDate.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'),
  );
  if (Number.isNaN(signedMs)) return refuse('AccessDenied', 'X-Amz-Date is not a date.');
  if (claim.expiresS !== undefined) {
    if (signedMs - nowMs > maxSkewMs) return refuse('AccessDenied', 'Request is not valid yet');
    if (nowMs > signedMs + claim.expiresS * 1000) return refuse('AccessDenied', 'Request has expired');
    return undefined;
  }
  return Math.abs(nowMs - signedMs) > maxSkewMs
    ? refuse(
        'RequestTimeTooSkewed',
        'The difference between the request time and the current time is too large.',
      )
    : undefined;
}

function signedPayloadHash(
  headers: IncomingHttpHeaders,
  query: readonly QueryPair[],
  presigned: boolean,
  settings: SigV4Settings,
): string | SigV4Refusal {
  const header = headers['x-amz-content-sha256'];
  const inQuery = query.find(([key]) => key === 'X-Amz-Content-Sha256')?.[1];
  const declared = inQuery ?? (typeof header === 'string' ? header : undefined);
  const actual =
    settings.body === undefined
      ? undefined
      : settings.body instanceof Uint8Array
        ? sha256Hex(settings.body)
        : settings.body.sha256Hex;
  if (declared === undefined) {
    if (presigned && settings.service === 's3') return UNSIGNED;
    return actual ?? EMPTY_SHA256;
  }
  const isHash = /^[0-9a-f]{64}$/.test(declared);
  if (!isHash && !isS3(settings.service)) {
    return refuse(
      'XAmzContentSHA256Mismatch',
      'The body must be signed: x-amz-content-sha256 must be its hash.',
    );
  }
  if (isHash && actual !== undefined && actual !== declared) {
    return refuse(
      'XAmzContentSHA256Mismatch',
      "The provided 'x-amz-content-sha256' header does not match what was computed.",
    );
  }
  return declared;
}
