import { randomUUID } from 'node:crypto';

import { divideConcurrency } from './concurrency-limits.ts';
import { Environment } from './environment.ts';
import type { Invocation, RunResult } from './environment.ts';
import { type FailedEvent, failureRecord } from './failure-record.ts';
import { IdleReaper } from './idle-reaper.ts';
import { encodeFunctionError, exitError } from './function-error.ts';
import type {
  DroppedEvent,
  EnvironmentView,
  InvokeOutcome,
  LambdaServerOptions,
  LocalFunction,
  Refusal,
} from './model.ts';
import { closing, queueFull, throttled } from './refusal.ts';

/** An asynchronous event that waits for room. */
interface QueuedEvent {
  readonly invocation: Invocation;
  readonly acceptedAtMs: number;
  /** Failed tries so far. */
  readonly failures: number;
  /** Tries that found no room, in a row. */
  readonly throttles: number;
}

interface FunctionState {
  readonly fn: LocalFunction;
  /** At most this many invocations at once; undefined without a reservation. */
  readonly reservedLimit: number | undefined;
  /** Idle environments, the one used last at the end. */
  readonly idle: Environment[];
  readonly queue: QueuedEvent[];
  running: number;
}

const DEFAULT_MAX_QUEUED = 10_000;
const DEFAULT_IDLE_MS = 60_000;
/** Environments that may die in a row before an event is given up. */
const MAX_DELIVERIES = 3;
/** What AWS gives extensions to shut down. */
const STOP_GRACE_MS = 2_000;

/**
 * Assigns invocations to environments: warm ones first, new ones while there
 * is room, and asynchronous events from a bounded queue as room appears.
 */
export class Dispatcher {
  private readonly options: LambdaServerOptions;
  private readonly functions = new Map<string, FunctionState>();
  private readonly environments = new Set<Environment>();
  private readonly delayed = new Map<NodeJS.Timeout, { state: FunctionState; event: QueuedEvent }>();
  private readonly ending = new Set<Promise<void>>();
  private readonly unreservedLimit: number;
  private readonly reaper: IdleReaper;
  private running = 0;
  private unreservedRunning = 0;
  private queued = 0;
  private startedEnvironments = 0;
  private isClosed = false;

  /** Throws a RangeError unless `maxConcurrency` is a whole number of at least 1. */
  constructor(options: LambdaServerOptions) {
    const { maxConcurrency } = options;
    if (!Number.isInteger(maxConcurrency) || maxConcurrency < 1) {
      throw new RangeError(
        `maxConcurrency must be a whole number of at least 1, not ${String(maxConcurrency)}`,
      );
    }
    this.options = options;
    this.reaper = new IdleReaper({
      idleMs: options.idleMs ?? DEFAULT_IDLE_MS,
      maxIdle: options.maxIdle ?? maxConcurrency,
    });
    const { reserved, unreserved } = divideConcurrency(options.functions, maxConcurrency);
    this.unreservedLimit = unreserved;
    for (const fn of options.functions) {
      const reservedLimit = reserved.get(fn.name);
      this.functions.set(fn.name, { fn, reservedLimit, idle: [], queue: [], running: 0 });
    }
  }

  /** Undefined if there is none of that name. */
  find(name: string): LocalFunction | undefined {
    return this.functions.get(name)?.fn;
  }

  /** Runs at once or refuses; `name` must be known. */
  async invoke(name: string, invocation: Invocation): Promise<InvokeOutcome> {
    const state = this.stateOf(name);
    const refusal = this.refusalFor(state);
    if (refusal !== undefined) return { kind: 'refused', refusal };
    return this.run(state, invocation);
  }

  /** Queues an event; the answer is why not. `name` must be known. */
  enqueue(name: string, invocation: Invocation): Refusal | undefined {
    if (this.isClosed) return closing();
    if (this.queued >= (this.options.maxQueuedEvents ?? DEFAULT_MAX_QUEUED)) return queueFull();
    this.queued++;
    this.stateOf(name).queue.push({ invocation, acceptedAtMs: Date.now(), failures: 0, throttles: 0 });
    this.pump();
    return undefined;
  }

