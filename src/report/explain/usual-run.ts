import { type Phase, phases } from '../../contracts/records.ts';
import { costOf, fitCost, type TaskCost } from '../../core/model/task-cost.ts';
import { mean, median } from '../../lib/quantiles.ts';
import type { AttemptRun } from './attempt-runs.ts';

/** What is usual in a stage: medians over the attempts that won. */
export interface Usual {
  readonly tasks: number;
  readonly runMs: number;
  readonly waitMs: number;
  readonly bytes: number;
  readonly phaseMs: Readonly<Record<Phase, number>>;
  /** How run time follows from input, where the tasks tell it. */
  readonly cost: TaskCost;
}

/** Of fewer nobody can say what is usual. */
const leastTasks = 3;

/** What is usual among the attempts that won in a stage; undefined of fewer than three. */
export function usualOf(winners: readonly AttemptRun[]): Usual | undefined {
  const timed = winners.flatMap((run) =>
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
    phaseMs: mapPhases((phase) => middle(({ phaseMs }) => phaseMs[phase])),
    cost: fitCost(samples, mean(samples.map(({ bytes }) => bytes)) ?? 0),
  };
}

/** A number for each phase. */
export const mapPhases = (of: (phase: Phase) => number): Record<Phase, number> =>
  Object.fromEntries(phases.map((phase) => [phase, of(phase)])) as Record<Phase, number>;

/** Beyond it, in shares of the median, a task has more to read than its siblings. */
const moreInput = 1.2;

/**
 * The run time that its input explains: by the line through the stage's tasks where they tell one, else in proportion to
 * what it reads, which is the most that input can explain. Never less than the usual: a task is held against what is
 * usual, not against what it might have been for having little to do.
 */
export function expectedMs({ runMs, bytes: usualBytes, cost }: Usual, bytes: number): number {
  if (usualBytes <= 0 || bytes <= moreInput * usualBytes) return runMs;
  return Math.max(runMs, cost.isLearnt ? costOf(cost, bytes) : (runMs * bytes) / usualBytes);
}

type Timed = Pick<AttemptRun, 'runMs' | 'bytes' | 'readShare' | 'isFinished'>;

/** What an attempt takes in all: foretold by what it had read where it did not end. */
const wholeMs = ({ runMs = 0, readShare, isFinished }: Timed): number =>
  isFinished || readShare === undefined || readShare <= 0 ? runMs : runMs / readShare;

/** How many times longer an attempt takes than is usual, whatever it reads; undefined where nothing can be said. */
export function latenessOf(run: Timed, usual: Usual | undefined): number | undefined {
  if (usual === undefined || run.runMs === undefined || usual.runMs <= 0) return undefined;
  return wholeMs(run) / usual.runMs;
}

/** How many times longer an attempt takes than is usual for its input; undefined where nothing can be said. */
export function slownessOf(run: Timed, usual: Usual | undefined): number | undefined {
  const lateness = latenessOf(run, usual);
  if (usual === undefined || lateness === undefined) return undefined;
  return (lateness * usual.runMs) / expectedMs(usual, run.bytes);
}
