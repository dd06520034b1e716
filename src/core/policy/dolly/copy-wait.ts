import type { EpochMs } from '../../../contracts/units.ts';
import { clonedTasks, isAboutToStart, owedCopies } from '../../model/stage-clones.ts';
import type { AwaitedCopies } from '../../model/upstream-copies.ts';
import type { JobState, StageClones, StageView, TaskView } from '../../model/job-view.ts';

/** Whether ω has passed since a stage opened. */
const isWaitOver = ({ openedAt }: StageView, { waitMs = 0 }: StageClones, now: EpochMs): boolean =>
  openedAt === undefined || now - openedAt >= waitMs;

/** A cloned stage at one time, and the copies that its tasks wait for. */
export interface CopyWait {
  readonly stage: StageView;
  readonly clones: StageClones;
  readonly now: EpochMs;
  readonly awaited: AwaitedCopies;
}

/**
 * How many copies of a task, the original included, may run now: those for which each upstream output that it reads
 * has a copy of their own, and all once ω has passed or no further copy is to be had. The original never waits.
 *
 * Source: Dolly §4.4: a downstream clone waits for ω to get an exclusive copy, and then reads with contention.
 */
export function readyCopies(task: TaskView, { stage, clones, now, awaited }: CopyWait): number {
  if (isWaitOver(stage, clones, now)) return clones.copies;
  return Math.min(clones.copies, awaited(task));
}

/** Whether clones of a stage are to be launched that may yet get upstream copies of their own. */
function awaitsCopies(consumer: StageView, now: EpochMs): boolean {
  const { clones } = consumer;
  if (clones === undefined) return isAboutToStart(consumer);
  return (
    !isWaitOver(consumer, clones, now) && clonedTasks(consumer).some((task) => owedCopies(task, clones) > 0)
  );
}

/**
 * Whether copies of a stage's tasks that have a result go on, to serve clones downstream with copies of their own:
 * while the stage is under way, since until it is done nobody waits for them, and then while such clones wait, for
 * ω at most. Never where ω is 0, where the stage's clones were taken away, or in a stage that no other reads.
 *
 * Source: Dolly §4.4: upstream clones that are unfinished after ω are killed.
 */
export function lateCopiesServe(state: JobState, stage: StageView, now: EpochMs): boolean {
  const waitMs = stage.clones?.waitMs ?? 0;
  if (waitMs === 0 || stage.clones?.preempted === true) return false;
  const consumers = state.stages.filter(({ shape }) => shape.upstream.includes(stage.index));
  if (consumers.length === 0) return false;
  if (stage.state !== 'done') return true;
  return consumers.some((consumer) =>
    consumer.state === 'waiting' ? now - (stage.doneAt ?? now) < waitMs : awaitsCopies(consumer, now),
  );
}
