import type { JobId } from '../contracts/ids.ts';
import { elapsedMs, type EpochMs } from '../contracts/units.ts';
import type { AttemptView, JobState } from '../core/model/job-view.ts';
import { keepersToRelease } from '../core/policy/keepers-to-release.ts';
import { forEachBounded } from '../lib/bounded.ts';
import type { Launcher } from '../ports/launcher.ts';
import type { Log } from '../ports/log.ts';
import type { LaunchQueue } from './launch-queue.ts';

/** Workers that are told to end at once, and how long they have to put away what they keep before others are. */
const atOnce = 20;
const patienceMs = 30_000;
const parallelism = 8;

/** The workers of a job that its scheduler has told to end, and when it did so last; whoever follows it tells them once more. */
export interface ReleasedKeepers {
  readonly attempts: Set<AttemptView>;
  lastAt?: EpochMs;
}

/**
 * Ends workers of a job that stay for readers where it stands still, since Fargate refuses its launches: those of several jobs may take
 * all room there is, and each would wait for the others'. They put what they keep into the data bucket first, as at any end.
 */
export async function releaseKeepers(
  { launcher, log }: { readonly launcher: Pick<Launcher, 'stop'>; readonly log: Pick<Log, 'info' | 'warn'> },
  session: {
    readonly jobId: JobId;
    readonly state: JobState;
    readonly launches: Pick<LaunchQueue, 'roomOf'>;
    readonly released: ReleasedKeepers;
  },
  now: EpochMs,
): Promise<void> {
  const { jobId, state, launches, released } = session;
  if (launches.roomOf('fargate') === Infinity) return;
  if (released.lastAt !== undefined && elapsedMs(released.lastAt, now) < patienceMs) return;
  const attempts = keepersToRelease(state, released.attempts, atOnce);
  if (attempts.length === 0) return;
  released.lastAt = now;
  await forEachBounded(attempts, parallelism, async (attempt) => {
    const { id: attemptId, node } = attempt;
    released.attempts.add(attempt);
    const wrong = await launcher.stop({ kind: 'fargate', ...(node === undefined ? {} : { node }) });
    if (wrong !== undefined) log.warn('worker-not-stopped', { jobId, attemptId, node, cause: wrong });
    else
      log.info('keeper-released', {
        jobId,
        attemptId,
        reason: 'Fargate has no room for another task of the job',
      });
  });
}
