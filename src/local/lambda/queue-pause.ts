const firstMs = 1_000;
const longestMs = 5 * 60_000;

/**
 * How long Lambda's queue keeps an asynchronous event that was throttled `times` times in a row before it tries again:
 * from a second, twice as long each time, up to five minutes. It says no more of it than that.
 */
export const queuePauseMs = (times: number): number =>
  Math.min(longestMs, firstMs * 2 ** Math.max(0, times - 1));
