import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import type { Listener } from '../http/listen.ts';
import { skewedClock } from '../inject/clock-skew.ts';
import { buildEnvironmentVariables } from './environment-variables.ts';
import {
  encodeFunctionError,
  exitError,
  lostError,
  outOfMemoryError,
  responseTooLargeError,
  timeoutError,
} from './function-error.ts';
import { LogTail, peakMemoryMb, reportLine } from './invocation-log.ts';
import { openLogFile } from './log-file.ts';
import type { LogFile } from './log-file.ts';
import { startLoggedProcess } from './logged-process.ts';
import type { LoggedProcess, ProcessExit } from './logged-process.ts';
import { DEFAULT_ZONE_ID, MAX_RESPONSE_BYTES } from './model.ts';
import type { EnvironmentState, EnvironmentView, LambdaServerOptions, LocalFunction } from './model.ts';
import { endForMemory, exitWithin } from './memory-watch.ts';
import { makeScratchFolder } from './scratch-folder.ts';
import type { ScratchFolder } from './scratch-folder.ts';
import { startRuntimeApi } from './runtime-api.ts';
import type { Delivery, RuntimeHost } from './runtime-api.ts';

/** One event on its way to a function. */
export interface Invocation {
  readonly requestId: string;
  readonly functionArn: string;
  readonly payload: Buffer;
  readonly isAsynchronous: boolean;
  /** On a function with tenants, and only there. */
  readonly tenantId?: string;
}

/** `undelivered`: the environment died before it took the event, which another one can take. */
export type RunResult =
  | { readonly kind: 'done' | 'function-error'; readonly payload: Buffer; readonly logTail: string }
  | { readonly kind: 'undelivered' };

/** What an environment is made from. */
export interface EnvironmentSpec {
  readonly fn: LocalFunction;
  /** Counts the environments of the server. */
  readonly index: number;
  readonly server: LambdaServerOptions;
  /** Whom alone it will serve. */
  readonly tenantId: string | undefined;
  /** Called once, when the process is gone. */
  readonly onGone: (environment: Environment) => void;
}

interface Running {
  readonly invocation: Invocation;
  readonly tail: LogTail;
  readonly settle: (result: RunResult) => void;
  timer: NodeJS.Timeout | undefined;
  startedAtMs: number | undefined;
  /** Its result is known; only its last lines are still awaited. */
  isFinished: boolean;
}

/** Far above AWS's 10 s, since a busy laptop starts processes slowly; only a hang meets it. */
const INIT_LIMIT_MS = 60_000;
const BOOTSTRAP_PATH = fileURLToPath(new URL('./bootstrap.ts', import.meta.url));
/**
 * What V8 lets a heap grow to before it first marks all of it. Workers hold a few megabytes and stream through buffers
 * outside of the heap, which count: from V8's own start it marked the same heap some fifty times in a sort of 256 MB.
 */
const INITIAL_HEAP_SHARE = 0.08;
const OUT_OF_MEMORY = 'JavaScript heap out of memory';

/** One process of one function, from its start to its end. */
export class Environment implements RuntimeHost {
  readonly id = randomUUID().replaceAll('-', '');
  readonly metadataToken = randomUUID();
  readonly zoneId: string;
  readonly fn: LocalFunction;
  readonly tenantId: string | undefined;
  /** Resolves when the process, its ports and its log are closed. */
  readonly gone: Promise<void>;
  private readonly spec: EnvironmentSpec;
  private readonly log: LogFile;
  /** Of its clock before ours. */
  private readonly aheadMs: number;
  private child: LoggedProcess | undefined;
  private status: EnvironmentState = 'starting';
  private running: Running | undefined;
  private deliver: ((delivery: Delivery) => void) | undefined;
  private initError: Buffer | undefined;
  private initStartedMs = 0;
  private initMs: number | undefined;
  private hasInitialized = false;
  /** It is to stop, perhaps before its process is there. */
  private readonly stopped = new AbortController();
  private ranOutOfMemory = false;
  private wasLost = false;

  constructor(spec: EnvironmentSpec) {
    this.spec = spec;
    this.fn = spec.fn;
    this.tenantId = spec.tenantId;
    this.zoneId = spec.server.zoneOf?.(spec.index) ?? DEFAULT_ZONE_ID;
    this.aheadMs = spec.server.onClock?.({ name: spec.fn.name, place: this.id }) ?? 0;
    this.log = openLogFile(join(spec.server.logDir, spec.fn.name, `${this.id}.log`));
    this.gone = this.live();
  }

