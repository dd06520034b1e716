import { quantileOf } from '../../../lib/sorted-numbers.ts';
import { workBytes } from '../../model/stage-statistics.ts';
import type { PolicySet, PolicyView, Proposal, StageRuns } from '../policy-set.ts';
import { backup, doneFraction, uncopied } from './uncopied.ts';

function slowTasks(runs: StageRuns, view: PolicyView): readonly Proposal[] {
  const { baselineRatio, baselineMultiplier, baselineLowerBoundMs } = view.config.flink;
  const median = quantileOf(runs.stage.statistics.msPerByte, 0.5);
  if (median === undefined || doneFraction(runs) < baselineRatio) return [];
  return uncopied(runs, view)
    .map((each) => ({
      ...each,
      baselineMs: Math.max(
        baselineLowerBoundMs,
        baselineMultiplier * median * workBytes(runs.stage.statistics, each.task),
      ),
    }))
    .filter(({ ranMs, baselineMs }) => ranMs >= baselineMs)
    .map(({ task, attempt, ranMs, baselineMs }) =>
      backup(
        task,
        ranMs - baselineMs,
        { ranMs, baselineMs: Math.round(baselineMs) },
        attempt.node === undefined ? [] : [attempt.node],
      ),
    );
}

/**
 * Flink: once three quarters of a stage have finished, copies tasks that have run for a minute and for 1.5 times the
 * median by input, and keeps the copy off the node that was slow. The farthest beyond comes first.
 *
 * Source: Apache Flink, `ExecutionTimeBasedSlowTaskDetector`.
 */
export const flink: PolicySet = {
  name: 'flink',
  launchOrder: 'by-index',
  propose: (view) => view.runs.flatMap((runs) => slowTasks(runs, view)),
};
