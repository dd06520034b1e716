import { addSlotTimes, slotTimeOf } from '../estimate/slot-time.ts';
import type { PolicyView, StageRuns } from './policy-set.ts';

/** A seventh of slots' time, at most, is taken for what starts differ by, and for pauses between two tasks. */
const unevenStarts = 7 / 6;

/**
 * Slot time that copies and kills of a stage may still lose, while tasks wait: a share of what its tasks, finished and
 * running, take anyway, less what they have lost so far. Negative where they have lost more. Whatever is expected of
 * copies, all of them together delay a stage by no more than that share.
 *
 * The first loss may be one task's time so far where it is over that share by no more than what tasks of a wave start apart,
 * and slots stand idle between two of them: on four slots a quarter was one task of a first wave to a hair, so that chance
 * decided, and as a slow worker never pauses while others do, mostly against its kill. Where the policy says so
 * (`losesAhead`), it may be a share of what all tasks will take, those that wait included: a first wave on two slots had taken
 * too little for a kill, however slow one of them was.
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
  if (othersMs > 0) return leftMs;
  const begun = Math.max(1, stage.tasks.length - stage.unstarted);
  const allMs = ownMs * (losesAhead ? 1 + stage.unstarted / begun : unevenStarts);
  return Math.max(leftMs, Math.min(longestMs, config.lossShare * allMs));
}
