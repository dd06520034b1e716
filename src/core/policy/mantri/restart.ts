import type { AttemptView, TaskView } from '../../model/job-view.ts';
import { sampleCount } from '../../estimate/new-copy.ts';
import { readBy, reportedMs } from '../../estimate/progress-rate.ts';
import type { Proposal, PolicyView } from '../policy-set.ts';
import { finiteMs } from '../merit.ts';
import { type Appraisal, byAdvance, type StageAppraisal } from './appraise.ts';

/** How much faster a restarted attempt must have got on than the one that was killed, for a further kill. */
const fasterBy = 1.25;

/**
 * Whether a task was killed before and got on no faster after it: then it is the task that is slow, not its place, and
 * another kill would throw away as much again. Both are held against each other at one age: where progress is slow at
 * first, whoever has run for longer is faster on the mean.
 */
export const isSlowAnywhere = ({ attempts }: TaskView, victim: AttemptView): boolean =>
  attempts.some((attempt) => {
    if (attempt.number >= victim.number || attempt.state !== 'cancelled' || attempt.claimedAt === undefined)
      return false;
    const ageMs = Math.min(reportedMs(attempt), reportedMs(victim));
    return readBy(victim.reports, ageMs) <= fasterBy * readBy(attempt.reports, ageMs);
  });

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
  avoidNodes: readonly string[],
): Proposal | undefined {
  const { remMs, newMs, running } = task;
  const victim = task.copies.toSorted(byAdvance).at(-1);
  if (remMs === undefined || newMs === undefined || victim === undefined || !victim.isTold) return undefined;
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
    gainMs: finiteMs(remMs - newMs),
    avoidNodes,
    facts: { remMs: finiteMs(remMs), newMs: finiteMs(newMs), deltaMs: finiteMs(stage.deltaMs), restarts },
  };
}
