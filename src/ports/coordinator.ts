import type { JobId } from '../contracts/ids.ts';

/** `missing`: never started, or so long ago that nobody remembers. */
export type ExecutionState = 'running' | 'succeeded' | 'failed' | 'aborted' | 'missing';

/** The state machine that drives each job, one execution per job, named as the job. */
export interface Coordinator {
  /** Idempotent: `exists` if the job's execution was started before. */
  start(jobId: JobId): Promise<'started' | 'exists'>;
  /** Ends the execution without Finish. No effect if it has ended. */
  stop(jobId: JobId, cause: string): Promise<void>;
  /** What has become of the job's execution; may lag a little behind what was just started. */
  status(jobId: JobId): Promise<ExecutionState>;
  /**
   * Starts an execution that removes what a job left that has ended on record, as its own would have: the state
   * machine's first step finds the job ended, and goes on to Fail. A job that has not ended, since its output is all
   * there, goes through all steps to its good end. Once per job, however often it is called.
   */
  startEnding(jobId: JobId): Promise<void>;
}
