import { InvalidInputError, NotFoundError, StoreUnavailableError } from '../../contracts/errors.ts';
import { type ObjectRef, uriOf } from '../../contracts/keys.ts';
import { denialOf, missingOrDenied } from './denials.ts';
import { faultOf } from './faults.ts';

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

/** The error of ours for what S3, or the way to it, answered to an operation, as `actionOf` names them. */
export function translate(operation: string, ref: ObjectRef, cause: unknown): Error {
  const denial = denialOf(cause, {
    action: actionOf.get(operation) ?? 's3:*',
    resource: uriOf(ref),
    ...(operation === 'head' ? { hint: missingOrDenied } : {}),
  });
  if (denial !== undefined) return denial;
  const { name, status } = faultOf(cause);
  const details = { uri: uriOf(ref), fault: name, status };
  if (status === 404)
    return new NotFoundError(`${operation}: no such object, upload or bucket`, details, { cause });
  if (callersFaults.has(name)) return new InvalidInputError(`${operation}: ${name}`, details, { cause });
  return new StoreUnavailableError(`${operation} in S3 failed`, details, { cause });
}
