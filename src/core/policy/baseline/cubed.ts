import { atRank } from '../../../lib/sorted-numbers.ts';
import type { PolicySet, PolicyView, Proposal, StageRuns } from '../policy-set.ts';
import { backup, doneFraction, uncopied } from './uncopied.ts';

function slowTasks(runs: StageRuns, view: PolicyView): readonly Proposal[] {
  const { minTasks, doneFraction: enough, slowdown } = view.config.cubed;
  const tasks = runs.stage.tasks.length;
  if (tasks < minTasks || doneFraction(runs) < enough) return [];
  const middleMs = atRank(runs.stage.statistics.sinceLaunchMs, Math.ceil(tasks * enough) - 1);
  if (middleMs === undefined) return [];
  return uncopied(runs, view)
    .filter(({ sinceLaunchMs }) => sinceLaunchMs > slowdown * middleMs)
    .map(({ task, sinceLaunchMs }) => backup(task, sinceLaunchMs, { sinceLaunchMs, middleMs }));
}

/**
 * Cubed: once half of at least ten tasks have finished, copies each that takes three times as long as the ⌈N · fraction⌉-th
 * of the times of finished ones, shortest first: the slowest of the faster half. Its clock starts at the launch, so that queueing and cold starts look slow; that is kept.
 *
 * Source: cubed-dev/cubed, `runtime/backup.py`.
 */
export const cubed: PolicySet = {
  name: 'cubed',
  launchOrder: 'by-index',
  propose: (view) => view.runs.flatMap((runs) => slowTasks(runs, view)),
};
