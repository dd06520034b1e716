/** AWS ends an execution whose history would grow past this. */
export const MAX_HISTORY_EVENTS = 25_000;

/** One event as GetExecutionHistory gives it; details stand under their own key per type. */
export interface HistoryEvent {
  readonly id: number;
  /** 0 for the first event, and for an end that came from outside the machine. */
  readonly previousEventId: number;
  /** Seconds since the epoch, with a fraction. */
  readonly timestamp: number;
  readonly type: string;
  readonly [details: string]: unknown;
}

/** An event before it has a place in the history. */
export interface NewEvent {
  readonly type: string;
  readonly details?: { readonly key: string; readonly value: Readonly<Record<string, unknown>> };
}

/** `{ error, cause }` without the absent ones: AWS leaves out what a failure does not have. */
export interface Failure {
  readonly error?: string;
  readonly cause?: string;
}

/** What AWS says of an execution that filled its history. */
export const HISTORY_FULL: Failure = {
  error: 'States.Runtime',
  cause: `The execution reached the maximum number of history events (${String(MAX_HISTORY_EVENTS)}).`,
};

const FROM_OUTSIDE = new Set(['ExecutionAborted', 'ExecutionTimedOut']);

/** The event with its place: the next id after `count` events, at `nowMs` since the epoch. */
export function placeEvent(event: NewEvent, count: number, nowMs: number): HistoryEvent {
  return {
    id: count + 1,
    previousEventId: FROM_OUTSIDE.has(event.type) ? 0 : count,
    timestamp: nowMs / 1000,
    type: event.type,
    ...(event.details === undefined ? {} : { [event.details.key]: event.details.value }),
  };
}

const INCLUDED = { truncated: false };

export function executionStarted(input: string, roleArn: string): NewEvent {
  return {
    type: 'ExecutionStarted',
    details: { key: 'executionStartedEventDetails', value: { input, inputDetails: INCLUDED, roleArn } },
  };
}

export function executionSucceeded(output: string): NewEvent {
  return {
    type: 'ExecutionSucceeded',
    details: { key: 'executionSucceededEventDetails', value: { output, outputDetails: INCLUDED } },
  };
}

export function executionEndedBadly(
  type: 'ExecutionFailed' | 'ExecutionAborted' | 'ExecutionTimedOut',
  failure: Failure,
): NewEvent {
  const key = `e${type.slice(1)}EventDetails`;
  return { type, details: { key, value: { ...failure } } };
}

/** A state of the given type (`Task`, `Choice` …) was entered. */
export function stateEntered(stateType: string, name: string, input: string): NewEvent {
  return {
    type: `${stateType}StateEntered`,
    details: { key: 'stateEnteredEventDetails', value: { name, input, inputDetails: INCLUDED } },
  };
}

/** A state of the given type was left; a Fail state never is. */
export function stateExited(stateType: string, name: string, output: string): NewEvent {
  return {
    type: `${stateType}StateExited`,
    details: { key: 'stateExitedEventDetails', value: { name, output, outputDetails: INCLUDED } },
  };
}
