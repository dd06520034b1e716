import { addSlotTimes, slotTimeOf } from '../estimate/slot-time.ts';
import type { PolicyView, StageRuns } from './policy-set.ts';

/**
 * Slot time that copies and kills of a stage may still lose, while tasks wait: a share of what its tasks, finished and
 * running, take anyway, less what they have lost so far. Negative where they have lost more. Whatever is expected of
 * copies, all of them together delay a stage by no more than that share.
 *
 * Source: ours, for Mantri §5, "closed-loop action allows Mantri to act optimistically by bounding the cost when
 * probabilistic predictions go awry", of which the paper gives no bound but three kills of one task.
 */
export function lossLeftMs({ stage, tasks }: StageRuns, { now, config }: PolicyView): number {
  const { ownMs, othersMs } = tasks.reduce(
    (sum, { task }) => addSlotTimes(sum, slotTimeOf(task, now)),
    stage.statistics.slotTime,
  );
  return config.lossShare * ownMs - othersMs;
}
