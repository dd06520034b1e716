import { medianMsPerByte } from '../../estimate/new-copy.ts';
import { ranMs } from '../../estimate/progress-rate.ts';
import type { PolicyView } from '../policy-set.ts';
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
