import type { JobId } from '../contracts/ids.ts';

/** The words by which the attempts of jobs find their sessions: whoever knows a job's word speaks for one of them. */
export interface JobWords {
  /** Undefined where the job has none, as on hosts without sessions. */
  wordOf(jobId: JobId): Promise<string | undefined>;
}
