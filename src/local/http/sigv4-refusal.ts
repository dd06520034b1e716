/** Why a request is refused, as S3 names it. */
export type SigV4ErrorCode =
  | 'AccessDenied'
  | 'AuthorizationHeaderMalformed'
  | 'AuthorizationQueryParametersError'
  | 'ExpiredToken'
  | 'InvalidAccessKeyId'
  | 'InvalidToken'
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

const JSON_CODES: Readonly<Record<SigV4ErrorCode, string>> = {
  AccessDenied: 'AccessDeniedException',
  AuthorizationHeaderMalformed: 'IncompleteSignatureException',
  AuthorizationQueryParametersError: 'IncompleteSignatureException',
  ExpiredToken: 'ExpiredTokenException',
  InvalidAccessKeyId: 'UnrecognizedClientException',
  InvalidToken: 'UnrecognizedClientException',
  RequestTimeTooSkewed: 'InvalidSignatureException',
  SignatureDoesNotMatch: 'InvalidSignatureException',
  XAmzContentSHA256Mismatch: 'InvalidSignatureException',
};

const BAD_REQUESTS: ReadonlySet<SigV4ErrorCode> = new Set([
  'AuthorizationHeaderMalformed',
  'AuthorizationQueryParametersError',
  'ExpiredToken',
  'InvalidToken',
  'XAmzContentSHA256Mismatch',
]);

/** A refusal by its code. */
export function refuse(code: SigV4ErrorCode, message: string, jsonCode = JSON_CODES[code]): SigV4Refusal {
  return { ok: false, status: BAD_REQUESTS.has(code) ? 400 : 403, code, jsonCode, message };
}
