import {
  BrokenInvariantError,
  type ErrorDetails,
  InvalidInputError,
  type OutriderError,
  StoreUnavailableError,
} from '../../contracts/errors.ts';

/** What of an SDK error decides how it is handled. `status` is undefined where no answer came. */
export interface Fault {
  readonly name: string;
  readonly message: string;
  readonly status: number | undefined;
}

/** Reads an SDK error by its shape: classes of two copies of the SDK are not `instanceof` each other. */
export function faultOf(cause: unknown): Fault {
  if (!(cause instanceof Error)) return { name: 'Unknown', message: String(cause), status: undefined };
  return { name: cause.name, message: cause.message, status: statusOf(cause) };
}

function statusOf(cause: Error): number | undefined {
  if (!('$metadata' in cause) || typeof cause.$metadata !== 'object' || cause.$metadata === null)
    return undefined;
  const metadata = cause.$metadata;
  return 'httpStatusCode' in metadata && typeof metadata.httpStatusCode === 'number'
    ? metadata.httpStatusCode
    : undefined;
}

/** Whether a service has answered that it is asked for too much. */
export const isThrottling = ({ name, status }: Fault): boolean =>
  status !== undefined &&
  (status === 429 ||
    /Throttl|TooManyRequests|RequestLimit|ThroughputExceeded|LimitExceeded|SlowDown/i.test(name));

/** Whether the same call may work later: no answer, throttled, or the service's own fault. */
export function isPassing(fault: Fault): boolean {
  const { name, status } = fault;
  return status === undefined || status >= 500 || isThrottling(fault) || /Timeout/i.test(name);
}

/** Statuses and names of faults of the way or the moment: the same request may well be served the next time. */
const passingStatuses: ReadonlySet<number> = new Set([408, 409, 425]);
const passingNames =
  /^(BadDigest|IncompleteBody|XAmzContentSHA256Mismatch|OperationAborted|Expired\w*|RequestExpired|RequestTimeTooSkewed|TokenRefreshRequired)$/;
/** How much of a service's words is kept. */
const mostWords = 300;
export const keptWords = (text: string): string => text.slice(0, mostWords).toWellFormed();

/**
 * What a service says that refuses a request for what it asks, "InvalidRequest: …"; undefined where the fault passes, and
 * where the answer says nothing but its status, as that to a head.
 */
export function refusalOf(fault: Fault): string | undefined {
  const { name, message, status = 0 } = fault;
  if (status < 400 || passingStatuses.has(status) || isPassing(fault) || passingNames.test(name))
    return undefined;
  if (/^(\d*|Unknown\w*)$/.test(name)) return undefined;
  return keptWords(`${name}: ${message}`);
}

/**
 * The one translation of DynamoDB's errors: too large an item is the caller's, a malformed request is our bug,
 * and everything else (also a table that is missing) may be mended, so it is a passing fault.
 */
export function translateDynamoFault(
  cause: unknown,
  operation: string,
  details: ErrorDetails,
): OutriderError {
  const { name, message } = faultOf(cause);
  if (name !== 'ValidationException') {
    return new StoreUnavailableError(`${operation} failed`, { ...details, fault: name }, { cause });
  }
  if (/size/i.test(message)) {
    return new InvalidInputError('a record is larger than the store takes (400 KB)', details, { cause });
  }
  return new BrokenInvariantError(`${operation} was malformed`, { ...details, message }, { cause });
}