  get state(): EnvironmentState {
    return this.status;
  }

  view(): EnvironmentView {
    return {
      functionName: this.fn.name,
      pid: this.child?.pid,
      environmentId: this.id,
      state: this.status,
      zoneId: this.zoneId,
      tenantId: this.tenantId,
      requestId: this.running?.invocation.requestId,
    };
  }

  /** Runs one event; only for an environment that is new or idle. Never rejects. */
  run(invocation: Invocation): Promise<RunResult> {
    return new Promise((settle) => {
      this.running = {
        invocation,
        tail: new LogTail(),
        settle,
        timer: undefined,
        startedAtMs: undefined,
        isFinished: false,
      };
      if (this.hasInitialized) {
        this.status = 'busy';
        // A runtime that never comes back for the next event must not hold it for ever.
        this.armTimer(this.fn.timeoutMs);
      } else {
        this.armTimer(INIT_LIMIT_MS);
      }
      this.handOver();
    });
  }

  /** Ends the process, politely for `graceMs`; a running event gets an exit error. */
  async stop(graceMs: number): Promise<void> {
    this.status = 'stopping';
    this.stopped.abort();
    if (graceMs > 0) await this.child?.stop(graceMs);
    else this.child?.signal('SIGKILL');
    await this.gone;
  }

  onNext(deliver: (delivery: Delivery) => void): void {
    this.deliver = deliver;
    if (!this.hasInitialized) {
      this.hasInitialized = true;
      this.initMs = performance.now() - this.initStartedMs;
      if (this.status === 'starting') this.status = this.running === undefined ? 'idle' : 'busy';
    }
    this.handOver();
  }

  onLost(): void {
    this.deliver = undefined;
    this.status = 'stopping';
    this.child?.signal('SIGKILL');
  }

  onResponse(requestId: string, payload: Buffer | 'too-large'): boolean {
    if (!this.isRunning(requestId)) return false;
    if (payload === 'too-large') {
      this.finish('function-error', encodeFunctionError(responseTooLargeError(MAX_RESPONSE_BYTES)));
    } else {
      this.finish('done', payload);
    }
    return true;
  }

  onError(requestId: string, errorBody: Buffer): boolean {
    if (!this.isRunning(requestId)) return false;
    this.finish('function-error', errorBody);
    return true;
  }

  onInitError(errorBody: Buffer): void {
    this.initError = errorBody;
  }

  private isRunning(requestId: string): boolean {
    return this.running?.invocation.requestId === requestId && !this.running.isFinished;
  }

  private async live(): Promise<void> {
    let api: Listener | undefined;
    let scratch: ScratchFolder | undefined;
    let exit: ProcessExit = { code: null, signal: null };
    try {
      api = await startRuntimeApi(this);
      this.initStartedMs = performance.now();
      await this.lateStart();
      scratch = makeScratchFolder(this.spec.server.scratchDir, `lambda-${this.id}`);
      exit = await this.runProcess(api.port, scratch.path);
    } catch (cause) {
      this.writeLine(`environment failed: ${String(cause)}`);
    }
    this.status = 'stopping';
    this.fail(exit);
    this.spec.onGone(this);
    await Promise.all([api?.close(), scratch?.remove(), this.log.close()]);
  }

  /** Waits as long as its start is to take longer, or until it is to stop. */
  private async lateStart(): Promise<void> {
    const delayMs = this.spec.server.onStart?.({ name: this.fn.name, place: this.id }) ?? 0;
    if (delayMs === 0) return;
    await sleep(delayMs, undefined, { signal: this.stopped.signal }).catch(() => undefined);
  }

