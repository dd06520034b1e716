import type { Failure } from './history.ts';

/** An error as the interpreter matches it: by `name`; its message becomes the Cause. */
export class TaskFailure extends Error {
  /** Read by the interpreter: a terminal failure passes Retry and Catch by. */
  readonly isRetryable: boolean;
  readonly isCatchable: boolean;

  constructor(failure: Required<Failure>, isTerminal: boolean) {
    super(failure.cause);
    this.name = failure.error;
    this.isRetryable = !isTerminal;
    this.isCatchable = !isTerminal;
  }
}

/** Ends the interpreter's part in an execution that is over. */
export class ExecutionOverFailure extends TaskFailure {
  constructor() {
    super({ error: 'States.Runtime', cause: 'the execution has ended' }, true);
  }
}

/** A function's own error has a JSON document as its Cause; that of the service is plain text. */
export function lambdaFailure(thrown: unknown): Required<Failure> {
  if (!(thrown instanceof Error)) return { error: 'Lambda.Unknown', cause: String(thrown) };
  if (/^(Lambda|States)\./.test(thrown.name)) return { error: thrown.name, cause: thrown.message };
  const trace = 'trace' in thrown && Array.isArray(thrown.trace) ? { trace: thrown.trace.map(String) } : {};
  return {
    error: thrown.name,
    cause: JSON.stringify({ errorType: thrown.name, errorMessage: thrown.message, ...trace }),
  };
}
