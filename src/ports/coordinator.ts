import type { JobId } from '../contracts/ids.ts';

/** The state machine that drives each job, one execution per job, named as the job. */
export interface Coordinator {
  /** Idempotent: `exists` if the job's execution was started before. */
  start(jobId: JobId): Promise<'started' | 'exists'>;
  /** Ends the execution without Finish. No effect if it has ended. */
  stop(jobId: JobId, cause: string): Promise<void>;
  /** `missing` if it was never started. */
  status(jobId: JobId): Promise<'running' | 'succeeded' | 'failed' | 'aborted' | 'missing'>;
}
