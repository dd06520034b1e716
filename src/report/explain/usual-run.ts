import type { NotUsual } from '../../contracts/explanation.ts';
import { type Phase, phases } from '../../contracts/progress.ts';
import type { FailureCause } from '../../contracts/records.ts';
import { leastOutrun } from '../../core/model/stage-statistics.ts';
import { hasTakenUp } from '../../core/model/taken-up.ts';
import { explainedCost, fitCost, type TaskCost } from '../../core/model/task-cost.ts';
import { mean, median } from '../../lib/quantiles.ts';
import type { AttemptRun } from './attempt-runs.ts';

/** What is usual in a stage: medians over the attempts that won. */
export interface Usual {
  readonly tasks: number;
  readonly runMs: number;
  readonly waitMs: number;
  readonly bytes: number;
  readonly records: number;
  readonly phaseMs: Readonly<Record<Phase, number>>;
  /** How run time follows from input, where the tasks tell it. */
  readonly cost: TaskCost;
}

/** Of fewer nobody can say what is usual. */
const leastTasks = 3;

/**
 * What is usual among the attempts that won in a stage; undefined of fewer than three. Where some had something to read,
 * those that had nothing tell nothing.
 */
export function usualOf(winners: readonly AttemptRun[]): Usual | undefined {
  const reading = winners.filter(({ bytes }) => bytes > 0);
  const timed = (reading.length === 0 ? winners : reading).flatMap((run) =>
    run.runMs === undefined || run.phaseMs === undefined
      ? []
      : [{ ...run, runMs: run.runMs, phaseMs: run.phaseMs }],
  );
  if (timed.length < leastTasks) return undefined;
  const middle = (pick: (run: (typeof timed)[number]) => number): number => median(timed.map(pick)) ?? 0;
  const samples = timed.map(({ bytes, runMs }) => ({ bytes, ms: runMs }));
  return {
    tasks: timed.length,
    runMs: middle(({ runMs }) => runMs),
    waitMs: middle(({ waitMs = 0 }) => waitMs),
    bytes: middle(({ bytes }) => bytes),
    records: middle(({ records }) => records),
    phaseMs: mapPhases((phase) => middle(({ phaseMs }) => phaseMs[phase])),
    cost: fitCost(samples, mean(samples.map(({ bytes }) => bytes)) ?? 0),
  };
}

/** Why nobody can say what is usual among the attempts that won in a stage of so many tasks, of which `usualOf` says nothing. */
export function notUsualOf(tasks: number, winners: readonly AttemptRun[]): NotUsual {
  if (tasks < leastTasks) return 'few-tasks';
  if (winners.length < leastTasks) return 'few-won';
  const whole = winners.filter(({ attempt }) => !hasTakenUp(attempt));
  const reading = whole.filter(({ bytes }) => bytes > 0).length;
  return whole.length >= leastTasks && reading > 0 && reading < leastTasks ? 'few-reading' : 'few-timed';
}

/** A number for each phase. */
export const mapPhases = (of: (phase: Phase) => number): Record<Phase, number> =>
  Object.fromEntries(phases.map((phase) => [phase, of(phase)])) as Record<Phase, number>;

/** Beyond it, in shares of the median, a task has more to read than its siblings. */
const moreInput = 1.2;

/** How many times more than is usual, where that is more at all; else 1. */
const factorOver = (much: number, usual: number): number =>
  usual <= 0 || much <= moreInput * usual ? 1 : much / usual;

type Input = Pick<AttemptRun, 'bytes' | 'records'>;

/** Whether a task has more to do by its records than by its bytes, as where its input is packed. */
export const isMoreByRecords = ({ bytes, records }: Input, usual: Usual): boolean =>
  factorOver(records, usual.records) > factorOver(bytes, usual.bytes);

/**
 * The run time that its input explains: by the line through the stage's tasks as far as they tell one, else in proportion to
 * what it reads, in bytes or in records, which is the most that input can explain. Never less than the usual: a task is
 * held against what is usual, not against what it might have been for having little to do.
 */
export function expectedMs(usual: Usual, input: Input): number {
  const { runMs, cost } = usual;
  const { bytes, records } = input;
  const byRecords = runMs * factorOver(records, usual.records);
  const factor = factorOver(bytes, usual.bytes);
  if (factor <= 1) return byRecords;
  const byLine = cost.isLearnt ? explainedCost(cost, bytes) : Infinity;
  const byBytes = Math.min(byLine, runMs * factor);
  return Math.max(runMs, byBytes, isMoreByRecords(input, usual) ? byRecords : 0);
}

type Timed = Pick<
  AttemptRun,
  'attempt' | 'seenMs' | 'reportedMs' | 'bytes' | 'records' | 'readShare' | 'phaseMs' | 'isFinished'
>;

/**
 * What an attempt takes in all. Where it did not end it is foretold by what it had read, by its last report, behind its start,
 * which reads nothing; and not before half of what is to be expected was over: what was read by then lies in buffers.
 * Never less than it is known to have run.
 */
function wholeMs(
  { seenMs = 0, reportedMs = seenMs, readShare = 0, phaseMs, isFinished }: Timed,
  expected: number,
): number {
  if (isFinished || readShare <= 0 || reportedMs < leastOutrun * expected) return seenMs;
  const startMs = Math.min(reportedMs, phaseMs?.init ?? 0);
  return Math.max(seenMs, startMs + (reportedMs - startMs) / readShare);
}

/** Ends that come from outside, or of too slow a pace. Whatever else fails has failed by itself, after what its failure took. */
const pacedEnds: ReadonlySet<FailureCause> = new Set(['timeout', 'interrupted', 'exited']);

/** How many times longer an attempt takes than what is to be expected; undefined where nothing can be said. */
function timesLonger(run: Timed, expected: number): number | undefined {
  const { failure } = run.attempt;
  if (failure !== undefined && !pacedEnds.has(failure.cause)) return undefined;
  if (run.seenMs === undefined || expected <= 0) return undefined;
  const times = wholeMs(run, expected) / expected;
  return run.isFinished || times >= 1 ? times : undefined;
}

/** How many times longer an attempt takes than is usual, whatever it reads; undefined as of `slownessOf`. */
export const latenessOf = (run: Timed, usual: Usual | undefined): number | undefined =>
  usual === undefined ? undefined : timesLonger(run, usual.runMs);

/**
 * How many times longer an attempt takes than is usual for its input; undefined where nothing can be said: one that
 * ended before half of the usual time was up, and not with its work done, tells nothing of how fast it was, nor does one
 * that failed by itself.
 */
export const slownessOf = (run: Timed, usual: Usual | undefined): number | undefined =>
  usual === undefined ? undefined : timesLonger(run, expectedMs(usual, run));
