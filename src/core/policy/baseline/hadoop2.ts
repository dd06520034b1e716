import { exponentialNewCopyMs, exponentialRate } from '../../estimate/exponential-rate.ts';
import type { PolicySet, PolicyView, Proposal, StageRuns } from '../policy-set.ts';
import { backup, doneFraction, uncopied } from './uncopied.ts';

/** Most copies at once. Source: Hadoop 2, `DefaultSpeculator.maybeScheduleASpeculation`. */
function copyCap({ runs, config }: PolicyView): number {
  const { minCopies, copiesOfAllTasks, copiesOfRunning } = config.hadoop2;
  const all = runs.reduce((sum, { stage }) => sum + stage.tasks.length, 0);
  const running = runs.reduce((sum, { tasks }) => sum + tasks.length, 0);
  return Math.max(minCopies, copiesOfAllTasks * all, copiesOfRunning * running);
}

function bestOf(runs: StageRuns, view: PolicyView): readonly Proposal[] {
  const { hadoop2 } = view.config;
  const { runMs, lastBackupAt } = runs.stage.statistics;
  const newMs = exponentialNewCopyMs(runMs);
  if (newMs === undefined || doneFraction(runs) < hadoop2.minDoneFraction) return [];
  if (lastBackupAt !== undefined && view.now - lastBackupAt < hadoop2.retryAfterSpeculateMs) return [];
  return uncopied(runs, view)
    .flatMap(({ task, attempt, score }) => {
      const rate = exponentialRate(attempt, hadoop2);
      // Without a reading Hadoop says "on schedule".
      if (rate === undefined || rate <= 0) return [];
      const leftMs = (1 - score) / rate;
      return leftMs > newMs
        ? [backup(task, leftMs - newMs, { leftMs: Math.round(leftMs), newMs: Math.round(newMs), score })]
        : [];
    })
    .sort((a, b) => b.gainMs - a.gainMs || a.task.index - b.task.index)
    .slice(0, 1);
}

/**
 * Hadoop 2: of each stage copies the one task whose estimated end lies farthest beyond that of a new copy, then
 * waits 15 s. A scan is a tick.
 *
 * Source: Apache Hadoop 3, `DefaultSpeculator` with `SimpleExponentialTaskRuntimeEstimator`.
 */
export const hadoop2: PolicySet = {
  name: 'hadoop2',
  launchOrder: 'largest-first',
  copyCap,
  propose: (view) => view.runs.flatMap((runs) => bestOf(runs, view)),
};
