import { setTimeout as sleep } from 'node:timers/promises';

/** The embedded services whose requests can be made to fail. */
export type FaultService = 's3' | 'lambda' | 'states' | 'ecs' | 'execute-api' | 'dynamodb' | 'logs' | 'sts';

/** What a fault hook may look at: `resource` is a bucket/key, function name, ARN or path. */
export interface FaultSubject {
  readonly service: FaultService;
  readonly operation: string;
  readonly resource: string;
  /** Of S3's copies: the bucket/key that is copied. */
  readonly source?: string;
  /** Of Lambda's Invoke: `Event`, `RequestResponse` or `DryRun`, or what else the caller wrote. */
  readonly invocationType?: string;
}

/** What happens to the request; a delay comes first, then a drop, then an error. */
export interface Fault {
  readonly delayMs?: number;
  /** Of S3: how many times as long it takes to be served, bodies included. */
  readonly slowdown?: number;
  readonly error?: { readonly status: number; readonly code: string };
  readonly drop?: boolean;
}

/** Called before a request is served; `undefined` lets the request through untouched. */
export type FaultHook = (subject: FaultSubject) => Fault | undefined;

/** What is left to do after the delay has passed. */
export type FaultOutcome =
  | { readonly kind: 'serve'; readonly slowdown?: number }
  | { readonly kind: 'drop' }
  | { readonly kind: 'error'; readonly status: number; readonly code: string };

/** No injected delay outlasts the longest Lambda invocation. */
const MAX_DELAY_MS = 15 * 60 * 1000;

const SERVE: FaultOutcome = { kind: 'serve' };

/**
 * Asks the hook, waits out its delay, and answers what the server has to do next.
 * Without a hook, or if the hook answers nothing, that is `serve`.
 */
export async function awaitFault(hook: FaultHook | undefined, subject: FaultSubject): Promise<FaultOutcome> {
  const fault = hook?.(subject);
  if (fault === undefined) return SERVE;
  const delayMs = Math.min(fault.delayMs ?? 0, MAX_DELAY_MS);
  // Unreferenced: a pending delay must not keep a process alive whose server has closed.
  if (delayMs > 0) await sleep(delayMs, undefined, { ref: false });
  if (fault.drop === true) return { kind: 'drop' };
  if (fault.error !== undefined) return { kind: 'error', ...fault.error };
  return fault.slowdown === undefined ? SERVE : { kind: 'serve', slowdown: fault.slowdown };
}
