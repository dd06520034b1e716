import type { RequestTally } from '../contracts/requests.ts';

/** Counts what a process asks of AWS, each for whom it works at the time. */
export interface RequestMeter {
  /**
   * Counts for `owner` (a job, or an attempt) what `work` and all that it starts asks for, and the time that it holds
   * the function. Answers and throws what `work` does.
   */
  counting<T>(owner: string, work: () => Promise<T>): Promise<T>;
  /** Adds to the counts of whom the caller works for. */
  count(tally: RequestTally): void;
  /** What was counted for an owner and was not taken before. */
  take(owner: string): RequestTally;
}
