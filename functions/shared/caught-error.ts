import { ErrorName } from '../../src/contracts/errors.ts';
import type { FailureCause, JobError } from '../../src/contracts/records.ts';
import { failureOfFunction } from './worker-death.ts';
import { withoutRequest } from './lambda-message.ts';

/** What Catch recorded of a step that failed. */
export interface CaughtError {
  readonly Error: string;
  readonly Cause: string;
}

/** What Step Functions calls the end of a function that could not say by itself what was wrong. */
const deaths = /^(Runtime\.|Sandbox\.|Extension\.|Lambda\.Unknown$|States\.(Timeout|TaskFailed)$)/;

const nameOfDeath = (cause: FailureCause): string => {
  if (cause === 'out-of-memory') return ErrorName.OutOfMemory;
  return cause === 'timeout' ? ErrorName.TimedOut : ErrorName.FunctionExited;
};
const wordsOfDeath: Readonly<Record<string, string>> = {
  [ErrorName.OutOfMemory]: 'ran out of memory',
  [ErrorName.TimedOut]: 'ran out of time',
  [ErrorName.FunctionExited]: 'ended before it was done',
};

/**
 * The error of a job from what Catch recorded, in one line: a failed Lambda's cause is JSON with the message inside.
 * Where a function of the coordinator died, of memory or of time or by itself, it is named so, and not by the names that
 * Step Functions has for what it does not know.
 */
export function errorOf(caught: CaughtError | undefined): JobError {
  if (caught === undefined) return { name: 'Unknown', message: 'the state machine gave no cause' };
  const message = messageOf(caught);
  if (!deaths.test(caught.Error)) return { name: caught.Error, message };
  const isTime = caught.Error === 'States.Timeout';
  const { cause } = failureOfFunction(caught.Error === 'Lambda.Unknown' ? '' : caught.Error, message);
  const name = isTime ? ErrorName.TimedOut : nameOfDeath(cause);
  const what = `a function that plans, schedules or finishes the job ${wordsOfDeath[name] ?? ''}`;
  return { name, message: `${what}: ${message}` };
}

function messageOf({ Error: name, Cause: cause }: CaughtError): string {
  try {
    const document: unknown = JSON.parse(cause);
    if (typeof document === 'object' && document !== null && 'errorMessage' in document)
      return withoutRequest(String(document.errorMessage));
  } catch {
    // Not JSON: Step Functions' own errors have a cause in words.
  }
  return cause === '' ? name : cause;
}
