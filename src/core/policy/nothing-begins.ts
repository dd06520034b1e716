import { elapsedMs, type EpochMs } from '../../contracts/units.ts';
import type { JobState } from '../model/job-view.ts';
import { launchedInVainMs } from '../model/signs-of-work.ts';
import type { TickConfig } from '../model/tick-config.ts';

/** That nothing of a job begins, or goes on, however often it is launched; undefined while it may. */
export function nothingBegins(
  state: JobState,
  now: EpochMs,
  { nothingBeginsMs }: Pick<TickConfig, 'nothingBeginsMs'>,
): string | undefined {
  if (nothingBeginsMs === undefined) return undefined;
  // Launches since it was last at work are looked through only where there may be enough of them.
  if (state.workedAt !== undefined && elapsedMs(state.workedAt, now) <= nothingBeginsMs) return undefined;
  if (launchedInVainMs(state, now) <= nothingBeginsMs) return undefined;
  const hours = Math.round(nothingBeginsMs / 36_000) / 100;
  const why = 'others use up all concurrency, or its functions or tasks cannot start';
  if (state.workedAt !== undefined)
    return `no worker has taken up any of the job's launches for ${hours} h: ${why}`;
  return `no worker has begun within ${hours} h of the job's first launch, of ${state.attempts.size}: ${why}`;
}
