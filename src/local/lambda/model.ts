import type { FaultHook } from '../http/fault-hook.ts';
import type { Credentials, Principals } from '../http/principals.ts';
import type { DeliveryHook } from '../inject/delivery.ts';
import type { ClockHook, StartHook } from '../inject/start.ts';
import type { WorkHook } from '../inject/work.ts';

/** A function as the template describes it. */
export interface LocalFunction {
  readonly name: string;
  /** The unzipped asset. */
  readonly codeDir: string;
  /** Such as `index.handler`. */
  readonly handler: string;
  readonly timeoutMs: number;
  readonly memoryMb: number;
  readonly environment: Readonly<Record<string, string>>;
  /**
   * At most this many invocations at once, which no other function can take;
   * shrinks in proportion where reservations exceed the server's `maxConcurrency`.
   */
  readonly reservedConcurrency?: number;
  /** MaximumRetryAttempts of asynchronous invocations. */
  readonly asyncRetries: 0 | 1 | 2;
  /** MaximumEventAgeInSeconds, in milliseconds: older events are dropped. */
  readonly maxEventAgeMs: number;
  /** Function that is told of asynchronous events which came to nothing; absent: nobody is. */
  readonly onFailure?: string;
  /** Whether an environment serves one tenant only: then every invocation names its tenant, and else none does. */
  readonly isPerTenant?: boolean;
  /** Aliases and versions that may be called besides `$LATEST`. */
  readonly qualifiers?: readonly string[];
}

/** Keys of the one caller that the server knows. */
export interface LocalCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** An asynchronous event that will not be tried again. */
export interface DroppedEvent {
  readonly functionName: string;
  readonly requestId: string;
  /** `not-told`: the word of another's failure, which could not be delivered. */
  readonly reason: 'retries-exhausted' | 'too-old' | 'closed' | 'not-told';
  readonly why?: string;
}

export interface LambdaServerOptions {
  /** 0 or absent: any free port. */
  readonly port?: number;
  readonly credentials: LocalCredentials;
  /** Whose keys are accepted; absent: `credentials` alone. */
  readonly principals?: Principals;
  readonly region: string;
  /** Part of function ARNs; twelve zeros by default. */
  readonly accountId?: string;
  readonly functions: readonly LocalFunction[];
  /** Processes and running invocations of all functions together. */
  readonly maxConcurrency: number;
  /** An environment that was idle for so long is ended; a minute by default. */
  readonly idleMs?: number;
  /** At most so many environments stay idle; as many as may run by default. */
  readonly maxIdle?: number;
  /** One file per environment is appended to: `<function>/<environmentId>.log`. */
  readonly logDir: string;
  /** Holds a private TMPDIR for each environment while it lives; the system's by default. */
  readonly scratchDir?: string;
  /** The Node 24 that runs functions. */
  readonly nodePath: string;
  /** Keys of a function's role; those of the one caller where nothing is said. */
  readonly credentialsOf?: (functionName: string) => Credentials | undefined;
  /** Endpoints and the like, for all functions. */
  readonly extraEnvironment: Readonly<Record<string, string>>;
  /** Zone id of the n-th environment, counted from 0; `use1-az1` by default. */
  readonly zoneOf?: (environmentIndex: number) => string;
  readonly onRequest?: FaultHook;
  /** `host:port` of proxies before it that pass requests on as they were signed. */
  readonly hosts?: ReadonlySet<string>;
  /** Says what becomes of asynchronous events of the Invoke API once they are accepted. */
  readonly onAccepted?: DeliveryHook;
  /** Told of each asynchronous event as a process takes it. */
  readonly onWork?: WorkHook;
  /** Says how much longer the start of an environment takes; what is to run in it waits. */
  readonly onStart?: StartHook;
  /** Says how far the clock of an environment is ahead. */
  readonly onClock?: ClockHook;
  /** Waiting asynchronous events of all functions; 10,000 by default. */
  readonly maxQueuedEvents?: number;
  /**
   * Pause before an asynchronous event that has found no room n times is tried again, though room may appear before: see
   * `queuePauseMs`. Absent: what waits is served as room appears, first come, first served.
   */
  readonly throttledPauseMs?: (times: number) => number;
  /** Delay before the n-th retry (1, 2) of an asynchronous event; n seconds by default. */
  readonly asyncRetryDelayMs?: (retry: number) => number;
  /** Each line of output, as it is written to the log. */
  readonly onLog?: (entry: LogEntry) => void;
  readonly onDropped?: (event: DroppedEvent) => void;
  /** Why a function may not call another one, by the names of both; absent: each may call each. */
  readonly mayCall?: (functionName: string, called: string) => string | undefined;
}

export interface LogEntry {
  readonly functionName: string;
  readonly environmentId: string;
  readonly line: string;
}

export type EnvironmentState = 'starting' | 'idle' | 'busy' | 'stopping';

/** A living environment, for those who watch or harm it. */
export interface EnvironmentView {
  readonly functionName: string;
  /** Undefined until the process has started. */
  readonly pid: number | undefined;
  readonly environmentId: string;
  readonly state: EnvironmentState;
  readonly zoneId: string;
  /** Whose invocations alone it serves; undefined where the function has no tenants. */
  readonly tenantId: string | undefined;
  /** Of the running invocation. */
  readonly requestId: string | undefined;
}

/** An answer of the service itself that is not the function's. */
export interface Refusal {
  readonly status: number;
  /** Name of the SDK's exception. */
  readonly code: string;
  readonly message: string;
  readonly reason?: string;
}

/** What became of a synchronous invocation. */
export type InvokeOutcome =
  | { readonly kind: 'done'; readonly payload: Buffer; readonly logTail: string }
  | { readonly kind: 'function-error'; readonly payload: Buffer; readonly logTail: string }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

export const MAX_SYNC_BYTES = 6 * 1024 * 1024;
export const MAX_ASYNC_BYTES = 1024 * 1024;
/** AWS allows 100 bytes more on the way out. */
export const MAX_RESPONSE_BYTES = MAX_SYNC_BYTES + 100;
/** How much of an invocation's log LogType=Tail returns. */
export const LOG_TAIL_BYTES = 4096;
export const DEFAULT_ACCOUNT_ID = '000000000000';
export const DEFAULT_ZONE_ID = 'use1-az1';
