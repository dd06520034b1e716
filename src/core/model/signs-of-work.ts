import type { AttemptRecord } from '../../contracts/records.ts';
import { type DurationMs, durationMs, elapsedMs, type EpochMs } from '../../contracts/units.ts';
import { isWorking } from './attempt-life.ts';
import { type AttemptView, isUnclaimed, type JobState } from './job-view.ts';

/** Of launches that were made within so long the first counts. */
const countEveryMs = 15 * 60_000;

/** Notes when a worker was at work. */
export function noteWork(state: Pick<JobState, 'workedAt'>, at: EpochMs): void {
  if (state.workedAt === undefined || state.workedAt < at) state.workedAt = at;
}

/** Notes what the record of an attempt says of when its worker was at work, by that worker's clock. */
export function noteWorkOf(
  state: Pick<JobState, 'workedAt'>,
  { claimedAt, reportedAt = claimedAt, endedAt = reportedAt }: AttemptRecord,
): void {
  if (claimedAt !== undefined && endedAt !== undefined) noteWork(state, endedAt);
}

/** Whether the launch of an attempt was made, and no worker has taken it up. */
const isInVain = (attempt: AttemptView): boolean =>
  attempt.state === 'launched'
    ? attempt.isHeldBack !== true
    : attempt.state === 'lost' && isUnclaimed(attempt);

/**
 * For how long a job has made launches of which no worker took up any; 0 while one is at work. Of a job that has begun,
 * only quarters of an hour count in which it made one: it may have had no room, no slots, or no scheduler, in between. A launch that was
 * refused is none: its attempt is withdrawn. They are found among the attempts, which the decision log tells also to whoever takes over,
 * where neither refusals are told nor when launches were made. Costs a pass over the attempts, once nothing is at work.
 */
export function launchedInVainMs(
  { firstLaunchAt, workedAt, attempts, live }: JobState,
  now: EpochMs,
): DurationMs {
  if (firstLaunchAt === undefined) return durationMs(0);
  if (workedAt === undefined) return elapsedMs(firstLaunchAt, now);
  if ([...live].some(isWorking)) return durationMs(0);
  const times = [...attempts.values()]
    .filter((each) => isInVain(each) && each.launchedAt > workedAt)
    .map(({ launchedAt }) => launchedAt)
    .sort((a, b) => a - b);
  let quarters = 0;
  let last: EpochMs | undefined;
  for (const at of times) {
    if (last !== undefined && elapsedMs(last, at) < countEveryMs) continue;
    quarters += 1;
    last = at;
  }
  return durationMs(quarters * countEveryMs);
}