  /** Starts an environment before there is an event for it; does nothing where there is no room. `name` must be known. */
  warm(name: string): void {
    const state = this.stateOf(name);
    if (this.isClosed || this.environments.size >= this.options.maxConcurrency) return;
    const environment = this.startEnvironment(state, undefined);
    state.idle.push(environment);
    this.reaper.idle(environment);
  }

  /** All living environments, in the order of their start. */
  views(): EnvironmentView[] {
    return [...this.environments].map((environment) => environment.view());
  }

  /** Drops what waits, and ends all processes. */
  async close(): Promise<void> {
    this.isClosed = true;
    this.reaper.close();
    for (const [timer, { state, event }] of this.delayed) {
      clearTimeout(timer);
      this.drop(state, event, 'closed');
    }
    this.delayed.clear();
    for (const state of this.functions.values()) {
      for (const event of state.queue.splice(0)) this.drop(state, event, 'closed');
    }
    await Promise.all([...this.environments].map((environment) => environment.stop(STOP_GRACE_MS)));
    await Promise.all(this.ending);
  }

  private stateOf(name: string): FunctionState {
    const state = this.functions.get(name);
    if (state === undefined) throw new RangeError(`no function ${name}`);
    return state;
  }

  private refusalFor(state: FunctionState): Refusal | undefined {
    if (this.isClosed) return closing();
    if (state.reservedLimit !== undefined && state.running >= state.reservedLimit) {
      return throttled('ReservedFunctionConcurrentInvocationLimitExceeded');
    }
    const isFull =
      this.running >= this.options.maxConcurrency ||
      (state.reservedLimit === undefined && this.unreservedRunning >= this.unreservedLimit);
    return isFull ? throttled('ConcurrentInvocationLimitExceeded') : undefined;
  }

  private async run(
    state: FunctionState,
    invocation: Invocation,
  ): Promise<Exclude<InvokeOutcome, { kind: 'refused' }>> {
    this.count(state, 1);
    try {
      for (let deliveries = 0; deliveries < MAX_DELIVERIES; deliveries++) {
        const environment =
          this.takeIdle(state, invocation.tenantId) ?? this.startEnvironment(state, invocation.tenantId);
        const result: RunResult = await environment.run(invocation);
        if (environment.state === 'idle' && !this.isClosed) {
          state.idle.push(environment);
          this.reaper.idle(environment);
        }
        if (result.kind !== 'undelivered') return result;
      }
      const body = exitError(invocation.requestId, { code: 1, signal: null });
      return { kind: 'function-error', payload: encodeFunctionError(body), logTail: '' };
    } finally {
      this.count(state, -1);
      // After the caller's own continuation, so that a reply is never behind the next event.
      setImmediate(() => {
        this.pump();
      });
    }
  }

  private count(state: FunctionState, by: 1 | -1): void {
    state.running += by;
    this.running += by;
    if (state.reservedLimit === undefined) this.unreservedRunning += by;
  }

  /** The tenant's environment used last; those that died in the meantime are left out. */
  private takeIdle({ idle }: FunctionState, tenantId: string | undefined): Environment | undefined {
    for (let at = idle.length - 1; at >= 0; at--) {
      if (idle[at]?.tenantId !== tenantId) continue;
      const [environment] = idle.splice(at, 1);
      if (environment === undefined) continue;
      this.reaper.forget(environment);
      // One that was warmed may be starting yet.
      if (environment.state === 'idle' || environment.state === 'starting') return environment;
    }
    return undefined;
  }

  private startEnvironment(state: FunctionState, tenantId: string | undefined): Environment {
    const living = [...this.environments].filter((environment) => environment.state !== 'stopping').length;
    if (living >= this.options.maxConcurrency) this.evictIdle();
    const environment = new Environment({
      fn: state.fn,
      index: this.startedEnvironments++,
      server: this.options,
      tenantId,
      onGone: (gone) => {
        this.environments.delete(gone);
        this.reaper.forget(gone);
        const at = state.idle.indexOf(gone);
        if (at >= 0) state.idle.splice(at, 1);
      },
    });
    this.environments.add(environment);
    const ended = environment.gone.finally(() => this.ending.delete(ended));
    this.ending.add(ended);
    return environment;
  }

