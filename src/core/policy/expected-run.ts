import { inputOf } from '../model/task-input.ts';
import { type DurationMs, durationMs } from '../../contracts/units.ts';
import { atRank, quantileOf } from '../../lib/sorted-numbers.ts';
import type { StageView, TaskView } from '../model/job-view.ts';
import { costOf } from '../model/task-cost.ts';

/** This share of its attempts must be short for a stage to be. */
const tail = 0.9;
/** An attempt that takes up to so many times that quantile is not held up. */
const tailFactor = 2;

/** The time within which nine of ten attempts of a stage have ended, of few all; undefined where none has. */
export const tailMs = ({ statistics: { runMs } }: StageView): number | undefined =>
  atRank(runMs, Math.ceil(runMs.size * tail) - 1);

/** What a task of a stage takes by what it reads, as its like have; 0 where none has ended. */
export function foretoldByInputMs({ statistics }: StageView, task: TaskView): number {
  const slowness = quantileOf(statistics.slowness, 0.5) ?? 0;
  return slowness * costOf(statistics.cost, inputOf(task));
}

/** What a task of a stage takes: as its like have, by what it reads, and no less than the median. */
export const foretoldMs = (stage: StageView, medianMs: number, task: TaskView): number =>
  Math.max(1, medianMs, foretoldByInputMs(stage, task));

/** Time within which nearly every attempt of a stage ends that has begun. */
export const nearlyAllEndMs = (stage: StageView): DurationMs =>
  durationMs(Math.ceil(tailFactor * (tailMs(stage) ?? 0)));
