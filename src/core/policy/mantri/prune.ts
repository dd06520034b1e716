import type { Facts } from '../../model/decision.ts';
import { ranMs, scoreOf } from '../../estimate/progress-rate.ts';
import { lossLeftMs } from '../loss-limit.ts';
import { finiteMs } from '../merit.ts';
import type { PolicyView, Proposal, StageRuns } from '../policy-set.ts';
import { ageMs, type Appraisal, type AppraisedCopy, byAdvance, isContended } from './appraise.ts';

const nothing: readonly never[] = [];

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
  if (task.copies.length <= keptCopies) return nothing;
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

const isTelling = ({ isTold, attempt }: AppraisedCopy): boolean => isTold && (scoreOf(attempt) ?? 0) > 0;

/** The copy that a task would lose least by: the one with most time left where each tells it, else the youngest. */
const leastOf = (copies: readonly AppraisedCopy[]): AppraisedCopy | undefined =>
  copies.every(isTelling)
    ? copies.toSorted(byAdvance).at(-1)
    : copies.reduce((last, each) => (each.attempt.number > last.attempt.number ? each : last));

/**
 * Kills one copy of a stage that has lost more slot time than it may while tasks wait: of the copies that
 * their tasks would lose least by, the one that has run for longest. A tick later comes the next, if that was not enough.
 *
 * Source: Mantri §5, which "kills those whose cost exceeds the benefit". The bound is ours.
 */
export function pruneLosses(
  tasks: readonly Pick<Appraisal, 'running' | 'copies'>[],
  runs: StageRuns,
  view: PolicyView,
): readonly Proposal[] {
  if (!isContended(view.slots)) return [];
  const leftMs = lossLeftMs(runs, view);
  if (leftMs >= 0) return [];
  const least = tasks.flatMap(({ running, copies }) => {
    const copy = copies.length < 2 ? undefined : leastOf(copies);
    return copy === undefined ? [] : [{ running, copy, ms: ranMs(copy.attempt, view.now) }];
  });
  const dearest = least.toSorted((a, b) => b.ms - a.ms || a.running.task.index - b.running.task.index)[0];
  if (dearest === undefined) return [];
  const { running, copy, ms } = dearest;
  const facts: Facts = { remMs: finiteMs(copy.remMs), ranMs: ms, lossLeftMs: finiteMs(leftMs) };
  return [{ kind: 'prune', task: running.task, attempt: copy.attempt, gainMs: finiteMs(copy.remMs), facts }];
}
