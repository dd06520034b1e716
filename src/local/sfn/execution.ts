import { setImmediate as nextTurn } from 'node:timers/promises';
import type { StateMachine, StateMachineDefinition } from 'aws-local-stepfunctions';
import * as z from 'zod';
import type { End, ExecutionLog, ExecutionRecord } from './execution-log.ts';
import {
  HISTORY_FULL,
  executionEndedBadly,
  executionStarted,
  executionSucceeded,
  stateEntered,
  stateExited,
} from './history.ts';
import type { Failure, NewEvent } from './history.ts';
import { loadInterpreter } from './interpreter.ts';
import { definitionFrom, RESUMING, resumptionOf } from './resumption.ts';
import { MAX_PAYLOAD_BYTES } from './payload.ts';
import { HEARTBEAT_TIMEOUT, TIMEOUT } from './runnable.ts';
import type { RunnableDefinition, RunnableTask } from './runnable.ts';
import { callEndedBadly, callStarted, callSubmitted, callSucceeded } from './task-events.ts';
import { ExecutionOverFailure, lambdaFailure, TaskFailure } from './task-failure.ts';
import { type OpenToken, type TaskTokens, withToken } from './task-tokens.ts';

/** Calls a function; throws an Error whose `name` is the error type that Retry and Catch match. */
export type InvokeLambda = (functionNameOrArn: string, payload: unknown) => Promise<unknown>;

/** What an execution runs, and with what. */
export interface ExecutionDeps {
  readonly log: ExecutionLog;
  readonly machine: { readonly name: string; readonly arn: string; readonly runnable: RunnableDefinition };
  readonly region: string;
  readonly roleArn: string;
  readonly invokeLambda: InvokeLambda;
  readonly tokens: TaskTokens;
  /** Told why the log cannot be written; the execution is suspended by then. */
  readonly onUnwritable: (error: Error) => void;
}

export interface RunningExecution {
  /** Leaves it as it is on record, for a server that comes later to resume; for a shutdown. */
  suspend(): void;
  /** Ends it as StopExecution does; nothing if it has ended, or is suspended. A call under way is not cut off, as on AWS. */
  stop(failure: Failure): void;
}

type Json = z.infer<ReturnType<typeof z.json>>;
type LogEvent =
  ReturnType<StateMachine['run']>['eventLogs'] extends AsyncGenerator<infer Event> ? Event : never;

/** Starts the interpreter on a recorded execution and keeps its history. Never throws. */
export function runExecution(deps: ExecutionDeps, record: ExecutionRecord): RunningExecution {
  const execution = new Execution(deps, record);
  execution.start();
  return execution;
}

/** Goes on with an execution that another server has left running on record. Never throws. */
export function resumeExecution(deps: ExecutionDeps, record: ExecutionRecord): RunningExecution {
  const execution = new Execution(deps, record);
  execution.resume();
  return execution;
}

class Execution implements RunningExecution {
  private readonly deps: ExecutionDeps;
  private readonly record: ExecutionRecord;
  private abort: () => void = () => undefined;
  private hasEnded = false;
  private current: { readonly name: string; readonly type: string; readonly enteredId: number } | undefined;
  /** The entry of the state in which it was resumed, until that is entered. */
  private enteredBefore: number | undefined;
  /** The call whose end is still to be told; a Task past its time-out has none. */
  private openCall: symbol | undefined;
  /** What the call waits for, where it waits for an answer to a token. */
  private openToken: OpenToken | undefined;
  /** Rejects at the end: a call left hanging would keep the interpreter's timer, and so the process, alive. */
  private readonly cut = Promise.withResolvers<never>();

  constructor(deps: ExecutionDeps, record: ExecutionRecord) {
    this.deps = deps;
    this.record = record;
    this.cut.promise.catch(() => undefined);
  }

  start(): void {
    this.append(executionStarted(this.record.input, this.deps.roleArn));
    void this.run(this.deps.machine.runnable.definition);
  }

  resume(): void {
    const { definition } = this.deps.machine.runnable;
    const nowMs = Date.now();
    const resumption = resumptionOf(this.record, definition, nowMs);
    if (resumption.kind === 'timed-out') {
      this.end({ status: 'TIMED_OUT', event: executionEndedBadly('ExecutionTimedOut', {}) });
    } else if (resumption.kind === 'failed') {
      this.fail(resumption.failure);
    } else if (resumption.kind === 'succeeded') {
      const { output } = resumption;
      this.end({ status: 'SUCCEEDED', event: executionSucceeded(output), output });
    } else {
      if (this.record.events.length === 0)
        this.append(executionStarted(this.record.input, this.deps.roleArn));
      this.enteredBefore = resumption.enteredId;
      const { TimeoutSeconds: seconds } = definition;
      const leftMs = seconds === undefined ? undefined : this.record.startMs + seconds * 1_000 - nowMs;
      const { state } = resumption;
      void this.run(definitionFrom(definition, { state, input: parseJson(resumption.input) }, leftMs));
    }
  }

