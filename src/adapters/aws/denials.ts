import { AccessDeniedError } from '../../contracts/errors.ts';
import { type Fault, faultOf } from './faults.ts';

/** What was asked for, as policies call it: `s3:GetObject` on `s3://bucket/key`. */
export interface Asked {
  readonly action: string;
  readonly resource: string;
  /** What else a denial may mean, for the message. */
  readonly hint?: string;
}

/** Credentials that ran out, or a clock that is off: others are had with the next try. */
const passing =
  /^(Expired\w*|Request(TimeTooSkewed|Expired|Timeout)\w*|TokenRefreshRequired|Throttl\w*|\w*Throttling\w*|SlowDown)$/i;
const passingMessage =
  /signature (has )?expired|signature not yet current|token (included in the request )?(is|has) expired|request has expired/i;
const denied =
  /^(AccessDenied\w*|\w*AccessDenied(Exception)?|Forbidden|403|AllAccessDisabled|AccountProblem|NotAuthorized\w*|UnauthorizedOperation|InvalidAccessKeyId|SignatureDoesNotMatch|UnrecognizedClientException|InvalidClientTokenId|InvalidSignatureException|IncompleteSignature\w*|OptInRequired)$/;
/** KMS under its own name, under S3's ("KMS.DisabledException") and under Lambda's and Step Functions'. */
const deniedByKms =
  /^(KMS\.?|Kms)(AccessDenied|Disabled|InvalidState|KMSInvalidState|InvalidKeyUsage|NotFound|KeyUnavailable)(Exception)?$/;

/** What S3 answers by 403 to whoever reads an object that is archived, whatever rights there are. */
export const archivedFault = 'InvalidObjectState';

/** Whether a fault says that a right or a key is missing: the same call fails alike until somebody grants it. */
export function isDenial({ name, message, status }: Fault): boolean {
  if (name === archivedFault) return false;
  if (passing.test(name) || passingMessage.test(message)) return false;
  return denied.test(name) || deniedByKms.test(name) || status === 403 || status === 401;
}

/** As `isDenial`, of the code that a part of an answer carries. */
export const isDenialCode = (name: string): boolean => isDenial({ name, message: '', status: 200 });

/** What S3 may mean by 403 for an object. */
export const missingOrDenied =
  'S3 answers so too for an object that is not there, where s3:ListBucket on its bucket is not granted';

const longestWhy = 300;

/**
 * The error of a call that was denied, undefined where the fault is another. Names action and resource as the service
 * has them, where its answer says, and else those that were asked for; and the KMS key that it names.
 */
export function denialOf(cause: unknown, asked: Asked): AccessDeniedError | undefined {
  const fault = faultOf(cause);
  if (!isDenial(fault)) return undefined;
  const said = /not authorized to perform:? ([a-z0-9-]+:[A-Za-z*]+)/.exec(fault.message)?.[1];
  const on = /on resource:? "?([^\s"]+)"?/.exec(fault.message)?.[1];
  const key = /arn:aws[a-z-]*:kms:[^\s"',)]+/.exec(fault.message)?.[0];
  const isKms = said?.startsWith('kms:') === true || deniedByKms.test(fault.name);
  const action = said ?? asked.action;
  const parts = [
    `access denied: ${action} on ${isKms ? asked.resource : (on ?? asked.resource)}`,
    ...(isKms && said === undefined ? [', by the state of its KMS key'] : []),
    ...(isKms || key !== undefined ? [`, KMS key ${key ?? on ?? 'not named'}`] : []),
    ...(isKms || asked.hint === undefined ? [] : [` (${asked.hint})`]),
    `: ${fault.name} ${fault.message}`.trimEnd().slice(0, longestWhy),
  ];
  return new AccessDeniedError(
    parts.join('').toWellFormed(),
    { action, resource: asked.resource, ...(key === undefined ? {} : { kmsKey: key }), fault: fault.name },
    { cause },
  );
}
