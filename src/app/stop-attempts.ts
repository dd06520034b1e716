import type { AttemptId } from '../contracts/ids.ts';
import type { AttemptRecord } from '../contracts/records.ts';
import { type DurationMs, durationMs, epochMs, later } from '../contracts/units.ts';
import { forEachBounded } from '../lib/bounded.ts';
import type { AttemptStore, TaskSpace } from '../ports/attempt-store.ts';
import type { Clock } from '../ports/clock.ts';

const cancelParallelism = 32;
const pollMs = durationMs(250);
/** Writers' clocks may differ by so much. */
const clockSkewMs = 5_000;

/** An attempt that was told to stop before it claimed itself never will. */
const mayWork = ({ state, order }: AttemptRecord): boolean =>
  state === 'running' || (state === 'launched' && order === 'continue');

/**
 * Orders every live attempt of a job to stop and waits for them to obey, but not for ever: a killed one never
 * answers. At least one look is taken. Costs the job's attempts once, and then what changes. Answers all attempts
 * of the job as they were at the last look.
 */
export async function stopAttempts(
  deps: { readonly attempts: AttemptStore; readonly clock: Clock },
  space: TaskSpace,
  patienceMs: DurationMs,
): Promise<readonly AttemptRecord[]> {
  const until = later(deps.clock.now(), patienceMs);
  const all = new Map<AttemptId, AttemptRecord>();
  const live = new Map<AttemptId, AttemptRecord>();
  let since = epochMs(0);
  for (;;) {
    const now = deps.clock.now();
    const { attempts } = await deps.attempts.changes(space, since);
    for (const attempt of attempts) {
      all.set(attempt.attemptId, attempt);
      if (mayWork(attempt)) live.set(attempt.attemptId, attempt);
      else live.delete(attempt.attemptId);
    }
    if (live.size === 0) break;
    await forEachBounded(
      [...live.values()].filter(({ order }) => order === 'continue'),
      cancelParallelism,
      ({ attemptId }) => deps.attempts.orderCancel(space, attemptId, deps.clock.now()),
    );
    if (now >= until) break;
    since = epochMs(Math.max(0, now - clockSkewMs));
    await deps.clock.sleep(pollMs);
  }
  return [...all.values()];
}
