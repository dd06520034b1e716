import { standardDeviation } from '../../../lib/quantiles.ts';
import { readBy, reportedMs } from '../../estimate/progress-rate.ts';
import type { AttemptView, TaskView } from '../../model/job-view.ts';
import { hasLeft } from '../../model/left-lambda.ts';
import { workerOf } from '../../model/stage-worker.ts';
import { finiteMs } from '../merit.ts';
import { mayUseFargate } from '../next-worker.ts';
import type { PolicyView, Proposal, StageRuns } from '../policy-set.ts';
import type { JudgedCopy, JudgedStage, JudgedTask } from './judge.ts';

/**
 * Shares of Lambda's time between which an attempt is judged: before, its rates are those of its start, which is slow where it reads over a
 * network that many read over, or loads a program; after, what is saved is little beside what is thrown away.
 */
const watched = { from: 0.25, until: 0.8 } as const;
/** Parts of an attempt's time whose rates tell how steady it is, and by how much what it has left may be wrong at the least. */
const parts = 4;
const leastError = 0.05;
/** A new attempt that takes so many times less than Lambda's time may be made there: what is slow is the place of the one that runs. */
const safely = 1.25;

/**
 * What an attempt takes in all at the least, by its own rates: at the best of those that it has shown in a part of its time, and
 * less than that by as much as they differ, as the standard deviation of their logarithms. 0 where it has told too little, or stood
 * still for one of them.
 */
function leastByRates(attempt: AttemptView): number {
  const { bytesRead = 0, bytesTotal = 0 } = attempt.progress ?? {};
  if (attempt.reports.length < parts) return 0;
  const ms = reportedMs(attempt);
  const read = Array.from({ length: parts + 1 }, (_, place) => readBy(attempt.reports, (place * ms) / parts));
  const gained = read.slice(1).map((bytes, place) => bytes - (read[place] ?? 0));
  if (ms <= 0 || gained.some((bytes) => bytes <= 0)) return 0;
  const logs = gained.map((bytes) => Math.log((bytes * parts) / ms));
  const error = standardDeviation(logs) ?? Infinity;
  const leftMs = Math.max(0, bytesTotal - bytesRead) / Math.exp(Math.max(...logs));
  return ms + leftMs * Math.exp(-Math.max(leastError, error));
}

/** Whether what others of its stage take, and have taken so far, says that another attempt would be done on Lambda. */
const wouldFit = (
  { newMs }: JudgedTask,
  { samples }: JudgedStage,
  minSamples: number,
  workMs: number,
): boolean => samples >= minSamples && safely * (newMs[newMs.length >>> 1] ?? Infinity) <= workMs;

/** Whether an attempt may be stopped: it is at the age for it, and would lose all that it does where its time on Lambda runs out. */
function mayLeave({ attempt, ranMs }: JudgedCopy, { stage }: StageRuns, workMs: number): boolean {
  if (reportedMs(attempt) < watched.from * workMs || ranMs > watched.until * workMs) return false;
  const { progress, behind } = attempt;
  return progress?.handsOn === false && behind === undefined && workerOf(stage, attempt).kind === 'lambda';
}

/** How often attempts of a task were stopped so in its present life: those that ran beside each other, since the next one is on Fargate. */
const stopsOf = ({ attempts, since }: TaskView): number =>
  attempts.filter((attempt) => attempt.number >= since && hasLeft(attempt)).length;

/** That an attempt is to be stopped, with why; undefined where it may yet be done in time. */
function leaving({ attempt, ranMs }: JudgedCopy, task: TaskView, workMs: number): Proposal | undefined {
  const leastMs = leastByRates(attempt);
  if (!(leastMs > workMs)) return undefined;
  const gainMs = finiteMs(workMs - ranMs);
  const facts = {
    leastRemMs: finiteMs(leastMs - ranMs),
    ranMs: finiteMs(ranMs),
    lambdaMs: workMs,
    lambdaLeftMs: gainMs,
  };
  return { kind: 'leave', task, attempt, gainMs, facts };
}

/**
 * Stops attempts on Lambda that will not be done when it ends them, once their own rates say so beyond their error: what
 * they do until then would be lost, and their task begins anew on Fargate. Not those of a stage of which others
 * are done in time: where its place is slow and not the task, a copy on Lambda ends sooner. Attempts that can hand on what they
 * have done go on to the end of their time.
 *
 * Source: ours; in the account of Mantri §5.1 what such an attempt has left is the rest of its time and a new attempt.
 */
export function leaveEarly(
  stage: JudgedStage,
  runs: StageRuns,
  { lambdaMs: workMs, config }: PolicyView,
): readonly Proposal[] {
  if (workMs === undefined || !mayUseFargate(runs.stage, true)) return [];
  const { mantri, outrider } = config;
  return stage.tasks.flatMap((judged) => {
    const { task } = judged.running;
    // Few are at that age at any tick.
    const copies = judged.copies.filter((copy) => mayLeave(copy, runs, workMs));
    if (copies.length === 0 || stopsOf(task) >= mantri.restartsPerTask) return [];
    if (wouldFit(judged, stage, outrider.minSamples, workMs)) return [];
    return copies.flatMap((copy) => leaving(copy, task, workMs) ?? []);
  });
}
