import type { DurationMs, EpochMs } from '../contracts/units.ts';

/** Time. Reading it never advances it. */
export interface Clock {
  now(): EpochMs;
  /** Resolves after `length`, or at once when `signal` fires; never throws. */
  sleep(length: DurationMs, signal?: AbortSignal): Promise<void>;
}