  private async run(definition: StateMachineDefinition): Promise<void> {
    const { tasks } = this.deps.machine.runnable;
    const handlers = Object.fromEntries(
      [...tasks.keys()].map((name) => [name, (input: unknown) => this.call(name, input)]),
    );
    try {
      const interpreter = await loadInterpreter();
      // Stopped or suspended before it began.
      if (this.hasEnded) return;
      const machine = new interpreter.StateMachine(definition, { validationOptions: { noValidate: true } });
      const run = machine.run(parseJson(this.record.input), {
        overrides: { taskResourceLocalHandlers: handlers },
        context: {
          Execution: { Id: this.record.executionArn, Name: this.record.name },
          StateMachine: { Id: this.deps.machine.arn, Name: this.deps.machine.name },
        },
        noThrowOnAbort: true,
      });
      this.abort = run.abort;
      run.result.catch(() => undefined); // The event log tells the same, in order.
      for await (const event of run.eventLogs) this.observe(event);
    } catch (cause) {
      this.fail({ error: 'States.Runtime', cause: String(cause) });
      this.abort();
    }
  }

  suspend(): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.openToken?.close();
    this.cut.reject(new ExecutionOverFailure());
    this.abort();
  }

  stop(failure: Failure): void {
    this.end({ status: 'ABORTED', event: executionEndedBadly('ExecutionAborted', failure), failure });
    this.abort();
  }

  private observe(event: LogEvent): void {
    switch (event.type) {
      case 'StateEntered': {
        const { name, type, input } = event.state;
        if (name === RESUMING) return;
        const enteredId = this.enteredBefore ?? this.append(stateEntered(type, name, JSON.stringify(input)));
        this.enteredBefore = undefined;
        this.current = { name, type, enteredId };
        return;
      }
      case 'StateExited':
        if (event.state.name === RESUMING) return;
        this.append(
          stateExited(event.state.type, event.state.name, JSON.stringify(event.state.output ?? null)),
        );
        return;
      case 'StateFailed':
        if (event.Error === TIMEOUT) this.timeOutCall(event.state.name);
        return;
      case 'ExecutionSucceeded': {
        const output = JSON.stringify(event.output);
        this.end({ status: 'SUCCEEDED', event: executionSucceeded(output), output });
        return;
      }
      case 'ExecutionFailed':
        this.fail(this.failureOf(event.Error, event.Cause));
        return;
      case 'ExecutionTimeout':
        this.end({ status: 'TIMED_OUT', event: executionEndedBadly('ExecutionTimedOut', {}) });
        return;
      default: // Retries and catches show in AWS's history only by what follows them.
    }
  }

  /** The handler of a Task: tells the history, then the caller's function, then the history. */
  private async call(name: string, input: unknown): Promise<Json> {
    // The interpreter tells of the state's entry through a queue; the call must come after it.
    await nextTurn();
    this.refuseIfEnded();
    const task = this.deps.machine.runnable.tasks.get(name);
    if (task === undefined)
      throw new TaskFailure({ error: 'States.Runtime', cause: `no task '${name}'` }, true);

    const token = this.openTokenOf(task);
    const parameters = token === undefined ? input : withToken(input, token.token);
    const open = Symbol(name);
    this.openCall = open;
    const started = {
      call: task.call,
      input: JSON.stringify(parameters),
      region: this.deps.region,
      timeoutSeconds: task.timeoutSeconds,
      heartbeatSeconds: task.heartbeatSeconds,
    };
    for (const event of callStarted(started)) this.append(event);
    this.refuseIfEnded();

    const tell = (event: NewEvent): void => {
      if (this.openCall === open) this.append(event);
    };
    const finish = (event: NewEvent): void => {
      tell(event);
      if (this.openCall === open) this.openCall = undefined;
    };
    try {
      const output =
        token === undefined
          ? await this.answerOf(task, parameters)
          : await this.answerTo(token, { task, parameters, tell });
      refuseIfTooLarge(name, output);
      finish(callSucceeded(task.call, JSON.stringify(output)));
      return output;
    } catch (thrown) {
      const failure = thrown instanceof TaskFailure ? thrown : new TaskFailure(lambdaFailure(thrown), false);
      const isSilent = failure.name === HEARTBEAT_TIMEOUT;
      finish(
        isSilent
          ? callEndedBadly(task.call, 'TimedOut', { error: TIMEOUT })
          : callEndedBadly(task.call, 'Failed', { error: failure.name, cause: failure.message }),
      );
      throw failure;
    } finally {
      token?.close();
    }
  }

  private openTokenOf({ call, heartbeatSeconds }: RunnableTask): OpenToken | undefined {
    if (call.kind !== 'invoke' || !call.waits) return undefined;
    this.openToken = this.deps.tokens.open(this.record.executionArn, heartbeatSeconds);
    return this.openToken;
  }

  /** What the function answers, or the end of the execution if that comes first. */
  private async answerOf({ call }: RunnableTask, parameters: unknown): Promise<Json> {
    const target =
      call.kind === 'lambda' ? { name: call.resource, payload: parameters } : invokeTarget(parameters);
    const answer = toJson(
      await Promise.race([this.deps.invokeLambda(target.name, target.payload), this.cut.promise]),
    );
    return call.kind === 'lambda' ? answer : { ExecutedVersion: '$LATEST', Payload: answer, StatusCode: 200 };
  }

  /** What is answered to the token: perhaps before its function answers, which is then of no interest any more. */
  private async answerTo(
    token: OpenToken,
    called: {
      readonly task: RunnableTask;
      readonly parameters: unknown;
      readonly tell: (event: NewEvent) => void;
    },
  ): Promise<Json> {
    const state = { isAnswered: false };
    const submitted = this.answerOf(called.task, called.parameters).then((output) => {
      if (!state.isAnswered) called.tell(callSubmitted(called.task.call, JSON.stringify(output)));
      return token.answer;
    });
    submitted.catch(() => undefined);
    const answer = await Promise.race([token.answer, submitted, this.cut.promise]);
    state.isAnswered = true;
    switch (answer.kind) {
      case 'succeeded':
        return toJson(answer.output);
      case 'failed': {
        const { error = '', cause = '' } = answer.failure;
        throw new TaskFailure({ error, cause }, false);
      }
      case 'silent':
        throw new TaskFailure({ error: HEARTBEAT_TIMEOUT, cause: '' }, false);
    }
  }

  /** The interpreter goes on retrying after an abort; this ends it at its next call. */
  private refuseIfEnded(): void {
    if (this.hasEnded)
      throw new TaskFailure({ error: 'States.Runtime', cause: 'the execution has ended' }, true);
  }

  private timeOutCall(stateName: string): void {
    const task = this.deps.machine.runnable.tasks.get(stateName);
    if (task === undefined || this.openCall === undefined) return;
    this.openCall = undefined;
    this.openToken?.close();
    this.append(callEndedBadly(task.call, 'TimedOut', { error: TIMEOUT }));
  }

  private failureOf(error: string, cause: unknown): Failure {
    const text =
      typeof cause === 'string' ? cause : cause instanceof Error ? cause.message : JSON.stringify(cause);
    if (this.current?.type === 'Fail') {
      // The interpreter makes up what a Fail state leaves out.
      return {
        ...(error === 'FailStateError' ? {} : { error }),
        ...(text === 'Execution failed because of a Fail state' ? {} : { cause: text }),
      };
    }
    if (error !== 'States.Runtime' || this.current === undefined) return { error, cause: text };
    const { name, enteredId } = this.current;
    return {
      error,
      cause: `An error occurred while executing the state '${name}' (entered at the event id #${String(enteredId)}). ${text}`,
    };
  }

  private fail(failure: Failure): void {
    this.end({ status: 'FAILED', event: executionEndedBadly('ExecutionFailed', failure), failure });
  }

  private end(end: End): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.openToken?.close();
    this.cut.reject(new ExecutionOverFailure());
    this.written(() => {
      this.deps.log.end(this.record.executionArn, end);
    });
  }

  /** What a write to the log answers; undefined where it fails, as on a full disk: then it goes on from what is on record. */
  private written<T>(write: () => T): T | undefined {
    try {
      return write();
    } catch (error) {
      this.suspend();
      this.deps.onUnwritable(error instanceof Error ? error : new Error(String(error)));
      return undefined;
    }
  }

  /** The event's id; 0 once the execution has ended or is suspended, be it by this very event. */
  private append(event: NewEvent): number {
    if (this.hasEnded) return 0;
    const id = this.written(() => this.deps.log.append(this.record.executionArn, event));
    if (id !== 'full') return id ?? 0;
    this.fail(HISTORY_FULL);
    this.abort();
    return 0;
  }
}

const invokeParameters = z.object({ FunctionName: z.string().min(1), Payload: z.unknown() });

function invokeTarget(input: unknown): { readonly name: string; readonly payload: unknown } {
  const parsed = invokeParameters.safeParse(input);
  if (!parsed.success) {
    throw new TaskFailure(
      { error: 'States.Runtime', cause: 'The parameter FunctionName must be a text.' },
      true,
    );
  }
  return { name: parsed.data.FunctionName, payload: parsed.data.Payload ?? {} };
}

function refuseIfTooLarge(name: string, output: Json): void {
  if (Buffer.byteLength(JSON.stringify(output)) <= MAX_PAYLOAD_BYTES) return;
  const cause = `The state/task '${name}' returned a result with a size exceeding the maximum number of bytes service limit.`;
  throw new TaskFailure({ error: 'States.DataLimitExceeded', cause }, true);
}

/** Through text, as over the wire: no answer is `null`, and no reference is shared. */
function toJson(value: unknown): Json {
  return value === undefined ? null : parseJson(JSON.stringify(value));
}

function parseJson(text: string): Json {
  return z.json().parse(JSON.parse(text));
}
