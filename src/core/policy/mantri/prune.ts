import { finiteMs } from '../merit.ts';
import type { PolicyView, Proposal } from '../policy-set.ts';
import { ageMs, type Appraisal, byAdvance, type StageAppraisal } from './appraise.ts';

/**
 * Kills all but the α fastest of a task's copies that are older than Δ, so that at most those and the newest run. Of
 * copies that have read nothing the oldest are kept.
 *
 * Source: Mantri §5.1, Pseudocode 1. α is not given; 2 follows from "slower than the second fastest copy".
 */
export function prune(task: Appraisal, stage: StageAppraisal, view: PolicyView): readonly Proposal[] {
  const { keptCopies } = view.config.mantri;
  if (task.copies.length <= keptCopies) return [];
  return task.copies
    .filter(({ attempt }) => ageMs(attempt, view) > stage.deltaMs)
    .toSorted(byAdvance)
    .slice(keptCopies)
    .map(({ attempt, remMs }) => ({
      kind: 'prune',
      task: task.running.task,
      attempt,
      gainMs: finiteMs(remMs),
      facts: { remMs: finiteMs(remMs), deltaMs: finiteMs(stage.deltaMs), copies: task.copies.length },
    }));
}
