import { scoreOf } from '../../estimate/progress-rate.ts';
import { finiteMs } from '../merit.ts';
import type { PolicyView, Proposal } from '../policy-set.ts';
import { ageMs, type Appraisal, type AppraisedCopy, byAdvance } from './appraise.ts';

/** The one that has read most first, among equals the oldest. */
const byProgress = (a: AppraisedCopy, b: AppraisedCopy): number =>
  (scoreOf(b.attempt) ?? 0) - (scoreOf(a.attempt) ?? 0) || a.attempt.number - b.attempt.number;

/**
 * Kills all but the α fastest of a task's copies that are older than Δ, so that at most those and the newest run. The
 * one that has read most is kept among them, since estimates err; of copies that have read nothing the oldest are. One
 * that no worker has taken up yet is spared: where a worker takes longer than Δ to start none would ever begin.
 *
 * Source: Mantri §5.1, Pseudocode 1. α is not given; 2 follows from "slower than the second fastest copy".
 */
export function prune(
  task: Pick<Appraisal, 'running' | 'copies'>,
  deltaMs: number,
  view: PolicyView,
): readonly Proposal[] {
  const { keptCopies } = view.config.mantri;
  if (task.copies.length <= keptCopies) return [];
  const old = task.copies
    .filter(({ attempt }) => attempt.claimedAt !== undefined && ageMs(attempt, view) > deltaMs)
    .toSorted(byAdvance);
  const farthest = old.toSorted(byProgress)[0];
  const kept = new Set([farthest, ...old.filter((each) => each !== farthest)].slice(0, keptCopies));
  return old
    .filter((each) => !kept.has(each))
    .map(({ attempt, remMs }) => ({
      kind: 'prune',
      task: task.running.task,
      attempt,
      gainMs: finiteMs(remMs),
      facts: { remMs: finiteMs(remMs), deltaMs: finiteMs(deltaMs), copies: task.copies.length },
    }));
}
