import { scoreOf } from '../../estimate/progress-rate.ts';
import type { PolicySet, PolicyView, Proposal, StageRuns } from '../policy-set.ts';
import { allStarted } from '../running-tasks.ts';
import { backup, uncopied } from './uncopied.ts';

/** Mean score over all tasks of a stage: finished ones count 1, a copied task by its furthest copy. */
export function meanScore({ stage, tasks }: StageRuns): number {
  if (stage.tasks.length === 0) return 1;
  const running = tasks.reduce(
    (sum, { copies }) => sum + Math.max(...copies.map((copy) => scoreOf(copy) ?? 0)),
    0,
  );
  return (stage.done + running) / stage.tasks.length;
}

function stragglers(runs: StageRuns, view: PolicyView): readonly Proposal[] {
  const { scoreLag, minAgeMs } = view.config.hadoop;
  const mean = meanScore(runs);
  return uncopied(runs, view)
    .filter(({ score, ranMs }) => score < mean - scoreLag && ranMs >= minAgeMs)
    .map(({ task, score, ranMs }) => backup(task, 0, { score, meanScore: mean, ranMs }));
}

/**
 * Hadoop 0.20: once no task waits, copies any task whose score is 0.2 below the mean and that has run for a minute.
 * All stragglers rank equal (by place here), and nothing but slots limits the copies.
 *
 * Source: LATE §2.2.
 */
export const hadoop: PolicySet = {
  name: 'hadoop',
  launchOrder: 'largest-first',
  propose: (view) => (allStarted(view.slots) ? view.runs.flatMap((runs) => stragglers(runs, view)) : []),
};
