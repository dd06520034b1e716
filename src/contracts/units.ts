declare const brand: unique symbol;
/** A `T` that only its own constructor makes, so that two kinds of number cannot be swapped. */
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };

/** Whole milliseconds since the Unix epoch, UTC. */
export type EpochMs = Brand<number, 'EpochMs'>;
/** Length of time in whole milliseconds, never negative. */
export type DurationMs = Brand<number, 'DurationMs'>;

/** Mints a point in time from whole milliseconds since the Unix epoch. */
export const epochMs = (ms: number): EpochMs => Math.trunc(ms) as EpochMs;

/** Mints a length of time; negative input becomes zero, since clocks of two machines differ. */
export const durationMs = (ms: number): DurationMs => Math.max(0, Math.trunc(ms)) as DurationMs;

/** Time from `from` to `to`. Never below zero: a worker's clock may run ahead of ours. */
export const elapsedMs = (from: EpochMs, to: EpochMs): DurationMs => durationMs(to - from);

/**
 * Whether something was no longer ago than `length`, by clocks that differ: what seems to come is as good as new, but for
 * what seems to come later than that, whose clock was wrong, so that it would never be old.
 */
export const isRecent = (at: EpochMs, now: EpochMs, length: number): boolean => Math.abs(now - at) <= length;

/** The point in time `length` after `from`. */
export const later = (from: EpochMs, length: DurationMs): EpochMs => epochMs(from + length);

const hourMs = 3_600_000;

/** The number of the hour of a point in time, counted from the Unix epoch: what statistics by the hour are kept under. */
export const hourOf = (at: EpochMs): number => Math.floor(at / hourMs);
