import { readBy, reportedMs, scoreOf } from '../../estimate/progress-rate.ts';
import type { AttemptView } from '../../model/job-view.ts';
import { workerOf } from '../../model/stage-worker.ts';
import { mostWorkMs } from '../../model/time-limit.ts';
import { finiteMs } from '../merit.ts';
import { outlastsByItself } from '../outlasts-lambda.ts';
import type { PolicyView, Proposal, StageRuns } from '../policy-set.ts';
import type { JudgedCopy, JudgedTask } from './judge.ts';

/** What is saved is at least so much of what is thrown away: of estimates that are past their least, one in six errs. */
const leastSaved = 0.25;

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** Parts of an attempt's time whose rates tell how steady it is, the least that it has read by then, and that may be wrong. */
const parts = 4;
const leastScore = 0.1;
const leastError = 0.05;

/**
 * By how much the logarithm of what an attempt has left may be wrong, as a standard deviation: as its rate has varied so far.
 * Infinite where it has stood still for a part of its time, or has read too little.
 */
function steadiness(attempt: AttemptView): number {
  if ((scoreOf(attempt) ?? 0) < leastScore || attempt.reports.length < parts) return Infinity;
  const partMs = reportedMs(attempt) / parts;
  const read = Array.from({ length: parts + 1 }, (_, place) => readBy(attempt.reports, place * partMs));
  const rates = read.slice(1).map((bytes, place) => Math.log(bytes - (read[place] ?? 0)));
  const usual = sum(rates) / parts;
  const error = Math.sqrt(sum(rates.map((rate) => (rate - usual) ** 2)) / (parts - 1));
  return Number.isFinite(error) ? Math.max(leastError, error) : Infinity;
}

/** What an attempt takes in all at the least. */
const leastTotalMs = ({ attempt, ranMs, remMs, error }: JudgedCopy): number =>
  ranMs + remMs * Math.exp(-Math.min(error, steadiness(attempt)));

/** Whether an attempt would lose all that it does where its time on Lambda runs out. */
function losesAll({ attempt }: JudgedCopy, { stage }: StageRuns): boolean {
  const { progress, behind } = attempt;
  return progress?.handsOn === false && behind === undefined && workerOf(stage, attempt).kind === 'lambda';
}

/**
 * Stops attempts on Lambda that will not be done when it ends them, as soon as their progress says so beyond its error: what
 * they do until then would be lost, and their task begins anew on Fargate (or on Lambda, where others of its stage have shown
 * that it need not take so long). Attempts that can hand on what they have done go on to the end of their time. No task is
 * stopped more often than Mantri restarts one.
 *
 * Source: ours; in the account of Mantri §5.1 what such an attempt has left is the rest of its time and a new attempt.
 */
export function leaveEarly(
  { running, copies }: JudgedTask,
  runs: StageRuns,
  { lambdaMs, config }: PolicyView,
): readonly Proposal[] {
  if (lambdaMs === undefined || runs.stage.shape.mayUseFargate === false) return [];
  const { task } = running;
  if (task.attempts.filter(({ state }) => state === 'cancelled').length >= config.mantri.restartsPerTask)
    return [];
  const workMs = mostWorkMs(lambdaMs);
  return copies.flatMap((copy): Proposal[] => {
    const leftMs = workMs - copy.ranMs;
    const isTold = copy.isTold && outlastsByItself(copy.attempt, workMs) && leastTotalMs(copy) > workMs;
    if (!isTold || leftMs < leastSaved * copy.ranMs || !losesAll(copy, runs)) return [];
    const facts = {
      ...{ remMs: finiteMs(copy.remMs), ranMs: finiteMs(copy.ranMs) },
      ...{ lambdaMs: workMs, lambdaLeftMs: finiteMs(leftMs) },
    };
    return [{ kind: 'leave', task, attempt: copy.attempt, gainMs: finiteMs(leftMs), facts }];
  });
}
