import type { TaskCall } from './definition.ts';
import type { Failure, NewEvent } from './history.ts';

const INCLUDED = { truncated: false };
const SERVICE = { resourceType: 'lambda', resource: 'invoke' };

interface Scheduled {
  readonly call: TaskCall;
  /** The Task's input after `Parameters`, as JSON. */
  readonly input: string;
  readonly region: string;
  readonly timeoutSeconds: number | undefined;
}

/** The two events with which a call of a function begins, in order. */
export function callStarted({ call, input, region, timeoutSeconds }: Scheduled): readonly NewEvent[] {
  const timeout = timeoutSeconds === undefined ? {} : { timeoutInSeconds: timeoutSeconds };
  if (call.kind === 'lambda') {
    const value = { resource: call.resource, input, inputDetails: INCLUDED, ...timeout };
    return [
      { type: 'LambdaFunctionScheduled', details: { key: 'lambdaFunctionScheduledEventDetails', value } },
      { type: 'LambdaFunctionStarted' },
    ];
  }
  const value = { ...SERVICE, region, parameters: input, ...timeout };
  return [
    { type: 'TaskScheduled', details: { key: 'taskScheduledEventDetails', value } },
    { type: 'TaskStarted', details: { key: 'taskStartedEventDetails', value: SERVICE } },
  ];
}

export function callSucceeded(call: TaskCall, output: string): NewEvent {
  const value = { output, outputDetails: INCLUDED };
  return call.kind === 'lambda'
    ? { type: 'LambdaFunctionSucceeded', details: { key: 'lambdaFunctionSucceededEventDetails', value } }
    : {
        type: 'TaskSucceeded',
        details: { key: 'taskSucceededEventDetails', value: { ...SERVICE, ...value } },
      };
}

/** The call ended badly: the function failed, or the Task's time was up. */
export function callEndedBadly(call: TaskCall, how: 'Failed' | 'TimedOut', failure: Failure): NewEvent {
  return call.kind === 'lambda'
    ? {
        type: `LambdaFunction${how}`,
        details: { key: `lambdaFunction${how}EventDetails`, value: { ...failure } },
      }
    : { type: `Task${how}`, details: { key: `task${how}EventDetails`, value: { ...SERVICE, ...failure } } };
}
