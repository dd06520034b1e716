import type { IncomingHttpHeaders } from 'node:http';
import type { QueryPair } from './canonical-request.ts';
import { refuse, type SigV4Refusal } from './sigv4-refusal.ts';

/** The one algorithm that is taken. */
export const ALGORITHM = 'AWS4-HMAC-SHA256';
const MAX_EXPIRES_S = 7 * 24 * 60 * 60;

/** A signature's parts, wherever in the request they stood. */
export interface Claim {
  readonly accessKeyId: string;
  readonly scope: string;
  readonly scopeParts: readonly string[];
  readonly signedHeaders: readonly string[];
  readonly signature: string;
  readonly amzDate: string;
  readonly expiresS: number | undefined;
}

/** The claim of an `Authorization` header, or why it is none. */
export function readHeaderClaim(headers: IncomingHttpHeaders): Claim | SigV4Refusal {
  const authorization = headers.authorization;
  if (authorization === undefined)
    return refuse('AccessDenied', 'Access Denied', 'MissingAuthenticationTokenException');
  if (!authorization.startsWith(`${ALGORITHM} `)) {
    return refuse('AuthorizationHeaderMalformed', `Only ${ALGORITHM} is supported.`);
  }
  const fields = new Map<string, string>();
  for (const field of authorization.slice(ALGORITHM.length + 1).split(',')) {
    const at = field.indexOf('=');
    const name = field.slice(0, at).trim();
    if (at <= 0 || fields.has(name)) {
      return refuse('AuthorizationHeaderMalformed', 'The authorization header is malformed.');
    }
    fields.set(name, field.slice(at + 1).trim());
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

/** The claim of a presigned query, or why it is none. */
export function readQueryClaim(query: readonly QueryPair[]): Claim | SigV4Refusal {
  const fields = new Map(query);
  const malformed = (message: string): SigV4Refusal => refuse('AuthorizationQueryParametersError', message);
  const signing = query.filter(([key]) => key.startsWith('X-Amz-'));
  if (new Set(signing.map(([key]) => key)).size < signing.length) {
    return malformed('Each X-Amz parameter may be given once.');
  }
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
  if (!/^[0-9a-f]{64}$/.test(signature)) return undefined;
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
