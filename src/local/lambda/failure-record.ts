import type { Invocation } from './environment.ts';

/** How an asynchronous event came to nothing. */
export interface FailedEvent {
  /** What the function answered last; absent where it never ran. */
  readonly payload?: Buffer;
  readonly condition: 'RetriesExhausted' | 'EventAgeExceeded';
  /** How often the function was called. */
  readonly invokeCount: number;
}

/** The record that Lambda sends to the on-failure destination of an asynchronous invocation, as JSON. */
export function failureRecord(
  { requestId, functionArn, payload: request }: Invocation,
  { payload, condition, invokeCount }: FailedEvent,
): string {
  const response =
    payload === undefined
      ? {}
      : {
          responseContext: { statusCode: 200, executedVersion: '$LATEST', functionError: 'Unhandled' },
          responsePayload: JSON.parse(payload.toString('utf8')) as unknown,
        };
  return JSON.stringify({
    version: '1.0',
    timestamp: new Date().toISOString(),
    requestContext: {
      requestId,
      functionArn: /:function:[^:]+$/.test(functionArn) ? `${functionArn}:$LATEST` : functionArn,
      condition,
      approximateInvokeCount: invokeCount,
    },
    requestPayload: JSON.parse(request.toString('utf8')) as unknown,
    ...response,
  });
}
