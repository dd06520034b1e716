import type { AttemptId } from '../../contracts/ids.ts';
import type { EpochMs } from '../../contracts/units.ts';
import type { AttemptView, JobState } from './job-view.ts';
import { ridersOf } from './packs.ts';

/**
 * Notes that an attempt's launch waits in the scheduler's own queue, and those that ride behind it; no effect on one that
 * was claimed.
 */
export function holdLaunch(state: JobState, id: AttemptId): void {
  const attempt = state.attempts.get(id);
  if (attempt?.state !== 'launched') return;
  attempt.isHeldBack = true;
  for (const rider of ridersOf(state, id)) rider.isHeldBack = true;
}

/**
 * Takes over that an attempt which nobody has begun is launched anew, on another worker or for another reason: that its
 * earlier launch was withdrawn, of which the log says nothing, whoever takes the job over knows from this alone. No effect
 * of the same launch said again, as each takeover does.
 */
export function launchAnew(
  attempt: AttemptView,
  { reason, worker, now }: Pick<AttemptView, 'reason' | 'worker'> & { readonly now: EpochMs },
): void {
  const before = attempt.worker;
  const isSame = attempt.reason === reason && before?.kind === worker?.kind && before?.size === worker?.size;
  if (attempt.state !== 'launched' || isSame) return;
  attempt.reason = reason;
  attempt.worker = worker;
  attempt.launchedAt = now;
  attempt.seenAt = now;
}

/**
 * Stamps a launch with the time at which it was made: what its claim lease and its queueing are counted from. Those that
 * ride behind it were launched with it.
 */
export function stampLaunch(state: JobState, id: AttemptId, at: EpochMs): void {
  const attempt = state.attempts.get(id);
  if (attempt === undefined) return;
  attempt.isHeldBack = undefined;
  attempt.launchedAt = at;
  const pack = state.packs.get(id);
  if (pack === undefined) return;
  if (attempt.state === 'launched') pack.since = at;
  for (const rider of pack.riders) rider.isHeldBack = undefined;
}

/**
 * Attempts that were decided on with a worker of their own and that nobody has claimed, the last launched first; ties by
 * id.
 */
export const unclaimedLaunches = (state: JobState): readonly AttemptView[] =>
  [...state.live]
    .filter((attempt) => attempt.state === 'launched' && attempt.place !== 'carrier')
    .sort((a, b) => b.launchedAt - a.launchedAt || (a.id < b.id ? -1 : 1));
