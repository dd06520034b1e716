import type { AttemptView, TaskView } from '../../model/job-view.ts';
import { hasLeft } from '../../model/left-lambda.ts';
import { sampleCount } from '../../estimate/new-copy.ts';
import { ranMs, readBy, reportedMs, scoreOf } from '../../estimate/progress-rate.ts';
import type { Proposal, PolicyView, RunningTask } from '../policy-set.ts';
import { finiteMs } from '../merit.ts';
import type { SlowNodes } from '../node-slowdown.ts';
import { zoneFacts } from './choose-zone.ts';
import { type Appraisal, type AppraisedCopy, byAdvance, type StageAppraisal } from './appraise.ts';

/** How much faster an attempt must have got on than another in its place, for one more to be tried. */
const fasterBy = 1.25;

/** Whether an attempt has got on no faster than another had at the same age. */
function isNoFaster(attempt: AttemptView, other: AttemptView): boolean {
  const ageMs = Math.min(reportedMs(other), reportedMs(attempt));
  return readBy(attempt.reports, ageMs) <= fasterBy * readBy(other.reports, ageMs);
}

/**
 * Whether a task was killed before and got on no faster after it: then it is the task that is slow, not its place, and
 * another kill would throw away as much again. Both are held against each other at one age: where progress is slow at
 * first, whoever has run for longer is faster on the mean.
 */
export const isSlowAnywhere = ({ attempts }: TaskView, victim: AttemptView): boolean =>
  attempts.some(
    (attempt) =>
      attempt.number < victim.number &&
      attempt.state === 'cancelled' &&
      !hasLeft(attempt) &&
      attempt.claimedAt !== undefined &&
      isNoFaster(victim, attempt),
  );

/** One copy that was pruned may have drawn badly. */
const copiesInVain = 2;

/**
 * Whether copies of a task were pruned that had got on no faster than the best of those that run: then one more would
 * not either, and would be pruned in its turn.
 */
export function isCopiedInVain({ task, copies }: RunningTask): boolean {
  const best = copies.reduce((a, b) => ((scoreOf(b) ?? 0) > (scoreOf(a) ?? 0) ? b : a));
  const pruned = task.attempts.filter(
    (attempt) =>
      attempt.reason === 'backup' &&
      attempt.number > best.number &&
      (attempt.state === 'cancelled' || attempt.cancelOrdered) &&
      attempt.claimedAt !== undefined &&
      isNoFaster(attempt, best),
  );
  return pruned.length >= copiesInVain;
}

/** Whether its own progress tells what an attempt has left. Once it has read all, only its siblings' wrap-up does. */
const isTelling = ({ isTold, attempt }: AppraisedCopy): boolean => isTold && (scoreOf(attempt) ?? 0) < 1;

/**
 * Kills and restarts a task whose time left exceeds the mean time of a new copy by more than Δ, at most γ times.
 * Of several copies the slowest is killed. Undefined where the task is not worth it.
 *
 * Source: Mantri §5.1, Pseudocode 1: t_rem > E(t_new) + Δ. A task with a copy younger than Δ is left alone. Ours: one that
 * a kill did not help is not killed again, nor one whose progress does not tell what it has left (§5.5 leaves it open): a
 * copy beside it throws nothing away.
 */
export function restart(
  task: Appraisal,
  stage: StageAppraisal,
  view: PolicyView,
  slow: SlowNodes,
): Proposal | undefined {
  const { remMs, newMs, running, chosen } = task;
  const victim = task.copies.toSorted(byAdvance).at(-1);
  if (remMs === undefined || newMs === undefined || victim === undefined || !isTelling(victim))
    return undefined;
  // Its own rate alone says nothing of another attempt.
  if (sampleCount(stage.samples) <= task.copies.length) return undefined;
  if (task.sinceCopyMs < stage.deltaMs || remMs <= newMs + stage.deltaMs) return undefined;
  const restarts = running.task.attempts.filter(({ reason }) => reason === 'restart').length;
  if (restarts >= view.config.mantri.restartsPerTask) return undefined;
  if (isSlowAnywhere(running.task, victim.attempt)) return undefined;
  return {
    kind: 'restart',
    task: running.task,
    attempt: victim.attempt,
    lossMs: ranMs(victim.attempt, view.now),
    gainMs: finiteMs(remMs - newMs),
    avoidNodes: slow(),
    zone: chosen?.zone,
    facts: {
      ...{ remMs: finiteMs(remMs), newMs: finiteMs(newMs), deltaMs: finiteMs(stage.deltaMs), restarts },
      ...zoneFacts(chosen),
    },
  };
}
