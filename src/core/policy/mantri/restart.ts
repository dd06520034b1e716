import type { AttemptView, TaskView } from '../../model/job-view.ts';
import { reportedMs, scoreOf } from '../../estimate/progress-rate.ts';
import type { Proposal, PolicyView } from '../policy-set.ts';
import { finiteMs } from '../merit.ts';
import { type Appraisal, byAdvance, type StageAppraisal } from './appraise.ts';

/** How much faster a restarted attempt must have got on than the one that was killed, for a further kill. */
const fasterBy = 1.25;

const rateOf = (attempt: AttemptView): number => (scoreOf(attempt) ?? 0) / Math.max(1, reportedMs(attempt));

/**
 * Whether a task was killed before and got on no faster after it: then it is the task that is slow, not its place, and
 * another kill would throw away as much again.
 */
export const isSlowAnywhere = ({ attempts }: TaskView, victim: AttemptView): boolean =>
  attempts.some(
    (attempt) =>
      attempt.number < victim.number &&
      attempt.state === 'cancelled' &&
      attempt.claimedAt !== undefined &&
      rateOf(victim) <= fasterBy * rateOf(attempt),
  );

/**
 * Kills and restarts a task whose time left exceeds the mean time of a new copy by more than Δ, at most γ times.
 * Of several copies the slowest is killed. Undefined where the task is not worth it.
 *
 * Source: Mantri §5.1, Pseudocode 1: t_rem > E(t_new) + Δ. A task with a copy younger than Δ is left alone, and one that
 * a kill did not help is not killed again; the latter is ours.
 */
export function restart(
  task: Appraisal,
  stage: StageAppraisal,
  view: PolicyView,
  avoidNodes: readonly string[],
): Proposal | undefined {
  const { remMs, newMs, running } = task;
  const victim = task.copies.toSorted(byAdvance).at(-1);
  if (remMs === undefined || newMs === undefined || victim === undefined) return undefined;
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