  private runProcess(runtimeApiPort: number, scratchPath: string): Promise<ProcessExit> {
    const { fn, spec } = this;
    // The bounds that AWS's own runtime gives to V8.
    const heapMb = Math.floor(fn.memoryMb * 0.9);
    const semiSpaceMb = Math.max(1, Math.floor(fn.memoryMb * 0.05));
    const initialHeapMb = Math.max(1, Math.floor(fn.memoryMb * INITIAL_HEAP_SHARE));
    const clock = skewedClock(this.aheadMs);
    if (this.status === 'stopping') return Promise.resolve({ code: null, signal: 'SIGKILL' });
    this.child = startLoggedProcess({
      command: spec.server.nodePath,
      args: [
        `--max-old-space-size=${String(heapMb)}`,
        `--max-semi-space-size=${String(semiSpaceMb)}`,
        `--initial-heap-size=${String(initialHeapMb)}`,
        ...clock.flags,
        BOOTSTRAP_PATH,
      ],
      cwd: fn.codeDir,
      environment: {
        ...buildEnvironmentVariables({
          fn,
          server: spec.server,
          environmentId: this.id,
          runtimeApi: `127.0.0.1:${String(runtimeApiPort)}`,
          metadataToken: this.metadataToken,
          scratchPath,
        }),
        ...clock.variables,
      },
      onLine: (line) => {
        if (line.includes(OUT_OF_MEMORY)) this.ranOutOfMemory = true;
        this.writeLine(line);
      },
      onExit: () => {
        this.deliver = undefined;
        this.status = 'stopping';
      },
    });
    return exitWithin(this.child, this.fn.memoryMb, () => {
      this.ranOutOfMemory = true;
    });
  }

  private writeLine(line: string): void {
    this.running?.tail.add(line);
    this.log.write(line);
    this.spec.server.onLog?.({ functionName: this.fn.name, environmentId: this.id, line });
  }

  /** Gives the event to the runtime once both are there. */
  private handOver(): void {
    const { deliver, running } = this;
    if (deliver === undefined || running === undefined) return;
    this.deliver = undefined;
    const { requestId, functionArn, payload, tenantId } = running.invocation;
    running.startedAtMs = performance.now();
    this.armTimer(this.fn.timeoutMs);
    this.writeLine(`START RequestId: ${requestId} Version: $LATEST`);
    // The service and the sandbox are on one host: its deadline is by the clock that the function sees.
    const deadlineMs = Date.now() + this.aheadMs + this.fn.timeoutMs;
    const root = `1-${Math.floor(Date.now() / 1000).toString(16)}-${requestId.replaceAll('-', '').slice(0, 24)}`;
    deliver({ requestId, functionArn, payload, deadlineMs, traceId: `Root=${root};Sampled=0`, tenantId });
    this.announce(running);
  }

  private announce(running: Running): void {
    const pid = this.child?.pid;
    if (pid === undefined || !running.invocation.isAsynchronous) return;
    this.spec.server.onWork?.({
      name: this.fn.name,
      place: this.id,
      pid,
      isUnderWay: () => this.running === running && !running.isFinished,
      lose: () => {
        this.wasLost = true;
      },
      exhaust: () => {
        this.ranOutOfMemory = true;
        if (this.child !== undefined) endForMemory(this.child);
      },
    });
  }

  private armTimer(limitMs: number): void {
    const running = this.running;
    if (running === undefined) return;
    clearTimeout(running.timer);
    running.timer = setTimeout(() => {
      const { requestId } = running.invocation;
      this.status = 'stopping';
      this.finish('function-error', encodeFunctionError(timeoutError(requestId, limitMs)));
      this.child?.signal('SIGKILL');
    }, limitMs);
  }

  private finish(kind: 'done' | 'function-error', payload: Buffer): void {
    const running = this.running;
    if (running === undefined || running.isFinished) return;
    running.isFinished = true;
    clearTimeout(running.timer);
    // What the function printed is in its pipe by now: it is read in the poll before this callback.
    setImmediate(() => {
      this.writeEnd(running);
      this.running = undefined;
      if (this.status === 'busy') this.status = 'idle';
      running.settle({ kind, payload, logTail: running.tail.text() });
    });
  }

  private writeEnd(running: Running): void {
    const { requestId } = running.invocation;
    this.writeLine(`END RequestId: ${requestId}`);
    this.writeLine(
      reportLine({
        requestId,
        durationMs: running.startedAtMs === undefined ? 0 : performance.now() - running.startedAtMs,
        memoryMb: this.fn.memoryMb,
        peakMb: peakMemoryMb(this.child?.pid),
        initMs: this.initMs,
      }),
    );
    this.initMs = undefined;
  }

  /** Settles the event that the process took with it. */
  private fail(exit: ProcessExit): void {
    const running = this.running;
    if (running === undefined) return;
    if (this.hasInitialized && running.startedAtMs === undefined) {
      clearTimeout(running.timer);
      this.running = undefined;
      running.settle({ kind: 'undelivered' });
      return;
    }
    const { requestId } = running.invocation;
    const exited = this.wasLost ? lostError(requestId) : exitError(requestId, exit);
    const body = this.ranOutOfMemory ? outOfMemoryError(requestId) : exited;
    this.finish('function-error', this.initError ?? encodeFunctionError(body));
  }
}
