import type { AttemptId } from '../contracts/ids.ts';
import type { AttemptPayload } from '../contracts/payloads.ts';
import type { Worker } from '../contracts/job-spec.ts';
import type { ApiRate } from '../core/capacity/api-pace.ts';

export interface LaunchRequest extends Worker {
  readonly payload: AttemptPayload;
  /** Nodes that must not run it, for a host that can choose. Of others a worker declines, as its payload says. */
  readonly avoidNodes?: readonly string[];
  /** The zone in which it had best run, of those that the host lets be chosen; absent: any. It runs elsewhere for want of room. */
  readonly zone?: string;
}

/** `throttled`: to be tried again later; the attempt has not begun, unless `isUnanswered`. `refused`: it never will. */
export interface LaunchOutcome {
  readonly attemptId: AttemptId;
  readonly outcome: 'accepted' | 'throttled' | 'refused';
  /** Present where it is refused for want of a right, which the message names. */
  readonly denied?: true;
  /**
   * Present where a throttled launch says nothing of the room there is: no answer came, the service failed, or the function is
   * being changed. The attempt may have begun all the same.
   */
  readonly isUnanswered?: true;
  readonly message?: string;
}

/** What a host says of launches on one kind of worker. */
export interface LaunchTerms {
  /** Whether a launch that was accepted may wait for room, unseen: Lambda's queue of asynchronous events. */
  readonly waits: boolean;
  /** How fast launches may be made; absent: as fast as they come. */
  readonly rate?: ApiRate;
  /** Whether a worker takes up one attempt after the other, where they are short; absent: it does. */
  readonly takesPacks?: boolean;
}

/** What a host knows of the nodes that attempts run on. */
export interface NodeTerms {
  /**
   * Whether an attempt that is told to stop leaves its slot at once. Not where its worker reads the order with its next
   * report, as on Lambda.
   */
  readonly killsAtOnce: boolean;
  /** Free slots of each node that has any, by its name; undefined on hosts that place attempts themselves. */
  readonly free: ReadonlyMap<string, number> | undefined;
}

/** Starts workers. A launch may be delivered twice or not at all: claims sort that out. */
export interface Launcher {
  /** The terms for a kind of worker. Absent: launches neither wait nor need a pace. */
  terms?(kind: Worker['kind']): LaunchTerms;
  /** Its nodes, as they are now. Absent: they are nobody's to choose, and orders to stop are read with reports. */
  nodes?(): NodeTerms;
  /** The zones among which a launch on Fargate may choose; absent: none. */
  zones?(): readonly string[];
  /** One outcome per request, in order. Passing faults count as `throttled`, with `isUnanswered`. Throws only on our own bugs. */
  launch(requests: readonly LaunchRequest[]): Promise<readonly LaunchOutcome[]>;
  /**
   * Ends an attempt for good where its kind allows (Fargate, by node); else no effect. Answers what went wrong, if anything.
   * Never throws.
   */
  stop(attempt: { kind: 'lambda' | 'fargate'; node?: string }): Promise<string | undefined>;
}
