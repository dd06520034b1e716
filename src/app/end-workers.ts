import type { JobId } from '../contracts/ids.ts';
import type { AttemptRecord } from '../contracts/records.ts';
import { durationMs } from '../contracts/units.ts';
import { forEachBounded } from '../lib/bounded.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { WorkerStopper } from '../ports/worker-stopper.ts';

export interface EndWorkersDeps {
  readonly log: Log;
  /** Absent: their host ends workers in time. */
  readonly workers?: WorkerStopper;
}

/** Of calls that a service takes few of in a second. */
const parallelism = 4;
/** Within that a worker ends by itself whose job has ended: one that stays for readers looks every two seconds. */
const leavesWithinMs = durationMs(5_000);

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
  await stopWorkers({ workers, log }, jobId, left);
}

type WithWorkers = Required<EndWorkersDeps>;

async function stopWorkers(
  { workers, log }: WithWorkers,
  jobId: JobId,
  attempts: readonly AttemptRecord[],
): Promise<void> {
  await forEachBounded(attempts, parallelism, async ({ attemptId, node }) => {
    const wrong = node === undefined ? undefined : await workers.stop(node);
    if (wrong !== undefined) log.warn('worker-not-stopped', { jobId, attemptId, node, cause: wrong });
  });
}

/**
 * Ends the workers of a job's attempts that have ended and whose tasks are there all the same: they hang after their work, as one
 * may that stays for readers. Only once what the job shares is removed, by which those that are well see its end and leave;
 * they are given a moment. May be repeated. What goes wrong is told in the log.
 */
export async function endLeftWorkers(
  { workers, log, clock }: EndWorkersDeps & { readonly clock: Clock },
  jobId: JobId,
  attempts: readonly AttemptRecord[],
): Promise<void> {
  if (workers === undefined) return;
  const living = async (among: readonly AttemptRecord[]): Promise<readonly AttemptRecord[]> => {
    const { nodes, wrong } = await workers.living(among.flatMap(({ node }) => node ?? []));
    if (wrong !== undefined) log.warn('workers-not-found', { jobId, cause: wrong });
    const found = new Set(nodes);
    return among.filter(({ node }) => node !== undefined && found.has(node));
  };
  const ended = attempts
    .filter(({ state }) => state === 'done' || state === 'failed' || state === 'cancelled')
    .toSorted((a, b) => (b.endedAt ?? 0) - (a.endedAt ?? 0));
  const first = await living(ended);
  if (first.length === 0) return;
  await clock.sleep(leavesWithinMs);
  await stopWorkers({ workers, log }, jobId, await living(first));
}
