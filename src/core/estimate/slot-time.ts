import type { EpochMs } from '../../contracts/units.ts';
import { hasLeft } from '../model/left-lambda.ts';
import { type AttemptView, isLive, type TaskView } from '../model/job-view.ts';
import { workerMsOf } from './progress-rate.ts';

/** Slot time of tasks: what each takes at the least, and what it took beyond that. */
export interface SlotTime {
  /** Of the longest attempt of each. */
  readonly ownMs: number;
  /** Of all its other attempts but clones: so much more, at the most, than had nobody copied late or killed any. */
  readonly othersMs: number;
}

/**
 * Slot time of a task until now. What has failed was nobody's choice, and is in neither, nor what Lambda would have ended. Nor are attempts from before the
 * task's output was lost: they were counted when it ended. While it runs, what was killed counts as lost at once, and not
 * only as far as the attempt in its place has come. The original and its clones were admitted together, before anything was
 * known of them: they count as the longest of them, so that nothing is lost by them but what was killed.
 */
export function slotTimeOf({ attempts, result, since }: TaskView, now: EpochMs): SlotTime {
  let [ownMs, allMs, clonesMs] = [0, 0, 0];
  const isCloned = attempts.some(({ reason, number }) => reason === 'clone' && number >= since);
  for (const attempt of attempts) {
    if (attempt.number < since || attempt.state === 'failed' || attempt.state === 'lost') continue;
    if (hasLeft(attempt) && attempt.state !== 'done') continue;
    const ms = workerMsOf(attempt, now);
    if (result !== undefined || isWanted(attempt)) ownMs = Math.max(ownMs, ms);
    if (isCloned && isAdmitted(attempt)) clonesMs = Math.max(clonesMs, ms);
    else allMs += ms;
  }
  return { ownMs, othersMs: clonesMs + allMs - ownMs };
}

/** Of a cloned task: whether it is one of its copies from the start, or stands for one, and was not killed as a late copy is. */
const isAdmitted = ({ reason, cancelReason }: AttemptView): boolean =>
  reason !== 'backup' && cancelReason !== 'restarted' && cancelReason !== 'pruned';

const isWanted = (attempt: AttemptView): boolean => isLive(attempt) && !attempt.cancelOrdered;

/** Slot time of two sets of tasks together. */
export const addSlotTimes = (a: SlotTime, b: SlotTime): SlotTime => ({
  ownMs: a.ownMs + b.ownMs,
  othersMs: a.othersMs + b.othersMs,
});
