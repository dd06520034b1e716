import type { JobId } from '../../src/contracts/ids.ts';
import type { RequestMeter } from '../../src/ports/request-meter.ts';

/** Dependencies of a function that counts what it asks for. */
export interface Metered {
  readonly requests: RequestMeter;
}

/** What Lambda itself logs of an invocation: its start, its end, and its report. */
export const platformLogBytes = 400;

/**
 * State transitions of a job by the function that stands for them: the start of its execution, and the end of it, come
 * with the first and the last step. A step that is tried again is billed again, and counts itself again.
 */
export const transitions = { plan: 2, schedule: 1, finish: 2, fail: 3, none: 0 } as const;

/** Runs an invocation of one of the coordinator's functions for a job, with all that it asks for counted as the job's. */
export const invocation = <T>(
  { requests }: Metered,
  jobId: JobId,
  states: number,
  work: () => Promise<T>,
): Promise<T> =>
  requests.counting(jobId, () => {
    requests.count({ lambda: 1, states, logBytes: platformLogBytes });
    return work();
  });
