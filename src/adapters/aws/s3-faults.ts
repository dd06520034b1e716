import {
  InvalidInputError,
  NotFoundError,
  STORAGE_FULL,
  StoreRefusedError,
  StoreUnavailableError,
} from '../../contracts/errors.ts';
import { type ObjectRef, uriOf } from '../../contracts/keys.ts';
import { archived } from './archives.ts';
import { denialOf, missingOrDenied } from './denials.ts';
import { faultOf, keptWords, refusalOf } from './faults.ts';

const callersFaults = new Set(['EntityTooSmall', 'InvalidPart', 'InvalidPartOrder', 'KeyTooLongError']);

/** What each operation is called in policies. A listing is asked of the bucket. */
const actionOf = new Map([
  ['list', 's3:ListBucket'],
  ['list uploads', 's3:ListBucketMultipartUploads'],
  ['head', 's3:GetObject'],
  ['write', 's3:PutObject'],
  ['copy', 's3:PutObject'],
  ['begin upload', 's3:PutObject'],
  ['upload part', 's3:PutObject'],
  ['complete upload', 's3:PutObject'],
  ['abort upload', 's3:AbortMultipartUpload'],
  ['remove', 's3:DeleteObject'],
]);

const otherRegion = new Set(['PermanentRedirect', 'IllegalLocationConstraintException']);

/** The region that S3 names for a bucket, in an answer to a request that was made in another. */
function regionIn(cause: unknown): string | undefined {
  if (typeof cause !== 'object' || cause === null) return undefined;
  const { $response, Region } = cause as {
    readonly $response?: { readonly headers?: Readonly<Record<string, unknown>> };
    readonly Region?: unknown;
  };
  const named = $response?.headers?.['x-amz-bucket-region'] ?? Region;
  return typeof named === 'string' && /^[a-z0-9-]{1,32}$/.test(named) ? named : undefined;
}

/** The error of ours where a bucket lies in another region than its user works in; undefined where it is not that. */
export function elsewhere(cause: unknown, { bucket }: Pick<ObjectRef, 'bucket'>): Error | undefined {
  const { name, status } = faultOf(cause);
  const region = regionIn(cause);
  // A key that is none gets the same name of a fault, with no region.
  const isOfHeader = name === 'AuthorizationHeaderMalformed' && region !== undefined;
  if (status !== 301 && !otherRegion.has(name) && !isOfHeader) return undefined;
  const where = region === undefined ? 'in another region than' : `in ${region}, which is not the region of`;
  return new InvalidInputError(
    `the bucket ${bucket} lies ${where} this deployment: what a job reads and writes must lie in the deployment's own`,
    { bucket, fault: name },
    { cause },
  );
}

/** The error of ours where S3 refuses an operation for what it asks; undefined where the fault may pass. */
export function refused(operation: string, ref: ObjectRef, cause: unknown): Error | undefined {
  const fault = faultOf(cause);
  const words = refusalOf(fault);
  if (words === undefined) return undefined;
  const { name, status } = fault;
  // In the message and not in the details: it is all that a failed job is told.
  return new StoreRefusedError(
    `${operation} was refused by S3 for ${uriOf(ref)}: ${words}`,
    { uri: uriOf(ref), fault: name, status },
    { cause },
  );
}

/** The error of ours for what S3, or the way to it, answered to an operation, as `actionOf` names them. */
export function translate(operation: string, ref: ObjectRef, cause: unknown): Error {
  const denial = denialOf(cause, {
    action: actionOf.get(operation) ?? 's3:*',
    resource: uriOf(ref),
    ...(operation === 'head' ? { hint: missingOrDenied } : {}),
  });
  if (denial !== undefined) return denial;
  const known = archived(cause, ref) ?? elsewhere(cause, ref);
  if (known !== undefined) return known;
  const { name, message, status } = faultOf(cause);
  const details = { uri: uriOf(ref), fault: name, status };
  if (status === 404)
    return new NotFoundError(`${operation}: no such object, upload or bucket`, details, { cause });
  if (callersFaults.has(name)) return new InvalidInputError(`${operation}: ${name}`, details, { cause });
  // Only the user can mend it, and the message is all that a failed job is told.
  const words = name === STORAGE_FULL ? `: ${keptWords(message)}` : '';
  return (
    refused(operation, ref, cause) ??
    new StoreUnavailableError(`${operation} in S3 failed${words}`, details, { cause })
  );
}
