import type { JobId } from '../contracts/ids.ts';
import type { AttemptRecord } from '../contracts/records.ts';
import { forEachBounded } from '../lib/bounded.ts';
import type { Log } from '../ports/log.ts';
import type { WorkerStopper } from '../ports/worker-stopper.ts';

export interface EndWorkersDeps {
  readonly log: Log;
  /** Absent: their host ends workers in time. */
  readonly workers?: WorkerStopper;
}

/** Of calls that a service takes few of in a second. */
const parallelism = 4;

/**
 * Ends the workers of a job's attempts that were told to stop and have not, in the time that they had: they hang. On Fargate
 * nothing else would, and each is billed for as long as it is there. So also those that were given up while the job ran, whom their
 * scheduler has stopped, or tried to: once more. May be repeated. What goes wrong is told in the log.
 */
export async function endWorkers(
  { workers, log }: EndWorkersDeps,
  jobId: JobId,
  attempts: readonly AttemptRecord[],
): Promise<void> {
  if (workers === undefined) return;
  const left = attempts.filter(({ state }) => state === 'running' || state === 'lost');
  await forEachBounded(left, parallelism, async ({ attemptId, node }) => {
    const wrong = node === undefined ? undefined : await workers.stop(node);
    if (wrong !== undefined) log.warn('worker-not-stopped', { jobId, attemptId, node, cause: wrong });
  });
}
