import { hasLeftLambda } from '../model/left-lambda.ts';
import { inputOf } from '../model/task-input.ts';
import type { DurationMs } from '../../contracts/units.ts';
import { quantileOf } from '../../lib/sorted-numbers.ts';
import type { Facts } from '../model/decision.ts';
import type { StageView, TaskView } from '../model/job-view.ts';
import { foretoldByInputMs } from './expected-run.ts';

/** Tasks of a stage that must have ended before they tell what the others take. */
const telling = 4;

/** What is known of how long tasks take, beside what the tasks of the job itself tell. */
export interface LambdaTime {
  /** For how long an attempt may work on Lambda. */
  readonly lambdaMs: DurationMs;
  /** Time below which only one of four tasks of each stage stayed in earlier runs of the job; absent: none are known. */
  readonly earlierMs?: readonly (number | undefined)[];
}

/** Tasks that read up to so many times as much are like one; of a stage of which nobody knows what an input costs, up to twice. */
const alike = 1.25;
const alikeUnlearnt = 2;

/**
 * How long a task takes by those of its stage that have ended, in ms: by what it reads, and no less than their median where
 * one that read hardly more took longer than Lambda lets it. Where only far larger ones did, the median is theirs and says
 * nothing of it.
 */
function forecastOf(stage: StageView, task: TaskView, medianMs: number, lambdaMs: DurationMs): number {
  const byInputMs = foretoldByInputMs(stage, task);
  if (medianMs <= lambdaMs) return byInputMs;
  const { samples, cost } = stage.statistics;
  const mostBytes = (cost.isLearnt ? alike : alikeUnlearnt) * inputOf(task);
  const isLike = samples.some(({ task: ended, ms }) => ms > lambdaMs && inputOf(ended) <= mostBytes);
  return isLike ? Math.max(medianMs, byInputMs) : byInputMs;
}

/**
 * The numbers by which a task will clearly take longer than Lambda lets it work; undefined where nothing says so. What
 * the stage's own tasks took counts first, by what each reads (`forecastMs`); where too few have ended, or none that reads as much
 * in time, one that reads no more and ran out of time (`timedOutBytes`); then earlier runs of the job, if three of four of their tasks
 * took longer (`earlierMs`). One of which an attempt was stopped for that goes as it was decided then.
 */
export function outlastsLambda(
  stage: StageView,
  task: TaskView,
  { lambdaMs, earlierMs = [] }: LambdaTime,
): Facts | undefined {
  const { runMs, samples, leastTimedOutBytes } = stage.statistics;
  const medianMs = quantileOf(runMs, 0.5);
  const facts: Facts = { lambdaMs, inputBytes: inputOf(task) };
  if (hasLeftLambda(task)) return facts;
  if (medianMs !== undefined && runMs.size >= telling) {
    const forecastMs = Math.round(forecastOf(stage, task, medianMs, lambdaMs));
    if (forecastMs > lambdaMs) return { forecastMs, ended: runMs.size, ...facts };
  }
  if (leastTimedOutBytes !== undefined && leastTimedOutBytes <= inputOf(task)) {
    const hasEndedInTime = samples.some(
      ({ task: ended, ms }) => inputOf(ended) >= inputOf(task) && ms <= lambdaMs,
    );
    if (!hasEndedInTime) return { timedOutBytes: leastTimedOutBytes, ...facts };
  }
  const earlier = runMs.size >= telling ? undefined : earlierMs[stage.index];
  return earlier !== undefined && earlier > lambdaMs
    ? { earlierMs: Math.round(earlier), ...facts }
    : undefined;
}
