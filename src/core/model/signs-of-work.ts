import type { AttemptRecord } from '../../contracts/records.ts';
import { type DurationMs, durationMs, elapsedMs, type EpochMs } from '../../contracts/units.ts';
import { isWorking } from './attempt-life.ts';
import type { JobState } from './job-view.ts';

/** Of launches that are decided on within so long the first is noted. */
const noteEveryMs = 15 * 60_000;

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

/** Notes that a launch was decided on. Those before the last work are of no more use, but for the first of a job that has had none. */
export function noteLaunch({ launchTimes, workedAt }: JobState, now: EpochMs): void {
  if (workedAt !== undefined) {
    const useful = launchTimes.filter((at) => at > workedAt);
    launchTimes.splice(0, launchTimes.length, ...useful);
  }
  const last = launchTimes.at(-1);
  if (last === undefined || elapsedMs(last, now) >= noteEveryMs) launchTimes.push(now);
}

/**
 * For how long a job has launched attempts of which no worker took up any; 0 while one is at work. Of a job that has begun, only quarters
 * of an hour count in which it did launch: it may have had no slots, or no scheduler, in between.
 */
export function launchedInVainMs({ workedAt, launchTimes, live }: JobState, now: EpochMs): DurationMs {
  const [first] = launchTimes;
  if (first === undefined) return durationMs(0);
  if (workedAt === undefined) return elapsedMs(first, now);
  const launches = launchTimes.filter((at) => at > workedAt).length;
  return durationMs(launches === 0 || [...live].some(isWorking) ? 0 : launches * noteEveryMs);
}
