import type { AttemptId, TaskId } from '../../contracts/ids.ts';

/** Why an attempt is launched. `first` and `retry` are owed; the others are copies that compete with one running. */
export type LaunchReason = 'first' | 'retry' | 'restart' | 'backup' | 'clone';

/** Why an attempt is told to stop. */
export type CancelReason = 'sibling-won' | 'job-cancelled' | 'job-failed' | 'restarted';

/** Why an attempt is given up: it never claimed itself, or it stopped reporting. */
export type LossReason = 'unclaimed' | 'silent';

/** What a tick does. Each is idempotent by its ids, so that a takeover may repeat the last tick's. */
export type Decision =
  | { readonly kind: 'open-stage'; readonly stage: number }
  | { readonly kind: 'launch'; readonly attemptId: AttemptId; readonly reason: LaunchReason }
  | { readonly kind: 'cancel'; readonly attemptId: AttemptId; readonly reason: CancelReason }
  | { readonly kind: 'lose'; readonly attemptId: AttemptId; readonly reason: LossReason };

/** Why something proposed was not done, from a closed union. */
export type RefusalReason = 'no-slot' | 'tick-full' | 'backing-off' | 'last-live-copy' | 'task-done';

/** A refusal, logged beside the decisions so that `explain` can tell why nothing happened. */
export interface Refusal {
  readonly kind: 'refuse';
  readonly taskId: TaskId;
  readonly reason: RefusalReason;
}

/** How a job stands after a tick. */
export type TickOutcome =
  | { readonly kind: 'continue' }
  | { readonly kind: 'finish' }
  | { readonly kind: 'fail'; readonly message: string };
