import { describe, expect, it } from 'vitest';
import { errorOf } from '../../functions/shared/caught-error.ts';

const cause = (errorType: string, errorMessage: string): string =>
  JSON.stringify({ errorType, errorMessage, trace: [] });
const unknown =
  'The cause could not be determined because Lambda did not return an error type. Returned payload: {"errorMessage":"2026-11-22T04:20:05.568Z 7c6f Task timed out after 900.10 seconds"}';

describe('a step whose function died', () => {
  it.each([
    [
      'Runtime.OutOfMemory',
      cause('Runtime.OutOfMemory', 'RequestId: 1 Error: Runtime exited with error: signal: killed'),
      'OutOfMemory',
    ],
    [
      'Runtime.ExitError',
      cause('Runtime.ExitError', 'RequestId: 1 Error: Runtime exited with error: signal: killed'),
      'OutOfMemory',
    ],
    [
      'Sandbox.Timedout',
      cause('Sandbox.Timedout', 'RequestId: 1 Error: Task timed out after 900.00 seconds'),
      'TimedOut',
    ],
    ['Lambda.Unknown', unknown, 'TimedOut'],
    ['States.Timeout', '', 'TimedOut'],
    [
      'Lambda.Unknown',
      'Returned payload: {"errorMessage":"RequestId: 1 Process exited before completing request"}',
      'FunctionExited',
    ],
    [
      'Runtime.ExitError',
      cause('Runtime.ExitError', 'RequestId: 1 Error: Runtime exited with error: exit status 1'),
      'FunctionExited',
    ],
    ['States.TaskFailed', '', 'FunctionExited'],
  ])('%s with %s is %s', (Error, Cause, name) => {
    expect(errorOf({ Error, Cause })).toMatchObject({ name });
  });

  it('is told in words', () => {
    const Cause = cause(
      'Runtime.OutOfMemory',
      'RequestId: 1 Error: Runtime exited with error: signal: killed',
    );
    expect(errorOf({ Error: 'Runtime.OutOfMemory', Cause })).toEqual({
      name: 'OutOfMemory',
      message:
        'a function that plans, schedules or finishes the job ran out of memory: Runtime exited with error: signal: killed',
    });
  });
});

describe('a step that failed by itself', () => {
  it.each([
    ['JobFailed', cause('JobFailed', 'stage map, task 0 failed'), 'stage map, task 0 failed'],
    ['StoreUnavailable', cause('StoreUnavailable', 'update failed'), 'update failed'],
    ['Lambda.TooManyRequestsException', 'Rate Exceeded.', 'Rate Exceeded.'],
    ['BrokenInvariant', '', 'BrokenInvariant'],
  ])('keeps its name: %s', (Error, Cause, message) => {
    expect(errorOf({ Error, Cause })).toEqual({ name: Error, message });
  });

  it('has a name of its own where nothing is known', () => {
    expect(errorOf(undefined)).toEqual({ name: 'Unknown', message: 'the state machine gave no cause' });
  });
});
