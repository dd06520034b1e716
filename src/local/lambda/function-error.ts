import { describeExit } from './logged-process.ts';
import type { ProcessExit } from './logged-process.ts';

/** The body of a failed invocation, as callers of AWS Lambda receive it. */
export interface FunctionErrorBody {
  readonly errorType: string;
  readonly errorMessage: string;
  readonly trace?: readonly string[];
}

/** Serializes an error body. */
export function encodeFunctionError(body: FunctionErrorBody): Buffer {
  return Buffer.from(JSON.stringify(body));
}

/** The process ended before it answered. */
export function exitError(requestId: string, exit: ProcessExit): FunctionErrorBody {
  const how =
    exit.code === 0 ? 'exited without providing a reason' : `exited with error: ${describeExit(exit)}`;
  return { errorType: 'Runtime.ExitError', errorMessage: `RequestId: ${requestId} Error: Runtime ${how}` };
}

/** The process needed more memory than the function has. */
export function outOfMemoryError(requestId: string): FunctionErrorBody {
  return {
    errorType: 'Runtime.OutOfMemory',
    errorMessage: `RequestId: ${requestId} Error: Runtime exited with error: signal: killed`,
  };
}

/** The process was taken away with all that it ran in. */
export function lostError(requestId: string): FunctionErrorBody {
  return {
    errorType: 'Sandbox.Failure',
    errorMessage: `RequestId: ${requestId} Error: The sandbox was lost`,
  };
}

/** The function did not answer within its timeout. */
export function timeoutError(requestId: string, timeoutMs: number): FunctionErrorBody {
  return {
    errorType: 'Sandbox.Timedout',
    errorMessage: `RequestId: ${requestId} Error: Task timed out after ${(timeoutMs / 1000).toFixed(2)} seconds`,
  };
}

/** The answer is larger than a caller may receive. */
export function responseTooLargeError(limitBytes: number): FunctionErrorBody {
  return {
    errorType: 'Function.ResponseSizeTooLarge',
    errorMessage: `Response payload size exceeded maximum allowed payload size (${String(limitBytes)} bytes).`,
  };
}
