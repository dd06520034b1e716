import type { DurationMs } from '../../contracts/units.ts';

/** Times and limits by which a tick decides. */
export interface TickConfig {
  /** A launched attempt that has not claimed itself for so long is lost. */
  readonly claimLeaseMs: DurationMs;
  /** A running attempt that has not reported for so long is lost. */
  readonly silenceMs: DurationMs;
  /** Failed and lost attempts of a task before the job fails. */
  readonly attemptsPerTask: number;
  /** First wait before a retry; doubles with each failure, up to the ceiling; full jitter. */
  readonly retryBaseMs: DurationMs;
  readonly retryCeilingMs: DurationMs;
  /** After the last commit, how long to wait for losers to stop before the job is finished without them. */
  readonly drainMs: DurationMs;
  readonly decisionsPerTick: number;
}

/** What a tick may use. */
export interface TickBudget {
  /** Slots that the capacity ledger has granted to the job. */
  readonly slots: number;
  readonly cancelRequested: boolean;
}
