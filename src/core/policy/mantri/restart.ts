import type { Proposal, PolicyView } from '../policy-set.ts';
import { finiteMs } from '../merit.ts';
import { type Appraisal, byAdvance, type StageAppraisal } from './appraise.ts';

/**
 * Kills and restarts a task whose time left exceeds the mean time of a new copy by more than Δ, at most γ times.
 * Of several copies the slowest is killed. Undefined where the task is not worth it.
 *
 * Source: Mantri §5.1, Pseudocode 1: t_rem > E(t_new) + Δ. A task with a copy younger than Δ is left alone.
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
  return {
    kind: 'restart',
    task: running.task,
    attempt: victim.attempt,
    gainMs: finiteMs(remMs - newMs),
    avoidNodes,
    facts: { remMs: finiteMs(remMs), newMs: finiteMs(newMs), deltaMs: finiteMs(stage.deltaMs), restarts },
  };
}
