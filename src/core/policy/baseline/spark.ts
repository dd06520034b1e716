import { quantileOf } from '../../../lib/sorted-numbers.ts';
import type { PolicySet, PolicyView, Proposal, StageRuns } from '../policy-set.ts';
import { backup, type Uncopied, uncopied } from './uncopied.ts';

/** Whether a task reads clearly slower than finished ones did on average, or is so late that it does not matter. */
function isInefficient(
  { attempt, ranMs }: Uncopied,
  runs: StageRuns,
  view: PolicyView,
  thresholdMs: number,
): boolean {
  const { processRateMultiplier, longRunTaskFactor } = view.config.spark;
  const { readBytes, runMs } = runs.stage.statistics;
  if (runMs.sum <= 0 || ranMs <= 0) return true;
  const rate = (attempt.progress?.bytesRead ?? 0) / ranMs;
  return rate < processRateMultiplier * (readBytes / runMs.sum) || ranMs > longRunTaskFactor * thresholdMs;
}

function speculatable(runs: StageRuns, view: PolicyView): readonly Proposal[] {
  const { quantile, multiplier, minTaskRuntimeMs } = view.config.spark;
  const { stage } = runs;
  const medianMs = quantileOf(stage.statistics.runMs, 0.5);
  if (medianMs === undefined || stage.tasks.length < 2) return [];
  if (stage.done < Math.max(1, Math.floor(quantile * stage.tasks.length))) return [];
  const thresholdMs = Math.max(multiplier * medianMs, minTaskRuntimeMs);
  return uncopied(runs, view)
    .filter((each) => each.ranMs > thresholdMs && isInefficient(each, runs, view, thresholdMs))
    .map(({ task, ranMs }) => backup(task, ranMs, { ranMs, thresholdMs, medianMs }));
}

/**
 * Spark: once nine tenths of a stage have finished, copies tasks that have run for three times the median and read
 * slower than three quarters of the average rate. One copy of each. The longest run comes first, where Spark takes
 * them in no order.
 *
 * Source: Apache Spark 4, `TaskSetManager.checkSpeculatableTasks` and `spark.speculation.*`.
 */
export const spark: PolicySet = {
  name: 'spark',
  launchOrder: 'by-index',
  propose: (view) => view.runs.flatMap((runs) => speculatable(runs, view)),
};
