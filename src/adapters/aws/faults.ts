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

/** Whether the same call may work later: no answer, throttled, or the service's own fault. */
export function isPassing({ name, status }: Fault): boolean {
  if (status === undefined || status === 429 || status >= 500) return true;
  return /Throttl|TooManyRequests|RequestLimit|ThroughputExceeded|LimitExceeded|Timeout|SlowDown/i.test(name);
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
