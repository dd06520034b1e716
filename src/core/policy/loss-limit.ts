import { addSlotTimes, slotTimeOf } from '../estimate/slot-time.ts';
import type { PolicyView, StageRuns } from './policy-set.ts';

/**
 * Slot time that copies and kills of a stage may still lose, while tasks wait: a share of what its tasks, finished and
 * running, take anyway, and of what as many that wait will take, less what they have lost so far. Negative where they have
 * lost more. Whatever is expected of copies, all of them together delay a stage by no more than that share. Without those
 * that wait, chance would decide whether a first wave on four slots may lose one of its tasks: that is just a quarter.
 *
 * Source: ours, for Mantri §5, "closed-loop action allows Mantri to act optimistically by bounding the cost when
 * probabilistic predictions go awry", of which the paper gives no bound but three kills of one task.
 */
export function lossLeftMs({ stage, tasks }: StageRuns, { now, config }: PolicyView): number {
  const { ownMs, othersMs } = tasks.reduce(
    (sum, { task }) => addSlotTimes(sum, slotTimeOf(task, now)),
    stage.statistics.slotTime,
  );
  const begun = stage.tasks.length - stage.unstarted;
  const alike = begun <= 0 ? 0 : Math.min(1, stage.unstarted / begun);
  return config.lossShare * (1 + alike) * ownMs - othersMs;
}
