import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** The one key pair that the embedded services accept. A session token, if any, is ignored. */
export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** A request as it came over the wire: `url` undecoded, header names in lower case. */
export interface WireRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

/** Whom and what a signature must be made for. */
export interface SigV4Settings {
  readonly credentials: Credentials;
  readonly region: string;
  /** The signing name: `s3`, `lambda`, `states`, `ecs`, `execute-api`. */
  readonly service: string;
  /**
   * The body, or its SHA-256 in hex, where it is at hand. Needed for clients that send no
   * `x-amz-content-sha256`; where that header is a hash, the body must then have it.
   */
  readonly body?: Uint8Array | { readonly sha256Hex: string };
  /** Milliseconds since the epoch; default: the system clock. */
  readonly nowMs?: number;
}

/** Why a request is refused, as S3 names it. */
export type SigV4ErrorCode =
  | 'AccessDenied'
  | 'AuthorizationHeaderMalformed'
  | 'AuthorizationQueryParametersError'
  | 'InvalidAccessKeyId'
  | 'RequestTimeTooSkewed'
  | 'SignatureDoesNotMatch'
  | 'XAmzContentSHA256Mismatch';

/** A refusal: `code` is S3's word for it, `jsonCode` the word of the services that speak JSON. */
export interface SigV4Refusal {
  readonly ok: false;
  readonly status: 400 | 403;
  readonly code: SigV4ErrorCode;
  readonly jsonCode: string;
  readonly message: string;
}

/**
 * The signature is good. `payloadHash` is what was signed for the body: `UNSIGNED-PAYLOAD`,
 * a `STREAMING-…` word, or hex; if hex and no body was given, the caller still has to compare.
 */
export interface SigV4Acceptance {
  readonly ok: true;
  readonly payloadHash: string;
  readonly presigned: boolean;
}

export type SigV4Result = SigV4Acceptance | SigV4Refusal;

const ALGORITHM = 'AWS4-HMAC-SHA256';
const UNSIGNED = 'UNSIGNED-PAYLOAD';
const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const MAX_SKEW_MS = 15 * 60 * 1000;
const MAX_EXPIRES_S = 7 * 24 * 60 * 60;

type QueryPair = readonly [key: string, value: string];

/** A signature's parts, wherever in the request they stood. */
interface Claim {
  readonly accessKeyId: string;
  readonly scope: string;
  readonly scopeParts: readonly string[];
  readonly signedHeaders: readonly string[];
  readonly signature: string;
  readonly amzDate: string;
  readonly expiresS: number | undefined;
}

/**
 * Checks a header-signed or presigned Signature Version 4 by making it anew.
 * Never throws; a malformed request is a refusal.
 */
export function checkSigV4(request: WireRequest, settings: SigV4Settings): SigV4Result {
  const [rawPath, rawQuery] = splitUrl(request.url ?? '/');
  const query = parseQuery(rawQuery);
  if (query === undefined)
    return refuse('SignatureDoesNotMatch', 'The query string is not percent-encoded UTF-8.');

  const presigned = query.some(([key]) => key === 'X-Amz-Algorithm');
  const claim = presigned ? readQueryClaim(query) : readHeaderClaim(request.headers);
  if ('ok' in claim) return claim;

  const refusal = checkClaim(claim, request.headers, settings);
  if (refusal !== undefined) return refusal;

  const payloadHash = signedPayloadHash(request.headers, query, presigned, settings);
  if (typeof payloadHash !== 'string') return payloadHash;

  const signedQuery = presigned ? query.filter(([key]) => key !== 'X-Amz-Signature') : query;
  const canonicalRequest = [
    request.method ?? 'GET',
    settings.service === 's3' ? rawPath : canonicalPath(rawPath),
    canonicalQuery(signedQuery),
    ...claim.signedHeaders.map((name) => `${name}:${canonicalHeader(request.headers[name])}`),
    '',
    claim.signedHeaders.join(';'),
    payloadHash,
  ].join('\n');
  const stringToSign = [ALGORITHM, claim.amzDate, claim.scope, sha256Hex(canonicalRequest)].join('\n');
  const key = signingKey(settings.credentials.secretAccessKey, claim.scopeParts);
  const expected = createHmac('sha256', key).update(stringToSign).digest();
  const given = Buffer.from(claim.signature, 'hex');
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
    return refuse(
      'SignatureDoesNotMatch',
      'The request signature we calculated does not match the signature you provided.',
    );
  }
  return { ok: true, payloadHash, presigned };
}

