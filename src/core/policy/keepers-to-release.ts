import { isWorking } from '../model/attempt-life.ts';
import type { AttemptView, JobState, StageView } from '../model/job-view.ts';
import { slotDemand } from './owed-launches.ts';

/** Whether nobody will read a stage's outputs any more, unless they are read again for what is lost. */
const isReadOut = ({ stages }: JobState, { index }: StageView): boolean =>
  stages.every(({ shape, state }) => state === 'done' || !shape.upstream.includes(index));

/**
 * Attempts whose workers stay for readers and are to end now, so that the job, which stands still since Fargate refuses its launches,
 * has their places: as many as it is owed, those first whose outputs nobody reads any more. None while anything of the job is at
 * work or starts: it goes on by itself then.
 *
 * @param released - Those that were told to before.
 */
export function keepersToRelease(
  state: JobState,
  released: ReadonlySet<AttemptView>,
  most: number,
): readonly AttemptView[] {
  if ([...state.live].some((each) => isWorking(each) || each.isHeldBack !== true)) return [];
  const owed = Math.min(most, slotDemand(state) - state.live.size);
  if (owed <= 0) return [];
  const stages = state.stages.toSorted(
    (a, b) => Number(isReadOut(state, b)) - Number(isReadOut(state, a)) || a.index - b.index,
  );
  const found: AttemptView[] = [];
  for (const { tasks } of stages) {
    for (const { result } of tasks) {
      const attempt = result === undefined ? undefined : state.attempts.get(result.attemptId);
      if (attempt?.keeps !== true || attempt.node === undefined || released.has(attempt)) continue;
      found.push(attempt);
      if (found.length === owed) return found;
    }
  }
  return found;
}
