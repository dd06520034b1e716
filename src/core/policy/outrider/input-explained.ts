import { medianMsPerByte } from '../../estimate/new-copy.ts';
import { ranMs } from '../../estimate/progress-rate.ts';
import type { PolicyView, StageRuns } from '../policy-set.ts';
import type { Appraisal, StageAppraisal } from '../mantri/appraise.ts';

/**
 * How a task's foretold run time compares with the stage's ordinary time for as much input: at most the explained
 * factor means that it is slow, if at all, because it reads more. Undefined where nothing can be said.
 *
 * Source: Mantri §4.2: a task is explained by its data where its time is near what the regression on its input says.
 */
export function slownessForInput(
  task: Appraisal,
  stage: StageAppraisal,
  view: PolicyView,
): number | undefined {
  const ordinary = medianMsPerByte(stage.samples);
  const fastest = task.copies.toSorted((a, b) =>
    a.remMs === b.remMs ? a.attempt.number - b.attempt.number : a.remMs - b.remMs,
  )[0];
  if (ordinary === undefined || ordinary <= 0 || task.remMs === undefined || fastest === undefined)
    return undefined;
  return (ranMs(fastest.attempt, view.now) + task.remMs) / (ordinary * task.bytes);
}

/**
 * Whether a task reads more than the stage's finished tasks did on the mean. One that does not cannot be slow for
 * its input, however little slower than ordinary it is. True where nothing has finished.
 */
export function readsMore(task: Appraisal, { stage }: StageRuns): boolean {
  const { readBytes, runMs } = stage.statistics;
  return runMs.size === 0 || task.bytes > readBytes / runMs.size;
}
