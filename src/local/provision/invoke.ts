import type { InvokeOutcome, LambdaServer } from '../lambda/server.ts';

/** A failed invocation, as Step Functions matches it: by `name`, the error type that the function threw. */
class InvocationError extends Error {
  override readonly name: string;
  readonly trace: readonly string[];

  constructor(name: string, message: string, trace: readonly string[]) {
    super(message);
    this.name = name;
    this.trace = trace;
  }
}

/** Calls a function and waits for its result; throws an Error named as AWS names what went wrong. */
export type Invoke = (functionNameOrArn: string, payload: unknown) => Promise<unknown>;

/** Synchronous invocations of a local Lambda without the network. */
export function invokeOn(lambda: LambdaServer): Invoke {
  return async (name, payload) => resultOf(await lambda.invoke(name, JSON.stringify(payload ?? {})));
}

function resultOf(outcome: InvokeOutcome): unknown {
  switch (outcome.kind) {
    case 'done':
      return outcome.payload.length === 0 ? null : JSON.parse(outcome.payload.toString('utf8'));
    case 'function-error': {
      const document: unknown = JSON.parse(outcome.payload.toString('utf8'));
      const fields = new Map(
        typeof document === 'object' && document !== null ? Object.entries(document) : [],
      );
      const trace: unknown = fields.get('trace');
      throw new InvocationError(
        textOr(fields.get('errorType'), 'Lambda.Unknown'),
        textOr(fields.get('errorMessage'), ''),
        Array.isArray(trace) ? trace.map(String) : [],
      );
    }
    case 'refused':
      throw new InvocationError(`Lambda.${outcome.refusal.code}`, outcome.refusal.message, []);
  }
}

const textOr = (value: unknown, otherwise: string): string => (typeof value === 'string' ? value : otherwise);
