import type { AttemptId } from '../contracts/ids.ts';
import type { AttemptPayload } from '../contracts/payloads.ts';
import type { Worker } from '../contracts/job-spec.ts';

export interface LaunchRequest extends Worker {
  readonly payload: AttemptPayload;
  /** Nodes that must not run it, as far as the host can choose. */
  readonly avoidNodes?: readonly string[];
}

/** `throttled`: no room now, try again later, the attempt has not begun. `refused`: it never will. */
export interface LaunchOutcome {
  readonly attemptId: AttemptId;
  readonly outcome: 'accepted' | 'throttled' | 'refused';
  /** Present where it is refused for want of a right, which the message names. */
  readonly denied?: true;
  readonly message?: string;
}

/** Starts workers. A launch may be delivered twice or not at all: claims sort that out. */
export interface Launcher {
  /** One outcome per request, in order. Passing faults count as `throttled`. Throws only on our own bugs. */
  launch(requests: readonly LaunchRequest[]): Promise<readonly LaunchOutcome[]>;
  /** Ends an attempt for good where its kind allows (Fargate, by node); else no effect. Never throws. */
  stop(attempt: { kind: 'lambda' | 'fargate'; node?: string }): Promise<void>;
}
