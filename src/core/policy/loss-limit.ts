import { addSlotTimes, slotTimeOf } from '../estimate/slot-time.ts';
import type { PolicyView, StageRuns } from './policy-set.ts';

/**
 * Slot time that copies and kills of a stage may still lose, while tasks wait: a share of what its tasks, finished and
 * running, take anyway, less what they have lost so far. Negative where they have lost more. Whatever is expected of
 * copies, all of them together delay a stage by no more than that share. Of tasks that wait as many count, too, as
 * `lossAhead` says: a kill in a first wave on four slots costs just the quarter that there is, and chance would decide it.
 *
 * Source: ours, for Mantri §5, "closed-loop action allows Mantri to act optimistically by bounding the cost when
 * probabilistic predictions go awry", of which the paper gives no bound but three kills of one task.
 */
export function lossLeftMs({ stage, tasks }: StageRuns, { now, config, lossAhead = 0 }: PolicyView): number {
  const { ownMs, othersMs } = tasks.reduce(
    (sum, { task }) => addSlotTimes(sum, slotTimeOf(task, now)),
    stage.statistics.slotTime,
  );
  const begun = stage.tasks.length - stage.unstarted;
  const ahead = begun <= 0 ? 0 : Math.min(lossAhead, stage.unstarted / begun);
  return config.lossShare * (1 + ahead) * ownMs - othersMs;
}
