import type { AttemptId } from '../../../contracts/ids.ts';
import type { LaunchReason } from '../../model/decision.ts';
import { clonedTasks } from '../../model/stage-clones.ts';
import { type AttemptView, isLive, type JobState, type TaskView } from '../../model/job-view.ts';

/** Copies of a cloned task itself. Backups are another policy's, and a restart stands for what it has cancelled. */
const ownReasons: readonly LaunchReason[] = ['first', 'retry', 'recompute', 'clone'];

/** Bytes read; a copy that has only claimed itself is ahead of one that has not. */
const advance = ({ claimedAt, progress }: AttemptView): number =>
  claimedAt === undefined ? -1 : (progress?.bytesRead ?? 0);

/** The most advanced first; among equals the one that began first, and then the lower number. */
const byAdvance = (a: AttemptView, b: AttemptView): number =>
  advance(b) - advance(a) || (a.claimedAt ?? 0) - (b.claimedAt ?? 0) || a.number - b.number;

/** A task's copies that work and were neither told to stop nor given up, but for the most advanced one. */
function surplusOf(task: TaskView, lost: ReadonlySet<AttemptId>): readonly AttemptView[] {
  if (task.result !== undefined) return [];
  return task.attempts
    .filter((each) => isLive(each) && !each.cancelOrdered && !lost.has(each.id))
    .filter(({ reason }) => ownReasons.includes(reason))
    .sort(byAdvance)
    .slice(1);
}

/**
 * Copies that stop in stages whose clones were taken away, before or by this tick (`preempted`, by place): of each
 * task all but the most advanced one, so that no work is lost but what another copy has done as well. Asked each
 * tick, it has nothing more to say once they were told; what `lost` names does not count.
 */
export const preemptedCopies = (
  state: JobState,
  preempted: ReadonlySet<number>,
  lost: ReadonlySet<AttemptId>,
): readonly AttemptView[] =>
  state.stages
    .filter(
      ({ state: is, index, clones }) => is === 'open' && (preempted.has(index) || clones?.preempted === true),
    )
    .flatMap((stage) => clonedTasks(stage).flatMap((task) => surplusOf(task, lost)));