  /** Makes room by ending the idle environment of the function that has most of them. */
  private evictIdle(): void {
    let richest: FunctionState | undefined;
    for (const state of this.functions.values()) {
      if (state.idle.length > (richest?.idle.length ?? 0)) richest = state;
    }
    void richest?.idle.shift()?.stop(0);
  }

  /** Starts waiting events while there is room, one of each function in turn; what finds none may have to pause. */
  private pump(): void {
    this.startWaiting();
    const { throttledPauseMs } = this.options;
    if (throttledPauseMs === undefined) return;
    for (const state of this.functions.values())
      for (const event of state.queue.splice(0)) this.returnToQueue(state, event, throttledPauseMs);
  }

  /** As Lambda does with what it could not run: it tries again after a pause, and drops what grows too old. */
  private returnToQueue(state: FunctionState, event: QueuedEvent, pauseMs: (times: number) => number): void {
    const leftMs = event.acceptedAtMs + state.fn.maxEventAgeMs - Date.now();
    if (leftMs < 0) {
      this.dropTooOld(state, event);
      return;
    }
    const throttles = event.throttles + 1;
    this.pushLater(state, { ...event, throttles }, Math.min(pauseMs(throttles), leftMs + 1));
  }

  private dropTooOld(state: FunctionState, event: QueuedEvent): void {
    this.drop(state, event, 'too-old');
    this.tellOfFailure(state, event, { condition: 'EventAgeExceeded', invokeCount: event.failures });
  }

  private startWaiting(): void {
    for (let started = true; started;) {
      started = false;
      for (const state of this.functions.values()) {
        if (state.queue.length === 0 || this.refusalFor(state) !== undefined) continue;
        const event = state.queue.shift();
        if (event === undefined) continue;
        started = true;
        if (Date.now() - event.acceptedAtMs > state.fn.maxEventAgeMs) this.dropTooOld(state, event);
        else void this.runEvent(state, event);
      }
    }
  }

  private async runEvent(state: FunctionState, event: QueuedEvent): Promise<void> {
    const outcome = await this.run(state, event.invocation);
    if (outcome.kind === 'done') {
      this.queued--;
      return;
    }
    const failures = event.failures + 1;
    if (this.isClosed) {
      this.drop(state, event, 'closed');
    } else if (failures > state.fn.asyncRetries) {
      this.drop(state, event, 'retries-exhausted');
      const { payload } = outcome;
      this.tellOfFailure(state, event, { payload, condition: 'RetriesExhausted', invokeCount: failures });
    } else {
      const delayMs = this.options.asyncRetryDelayMs?.(failures) ?? failures * 1000;
      this.pushLater(state, { ...event, failures, throttles: 0 }, delayMs);
    }
  }

  private pushLater(state: FunctionState, event: QueuedEvent, delayMs: number): void {
    const timer = setTimeout(() => {
      this.delayed.delete(timer);
      state.queue.push(event);
      this.pump();
    }, delayMs);
    this.delayed.set(timer, { state, event });
  }

  /** As Lambda does: with the rights of the function, and to nobody where these do not suffice. */
  private tellOfFailure({ fn }: FunctionState, { invocation }: QueuedEvent, failed: FailedEvent): void {
    const target = fn.onFailure === undefined ? undefined : this.find(fn.onFailure);
    if (target === undefined) return;
    const problem = this.options.mayCall?.(fn.name, target.name);
    const refused =
      problem ??
      this.enqueue(target.name, {
        requestId: randomUUID(),
        functionArn: invocation.functionArn.replace(/:function:.*$/, `:function:${target.name}`),
        payload: Buffer.from(failureRecord(invocation, failed)),
        isAsynchronous: false,
      })?.message;
    if (refused === undefined) return;
    this.options.onDropped?.({
      functionName: target.name,
      requestId: invocation.requestId,
      reason: 'not-told',
      why: refused,
    });
  }

  private drop(state: FunctionState, event: QueuedEvent, reason: DroppedEvent['reason']): void {
    this.queued--;
    this.options.onDropped?.({
      functionName: state.fn.name,
      requestId: event.invocation.requestId,
      reason,
    });
  }
}