/** The pairs of a raw query string, decoded, in order; `undefined` if an escape is not UTF-8. */
export function parseQuery(rawQuery: string): QueryPair[] | undefined {
  try {
    return rawQuery
      .split('&')
      .filter((part) => part !== '')
      .map((part) => {
        const at = part.indexOf('=');
        return at < 0
          ? ([decodeURIComponent(part), ''] as const)
          : ([decodeURIComponent(part.slice(0, at)), decodeURIComponent(part.slice(at + 1))] as const);
      });
  } catch {
    return undefined;
  }
}

/** Path and query string of a request target, both still encoded. */
export function splitUrl(url: string): readonly [path: string, query: string] {
  const at = url.indexOf('?');
  return at < 0 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)];
}

/** Percent-encodes everything but the characters that RFC 3986 leaves unreserved. */
export function encodeRfc3986(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function readHeaderClaim(headers: IncomingHttpHeaders): Claim | SigV4Refusal {
  const authorization = headers.authorization;
  if (authorization === undefined)
    return refuse('AccessDenied', 'Access Denied', 'MissingAuthenticationTokenException');
  if (!authorization.startsWith(`${ALGORITHM} `)) {
    return refuse('AuthorizationHeaderMalformed', `Only ${ALGORITHM} is supported.`);
  }
  const fields = new Map<string, string>();
  for (const field of authorization.slice(ALGORITHM.length + 1).split(',')) {
    const at = field.indexOf('=');
    if (at > 0) fields.set(field.slice(0, at).trim(), field.slice(at + 1).trim());
  }
  const amzDate = headers['x-amz-date'];
  return (
    assembleClaim({
      credential: fields.get('Credential'),
      signedHeaders: fields.get('SignedHeaders'),
      signature: fields.get('Signature'),
      amzDate: typeof amzDate === 'string' ? amzDate : undefined,
      expiresS: undefined,
    }) ?? refuse('AuthorizationHeaderMalformed', 'The authorization header is malformed.')
  );
}

function readQueryClaim(query: readonly QueryPair[]): Claim | SigV4Refusal {
  const fields = new Map(query);
  const malformed = (message: string): SigV4Refusal => refuse('AuthorizationQueryParametersError', message);
  if (fields.get('X-Amz-Algorithm') !== ALGORITHM) return malformed(`Only ${ALGORITHM} is supported.`);
  const expiresS = Number(fields.get('X-Amz-Expires'));
  if (!Number.isInteger(expiresS) || expiresS < 0 || expiresS > MAX_EXPIRES_S) {
    return malformed('X-Amz-Expires must be a number of seconds of at most a week.');
  }
  return (
    assembleClaim({
      credential: fields.get('X-Amz-Credential'),
      signedHeaders: fields.get('X-Amz-SignedHeaders'),
      signature: fields.get('X-Amz-Signature'),
      amzDate: fields.get('X-Amz-Date'),
      expiresS,
    }) ?? malformed('Query-string authentication requires all of its X-Amz parameters.')
  );
}

interface ClaimFields {
  readonly credential: string | undefined;
  readonly signedHeaders: string | undefined;
  readonly signature: string | undefined;
  readonly amzDate: string | undefined;
  readonly expiresS: number | undefined;
}

function assembleClaim(fields: ClaimFields): Claim | undefined {
  const { credential, signedHeaders, signature, amzDate } = fields;
  if (
    credential === undefined ||
    signedHeaders === undefined ||
    signature === undefined ||
    amzDate === undefined
  ) {
    return undefined;
  }
  // An access key id may itself hold slashes; the scope is always the last four parts.
  const parts = credential.split('/');
  const scopeParts = parts.slice(-4);
  if (parts.length < 5 || !/^\d{8}T\d{6}Z$/.test(amzDate)) return undefined;
  return {
    accessKeyId: parts.slice(0, -4).join('/'),
    scope: scopeParts.join('/'),
    scopeParts,
    signedHeaders: signedHeaders.toLowerCase().split(';'),
    signature,
    amzDate,
    expiresS: fields.expiresS,
  };
}

function checkClaim(
  claim: Claim,
  headers: IncomingHttpHeaders,
  settings: SigV4Settings,
): SigV4Refusal | undefined {
  if (claim.accessKeyId !== settings.credentials.accessKeyId) {
    return refuse('InvalidAccessKeyId', 'The AWS access key ID you provided does not exist in our records.');
  }
  const scope = [claim.amzDate.slice(0, 8), settings.region, settings.service, 'aws4_request'].join('/');
  if (claim.scope !== scope) {
    return refuse(
      claim.expiresS === undefined ? 'AuthorizationHeaderMalformed' : 'AuthorizationQueryParametersError',
      `The credential scope is ${claim.scope}; expecting ${scope}.`,
    );
  }
  const unsigned = unsignedHeader(claim, headers, settings.service);
  if (unsigned !== undefined) {
    return refuse('AccessDenied', `The header ${unsigned} was present in the request but not signed.`);
  }
  return checkTime(claim, settings.nowMs ?? Date.now());
}

/** As S3: the host and every x-amz header sent must be signed, or a middleman could change them. */
function unsignedHeader(claim: Claim, headers: IncomingHttpHeaders, service: string): string | undefined {
  const signed = new Set(claim.signedHeaders);
  if (!signed.has('host')) return 'host';
  if (service !== 's3') return undefined;
  return Object.keys(headers).find(
    (name) =>
      name.startsWith('x-amz-') &&
      !signed.has(name) &&
      !(name === 'x-amz-content-sha256' && claim.expiresS !== undefined),
  );
}

function checkTime(claim: Claim, nowMs: number): SigV4Refusal | undefined {
  const signedMs = Date.parse(
    claim.amzDate.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'),
  );
  if (Number.isNaN(signedMs)) return refuse('AccessDenied', 'X-Amz-Date is not a date.');
  if (claim.expiresS !== undefined) {
    if (signedMs - nowMs > MAX_SKEW_MS) return refuse('AccessDenied', 'Request is not valid yet');
    if (nowMs > signedMs + claim.expiresS * 1000) return refuse('AccessDenied', 'Request has expired');
    return undefined;
  }
  return Math.abs(nowMs - signedMs) > MAX_SKEW_MS
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
  if (isHash && actual !== undefined && actual !== declared) {
    return refuse(
      'XAmzContentSHA256Mismatch',
      "The provided 'x-amz-content-sha256' header does not match what was computed.",
    );
  }
  return declared;
}

/** S3 signs the path as sent; all others sign it normalised and encoded once more. */
function canonicalPath(rawPath: string): string {
  const segments: string[] = [];
  for (const segment of rawPath.split('/')) {
    if (segment === '' || segment === '.') continue;
    if (segment === '..') segments.pop();
    else segments.push(encodeRfc3986(segment));
  }
  const trailing = segments.length > 0 && rawPath.endsWith('/') ? '/' : '';
  return `/${segments.join('/')}${trailing}`;
}

function canonicalQuery(query: readonly QueryPair[]): string {
  return query
    .map(([key, value]) => [encodeRfc3986(key), encodeRfc3986(value)] as const)
    .sort(([keyA, valueA], [keyB, valueB]) => compareText(keyA, keyB) || compareText(valueA, valueB))
    .map(([key, value]) => `${key}=${value}`)
    .join('&');
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function canonicalHeader(value: string | readonly string[] | undefined): string {
  const text = typeof value === 'string' ? value : (value ?? []).join(',');
  return text.trim().replace(/\s+/g, ' ');
}

function sha256Hex(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

function signingKey(secretAccessKey: string, scopeParts: readonly string[]): Buffer {
  let key: Buffer = Buffer.from(`AWS4${secretAccessKey}`);
  for (const part of scopeParts) key = createHmac('sha256', key).update(part).digest();
  return key;
}

const JSON_CODES: Readonly<Record<SigV4ErrorCode, string>> = {
  AccessDenied: 'AccessDeniedException',
  AuthorizationHeaderMalformed: 'IncompleteSignatureException',
  AuthorizationQueryParametersError: 'IncompleteSignatureException',
  InvalidAccessKeyId: 'UnrecognizedClientException',
  RequestTimeTooSkewed: 'InvalidSignatureException',
  SignatureDoesNotMatch: 'InvalidSignatureException',
  XAmzContentSHA256Mismatch: 'InvalidSignatureException',
};

const BAD_REQUESTS: ReadonlySet<SigV4ErrorCode> = new Set([
  'AuthorizationHeaderMalformed',
  'AuthorizationQueryParametersError',
  'XAmzContentSHA256Mismatch',
]);

function refuse(code: SigV4ErrorCode, message: string, jsonCode = JSON_CODES[code]): SigV4Refusal {
  return { ok: false, status: BAD_REQUESTS.has(code) ? 400 : 403, code, jsonCode, message };
}
