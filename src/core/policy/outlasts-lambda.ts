import { readBy, reportedMs } from '../estimate/progress-rate.ts';
import { wholeMs } from '../model/stage-statistics.ts';
import { inputOf } from '../model/task-input.ts';
import { mostWorkMs } from '../model/time-limit.ts';
import type { DurationMs } from '../../contracts/units.ts';
import { quantileOf } from '../../lib/sorted-numbers.ts';
import type { Facts } from '../model/decision.ts';
import type { AttemptView, StageView, TaskView } from '../model/job-view.ts';
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

/** An attempt that has done less of its task by half of its time than in the other half had a slow start, which says nothing of its rate. */
const halves = 2;

/**
 * Whether an attempt would take longer than so many ms by what it has read: at its rate from its beginning, and at that of the
 * later half of its time, where it was slow at first.
 */
export function outlastsByItself(attempt: AttemptView, workMs: number): boolean {
  const { bytesRead = 0, bytesTotal = 0 } = attempt.progress ?? {};
  if (bytesRead <= 0 || bytesTotal <= 0 || wholeMs(attempt) <= workMs) return false;
  const ms = reportedMs(attempt);
  const lately = bytesRead - readBy(attempt.reports, ms / halves);
  return lately <= 0 || ms + ((ms - ms / halves) * (bytesTotal - bytesRead)) / lately > workMs;
}

/** What of a task was stopped, and would have taken longer than Lambda lets it and lost all that it had done. */
const hasLeft = ({ attempts, since }: TaskView, workMs: number): boolean =>
  attempts.some(
    (attempt) =>
      attempt.number >= since &&
      attempt.cancelOrdered &&
      attempt.progress?.handsOn === false &&
      outlastsByItself(attempt, workMs),
  );

/**
 * The numbers by which a task will clearly take longer than Lambda lets it work; undefined where nothing says so. What
 * the stage's own tasks took counts first, by what each reads (`forecastMs`); where too few have ended, or none that reads as much
 * in time, one that reads no more and ran out of time (`timedOutBytes`); then earlier runs of the job, if three of four of their tasks
 * took longer (`earlierMs`). One that was stopped for want of Lambda's time (`leaveEarly`) goes to Fargate as well, unless tasks of its stage
 * have shown that it need not take so long.
 */
export function outlastsLambda(
  stage: StageView,
  task: TaskView,
  { lambdaMs, earlierMs = [] }: LambdaTime,
): Facts | undefined {
  const { runMs, samples, leastTimedOutBytes } = stage.statistics;
  const medianMs = quantileOf(runMs, 0.5);
  const facts: Facts = { lambdaMs, inputBytes: inputOf(task) };
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
  const isKnown = medianMs !== undefined && runMs.size >= telling;
  const isShort = isKnown && alike * forecastOf(stage, task, medianMs, lambdaMs) <= lambdaMs;
  if (!isShort && hasLeft(task, mostWorkMs(lambdaMs))) return { ...facts };
  const earlier = runMs.size >= telling ? undefined : earlierMs[stage.index];
  return earlier !== undefined && earlier > lambdaMs
    ? { earlierMs: Math.round(earlier), ...facts }
    : undefined;
}
