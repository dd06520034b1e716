import type { Refusal } from './model.ts';

/** No function, or no version or alias, of that ARN. */
export function notFound(functionArn: string): Refusal {
  return { status: 404, code: 'ResourceNotFoundException', message: `Function not found: ${functionArn}` };
}

/** No room for another invocation; `reason` says whose limit it was. */
export function throttled(
  reason: 'ReservedFunctionConcurrentInvocationLimitExceeded' | 'ConcurrentInvocationLimitExceeded',
): Refusal {
  return { status: 429, code: 'TooManyRequestsException', message: 'Rate Exceeded.', reason };
}

/** The queue of asynchronous events is full. */
export function queueFull(): Refusal {
  return {
    status: 429,
    code: 'TooManyRequestsException',
    message: 'Rate Exceeded.',
    reason: 'FunctionInvocationRateLimitExceeded',
  };
}

/** The payload is larger than `limitBytes`. */
export function requestTooLarge(limitBytes: number): Refusal {
  return {
    status: 413,
    code: 'RequestTooLargeException',
    message: `Request must be smaller than ${String(limitBytes)} bytes for the InvokeFunction operation`,
  };
}

/** The payload is not JSON. */
export function badPayload(cause: unknown): Refusal {
  const why = cause instanceof Error ? cause.message : String(cause);
  return {
    status: 400,
    code: 'InvalidRequestContentException',
    message: `Could not parse request body into json: ${why}`,
  };
}

/** A parameter has a value that the service does not know. */
export function badParameter(message: string): Refusal {
  return { status: 400, code: 'InvalidParameterValueException', message };
}

/**
 * The tenant that an invocation must name, or must not name. Names are what Lambda takes: up to 256 letters, digits,
 * spaces and `._:/=+-@`.
 */
export function tenantRefusal(isPerTenant: boolean, tenantId: string | undefined): Refusal | undefined {
  if (!isPerTenant && tenantId !== undefined) {
    return badParameter(
      'The invoked function is not enabled with tenancy configuration, but a tenant ID is given.',
    );
  }
  if (!isPerTenant) return undefined;
  if (tenantId === undefined) {
    return badParameter('The invoked function is enabled with tenancy configuration: add a valid tenant ID.');
  }
  return /^[A-Za-z0-9._:/=+\-@ ]{1,256}$/.test(tenantId)
    ? undefined
    : badParameter('The tenant ID is not valid.');
}

/** The server is closing. */
export function closing(): Refusal {
  return { status: 503, code: 'ServiceException', message: 'The service is shutting down.' };
}
