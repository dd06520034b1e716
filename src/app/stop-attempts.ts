import type { AttemptId } from '../contracts/ids.ts';
import type { AttemptOrder, AttemptRecord } from '../contracts/records.ts';
import { type DurationMs, durationMs, later } from '../contracts/units.ts';
import { forEachBounded } from '../lib/bounded.ts';
import type { AttemptStore, TaskSpace } from '../ports/attempt-store.ts';
import type { Clock } from '../ports/clock.ts';

const cancelParallelism = 32;
/** The first pause between two looks; each is longer than the last, up to the longest. */
const firstPauseMs = 250;
const longestPauseMs = 2_000;
const pauseGrowth = 1.5;

/** An attempt that was told to stop before it claimed itself never will. */
const mayWork = ({ state, order }: AttemptRecord): boolean =>
  state === 'running' || (state === 'launched' && order === 'continue');

/**
 * Orders every live attempt of a job to stop and waits for them to obey, but not for ever: a killed one never
 * answers. One whose record cannot be read is stopped by its key. At least one look is taken. Costs the job's records
 * once, and then those that live at each look. Answers all attempts of the job as they were at the last look.
 */
export async function stopAttempts(
  deps: { readonly attempts: AttemptStore; readonly clock: Clock },
  space: TaskSpace,
  patienceMs: DurationMs,
): Promise<readonly AttemptRecord[]> {
  const until = later(deps.clock.now(), patienceMs);
  const all = new Map<AttemptId, AttemptRecord>();
  const live = new Map<AttemptId, AttemptOrder>();
  let pauseMs = firstPauseMs;
  let isFirst = true;
  for (;;) {
    const now = deps.clock.now();
    const { attempts, unreadable = [] } = isFirst
      ? await deps.attempts.all(space)
      : await deps.attempts.read(space, [...live.keys()], 'outputs');
    isFirst = false;
    for (const attempt of attempts) {
      all.set(attempt.attemptId, attempt);
      if (mayWork(attempt)) live.set(attempt.attemptId, attempt.order);
      else live.delete(attempt.attemptId);
    }
    // The key says which attempt it is, and nothing more need be known of one that is to stop.
    for (const { attemptId, kind, mayWork: works } of unreadable) {
      if (attemptId === undefined || kind !== 'attempt') continue;
      if (!works) live.delete(attemptId);
      else if (!live.has(attemptId)) live.set(attemptId, 'continue');
    }
    if (live.size === 0) break;
    const untold = [...live].flatMap(([id, order]) => (order === 'continue' ? [id] : []));
    await forEachBounded(untold, cancelParallelism, async (id) => {
      await deps.attempts.orderCancel(space, id);
      live.set(id, 'cancel');
    });
    if (now >= until) break;
    await deps.clock.sleep(durationMs(Math.min(pauseMs, longestPauseMs, until - now)));
    pauseMs *= pauseGrowth;
  }
  return [...all.values()];
}
