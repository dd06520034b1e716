import type { TaskCall } from './runnable.ts';
import type { Failure, NewEvent } from './history.ts';

const INCLUDED = { truncated: false };

const serviceOf = (call: TaskCall): Readonly<Record<string, unknown>> => ({
  resourceType: 'lambda',
  resource: call.kind === 'invoke' && call.waits ? 'invoke.waitForTaskToken' : 'invoke',
});

interface Scheduled {
  readonly call: TaskCall;
  /** The Task's input after `Parameters`, as JSON. */
  readonly input: string;
  readonly region: string;
  readonly timeoutSeconds: number | undefined;
  readonly heartbeatSeconds: number | undefined;
}

/** The two events with which a call of a function begins, in order. */
export function callStarted({
  call,
  input,
  region,
  timeoutSeconds,
  heartbeatSeconds,
}: Scheduled): readonly NewEvent[] {
  const timeout = timeoutSeconds === undefined ? {} : { timeoutInSeconds: timeoutSeconds };
  if (call.kind === 'lambda') {
    const value = { resource: call.resource, input, inputDetails: INCLUDED, ...timeout };
    return [
      { type: 'LambdaFunctionScheduled', details: { key: 'lambdaFunctionScheduledEventDetails', value } },
      { type: 'LambdaFunctionStarted' },
    ];
  }
  const heartbeat = heartbeatSeconds === undefined ? {} : { heartbeatInSeconds: heartbeatSeconds };
  const value = { ...serviceOf(call), region, parameters: input, ...timeout, ...heartbeat };
  return [
    { type: 'TaskScheduled', details: { key: 'taskScheduledEventDetails', value } },
    { type: 'TaskStarted', details: { key: 'taskStartedEventDetails', value: serviceOf(call) } },
  ];
}

/** The function of a task that waits for its token has answered; what it said goes nowhere else. */
export function callSubmitted(call: TaskCall, output: string): NewEvent {
  const value = { ...serviceOf(call), output, outputDetails: INCLUDED };
  return { type: 'TaskSubmitted', details: { key: 'taskSubmittedEventDetails', value } };
}

export function callSucceeded(call: TaskCall, output: string): NewEvent {
  const value = { output, outputDetails: INCLUDED };
  return call.kind === 'lambda'
    ? { type: 'LambdaFunctionSucceeded', details: { key: 'lambdaFunctionSucceededEventDetails', value } }
    : {
        type: 'TaskSucceeded',
        details: { key: 'taskSucceededEventDetails', value: { ...serviceOf(call), ...value } },
      };
}

/** The call ended badly: the function failed, or the Task's time was up. */
export function callEndedBadly(call: TaskCall, how: 'Failed' | 'TimedOut', failure: Failure): NewEvent {
  return call.kind === 'lambda'
    ? {
        type: `LambdaFunction${how}`,
        details: { key: `lambdaFunction${how}EventDetails`, value: { ...failure } },
      }
    : {
        type: `Task${how}`,
        details: { key: `task${how}EventDetails`, value: { ...serviceOf(call), ...failure } },
      };
}
