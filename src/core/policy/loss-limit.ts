import { addSlotTimes, slotTimeOf } from '../estimate/slot-time.ts';
import type { PolicyView, StageRuns } from './policy-set.ts';

/**
 * Slot time that copies and kills of a stage may still lose, while tasks wait: a share of what its tasks, finished and
 * running, take anyway, less what they have lost so far. Negative where they have lost more. Whatever is expected of
 * copies, all of them together delay a stage by no more than that share.
 *
 * Where the policy says so (`losesAhead`), the first loss may be one task's time so far, if it is no more than that share of
 * what all tasks will take, those that wait included: a first wave on two slots had taken too little for a kill, however slow
 * one of them was, and on four slots chance decided.
 *
 * Source: ours, for Mantri §5, "closed-loop action allows Mantri to act optimistically by bounding the cost when
 * probabilistic predictions go awry", of which the paper gives no bound but three kills of one task.
 */
export function lossLeftMs(
  { stage, tasks }: StageRuns,
  { now, config, losesAhead = false }: PolicyView,
): number {
  let longestMs = 0;
  const { ownMs, othersMs } = tasks.reduce((sum, { task }) => {
    const times = slotTimeOf(task, now);
    longestMs = Math.max(longestMs, times.ownMs);
    return addSlotTimes(sum, times);
  }, stage.statistics.slotTime);
  const leftMs = config.lossShare * ownMs - othersMs;
  if (!losesAhead || othersMs > 0) return leftMs;
  const begun = Math.max(1, stage.tasks.length - stage.unstarted);
  const allMs = ownMs * (1 + stage.unstarted / begun);
  return Math.max(leftMs, Math.min(longestMs, config.lossShare * allMs));
}
