import type { JobId } from '../contracts/ids.ts';
import type { EpochMs } from '../contracts/units.ts';

/** One line that a function or worker of a job logged. */
export interface LogLine {
  readonly at: EpochMs;
  /** Log stream, which is the execution environment. */
  readonly source: string;
  readonly text: string;
}

/** Which lines of a job are read. */
export interface LogPage {
  readonly since: EpochMs;
  /** Nothing logged after it is looked for; absent: all up to now. */
  readonly until?: EpochMs;
  /** Of lines that are wanted. */
  readonly limit: number;
  /** Asked of each line that is found, about in their order, until there are as many as the limit; all are wanted without it. */
  readonly wants?: (line: LogLine) => boolean;
  /** Ends the reading, with its reason. */
  readonly signal?: AbortSignal;
}

/** What was read of a job's logs. */
export interface LogRead {
  /** Oldest first. */
  readonly lines: readonly LogLine[];
  /** Whether the reader gave up with fewer lines than the limit, and more to search. */
  readonly isCut: boolean;
}

/** Logs of a job, across all functions and workers. */
export interface LogReader {
  /**
   * Wanted lines that name the job, without those that say that they are another job's (one that reads its output names it, too),
   * logged from `since` to `until`, at most `limit`; none where there are none. Lines arrive with some delay, so a follower goes back a little and drops what it has shown.
   */
  read(jobId: JobId, page: LogPage): Promise<LogRead>;
}
