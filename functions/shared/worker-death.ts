import { mayStartLater } from '../../src/adapters/aws/run-task-faults.ts';
import type { WorkerEnd } from '../../src/app/record-worker-end.ts';
import { parseDocument } from '../../src/contracts/json-text.ts';
import { attemptIdPattern } from '../../src/contracts/ids.ts';
import { type AttemptPayload, attemptPayloadSchema } from '../../src/contracts/payloads.ts';
import type { Failure } from '../../src/contracts/records.ts';
import { Setting } from '../../src/contracts/settings.ts';
import {
  type FailedInvocation,
  failedInvocationSchema,
  functionErrorSchema,
  ownStopReason,
  type TaskChange,
  taskChangeSchema,
} from '../../src/contracts/worker-events.ts';
import { failureOf, failureWith } from '../../src/worker/failure-of.ts';
import { withoutRequest } from './lambda-message.ts';

/**
 * What an event tells of the end of a worker: the record of an asynchronous invocation that failed, or the change of an
 * ECS task to STOPPED. Undefined for what is neither, names no attempt, or is the end that a scheduler itself has asked for.
 */
export function workerEndOf(event: unknown): WorkerEnd | undefined {
  const change = taskChangeSchema.safeParse(event);
  if (change.success) return endOfTask(change.data.detail);
  const failed = failedInvocationSchema.safeParse(event);
  return failed.success ? endOfInvocation(failed.data) : undefined;
}

function endOfInvocation({
  requestContext: { requestId: invocation, condition },
  requestPayload,
  responsePayload,
}: FailedInvocation): WorkerEnd | undefined {
  const payload = payloadOf(requestPayload);
  const { errorType, errorMessage } = functionErrorSchema.safeParse(responsePayload).data ?? {};
  if (payload === undefined || condition === 'Success') return undefined;
  const failure =
    condition === 'EventAgeExceeded'
      ? failureWith('expired', 'its launch grew too old in the queue of Lambda before there was room for it')
      : failureOfFunction(errorType ?? '', errorMessage ?? '');
  return { payload, death: { invocation, failure } };
}

/** Errors that Lambda itself reports; others have the names of what was thrown. */
const ofLambda = /^(Runtime|Sandbox|Extension|Function|Lambda|AWS)\./;
const timedOut = /Task timed out after/i;
/**
 * The kernel kills what takes more memory than there is, and V8 aborts where its heap is full; neither says so where
 * nobody is left to tell. 137 and 134 are the same as exit states of a shell.
 */
const outOfMemory = /signal: (killed|aborted)|exit status (137|134)\b|out.?of.?memory/i;

/** Why a function has failed, by what Lambda answers of it. */
export function failureOfFunction(errorType: string, errorMessage: string): Failure {
  const said = withoutRequest(errorMessage);
  const message = said === '' ? errorType : said;
  if (errorType === 'Sandbox.Timedout' || timedOut.test(message))
    // A worker that is well stops itself before that.
    return { ...failureWith('timeout', `Lambda ended its worker: ${message}`), mayPass: true };
  const isOfLambda = errorType === '' || ofLambda.test(errorType);
  if (!isOfLambda) return failureOf(Object.assign(new Error(message), { name: errorType }), 'runtime');
  const isMemory = errorType === 'Runtime.OutOfMemory' || outOfMemory.test(message);
  return isMemory
    ? failureWith('out-of-memory', `its worker ran out of memory: ${message}`)
    : failureWith('exited', `its worker exited: ${message === '' ? 'Lambda does not say why' : message}`);
}

function endOfTask(task: TaskChange): WorkerEnd | undefined {
  if (task.lastStatus !== 'STOPPED') return undefined;
  const variables = (task.overrides?.containerOverrides ?? []).flatMap(({ environment }) => environment);
  const text = variables.find(({ name }) => name === Setting.attemptPayload)?.value;
  const payload = text === undefined ? undefined : payloadOf(documentOf(text));
  if (payload === undefined) return undefined;
  const failure = failureOfTask(task);
  if (failure === undefined) return undefined;
  const isByItself = task.stopCode === 'EssentialContainerExited' && exitCodeOf(task) === 0;
  return { payload, isByItself, death: { invocation: task.taskArn, failure } };
}

/** What a worker was launched with; undefined for what names no attempt. */
function payloadOf(given: unknown): AttemptPayload | undefined {
  const payload = attemptPayloadSchema.safeParse(given).data;
  const named = payload === undefined ? [] : [payload, ...(payload.next ?? []), ...(payload.batch ?? [])];
  return named.every(({ attemptId }) => attemptIdPattern.test(attemptId)) ? payload : undefined;
}

/** Undefined for what is no JSON. */
function documentOf(text: string): unknown {
  try {
    return parseDocument(text, Setting.attemptPayload);
  } catch {
    return undefined;
  }
}

/** Reasons of others to stop a task that did nothing wrong: Spot needs its place, somebody stopped it, Fargate moves on. */
const taken =
  /^(SpotInterruption|TerminationNotice|UserInitiated|ServiceSchedulerInitiated|SpotInterrupted|MaintenanceInitiated)$/;

/** What a container's init tells of SIGKILL; where nobody says who sent it, the kernel did, for want of memory. */
const killed = 137;
/** And of SIGABRT, by which V8 ends a process whose heap is full. */
const aborted = 134;

const exitCodeOf = ({ containers }: TaskChange): number | undefined =>
  containers.find((each) => typeof each.exitCode === 'number')?.exitCode ?? undefined;

/**
 * Why a task has ended; undefined where it was stopped by a scheduler, which knows why. Its word would come back as
 * `interrupted`, which is no strike, so that a task that hangs in each attempt would be made again without end.
 */
function failureOfTask(task: TaskChange): Failure | undefined {
  const { stopCode, stoppedReason, containers } = task;
  const reasons = containers.flatMap(({ reason }) => reason ?? []);
  const exitCode = exitCodeOf(task);
  const said = [stoppedReason ?? '', ...reasons, exitCode === undefined ? '' : `exit code ${exitCode}`];
  // AWS ends its reasons with a full stop, or does not.
  const message = said
    .filter((each) => each !== '')
    .map((each) => each.replace(/\.$/, ''))
    .join('; ');
  if (reasons.some((reason) => /OutOfMemory/i.test(reason)) || /OutOfMemory/i.test(stoppedReason ?? ''))
    return failureWith('out-of-memory', `its task ran out of memory: ${message}`);
  if (stopCode === 'UserInitiated' && stoppedReason?.includes(ownStopReason) === true) return undefined;
  if (taken.test(stopCode ?? '') || /spot (task )?(was )?interrupt/i.test(stoppedReason ?? ''))
    return failureWith('interrupted', `its task was stopped: ${message}`);
  if (stopCode === 'TaskFailedToStart') {
    return mayStartLater(message)
      ? failureWith('expired', `its task found no place: ${message}`)
      : failureWith('exited', `its task could not be started: ${message}`);
  }
  if (exitCode === killed) return failureWith('out-of-memory', `its task was killed: ${message}`);
  if (exitCode === aborted) return failureWith('out-of-memory', `its worker ran out of memory: ${message}`);
  return failureWith('exited', `its task ended: ${message}`);
}
