import type { AttemptId } from '../../contracts/ids.ts';
import type { EpochMs } from '../../contracts/units.ts';
import type { AttemptView, JobState } from './job-view.ts';

/** Notes that an attempt's launch waits in the scheduler's own queue; no effect on one that was claimed. */
export function holdLaunch(state: JobState, id: AttemptId): void {
  const attempt = state.attempts.get(id);
  if (attempt?.state === 'launched') attempt.isHeldBack = true;
}

/** Stamps a launch with the time at which it was made: what its claim lease and its queueing are counted from. */
export function stampLaunch(state: JobState, id: AttemptId, at: EpochMs): void {
  const attempt = state.attempts.get(id);
  if (attempt === undefined) return;
  delete attempt.isHeldBack;
  attempt.launchedAt = at;
}

/** Attempts that were decided on and that nobody has claimed, the last launched first; ties by id. */
export const unclaimedLaunches = (state: JobState): readonly AttemptView[] =>
  [...state.live]
    .filter((attempt) => attempt.state === 'launched')
    .sort((a, b) => b.launchedAt - a.launchedAt || (a.id < b.id ? -1 : 1));
