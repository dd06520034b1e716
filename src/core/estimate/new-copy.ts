import { inputOf } from '../model/task-input.ts';
import {
  atRank,
  atRankOfBoth,
  countBelow,
  countBelowIn,
  type SortedNumbers,
} from '../../lib/sorted-numbers.ts';
import { costOf, fitCost, type TaskCost } from '../model/task-cost.ts';
import { hasTakenUp } from '../model/taken-up.ts';
import { meanMs, workBytes } from '../model/stage-statistics.ts';
import type { ZoneSample } from './location-factor.ts';
import { recentMsPerByte } from './remaining-time.ts';
import { reportedMs } from './progress-rate.ts';
import type { AttemptView, StageStatistics, StageView, TaskView } from '../model/job-view.ts';

/** How slow tasks of a stage are for what they read: samples of finished and of running attempts, both ascending. */
export interface SlownessSamples {
  /** What a task of such an input costs: slowness is time over it. */
  readonly cost: TaskCost;
  readonly finished: SortedNumbers;
  readonly running: Float64Array;
  /** Sum of the running samples. */
  readonly runningSum: number;
  /** From the decision to launch until an attempt runs. */
  readonly lagMs: number;
}

/** Milliseconds per byte of a running attempt so far; undefined before its first byte, and of one that does a rest. */
export function msPerByteOf(
  attempt: AttemptView,
  statistics: StageStatistics,
  task: TaskView,
): number | undefined {
  const { bytesRead = 0, bytesTotal = 0 } = attempt.progress ?? {};
  const ms = reportedMs(attempt);
  if (bytesRead <= 0 || ms <= 0 || bytesTotal <= 0 || hasTakenUp(attempt)) return undefined;
  return (ms * bytesTotal) / bytesRead / workBytes(statistics, task);
}

/** A running attempt, its input, how long it will take in all as far as can be told, and where it runs. */
export interface ForetoldRun {
  readonly bytes: number;
  readonly ms: number;
  readonly zone?: string | undefined;
}

/**
 * What a running attempt takes in all at its rate of late, Δtime over Δdata of its last reports; one report counts
 * from its start. Undefined where it has read nothing of late, and of one that does only the rest of its task.
 */
function foretoldOf(task: TaskView, attempt: AttemptView, window: number): ForetoldRun | undefined {
  const { bytesRead = 0, bytesTotal = 0 } = attempt.progress ?? {};
  if (bytesRead <= 0 || bytesTotal <= 0 || hasTakenUp(attempt)) return undefined;
  const recent = recentMsPerByte(attempt, window) ?? reportedMs(attempt) / bytesRead;
  return Number.isFinite(recent) && recent > 0
    ? { bytes: inputOf(task), ms: recent * bytesTotal, zone: attempt.zone }
    : undefined;
}

/**
 * What running attempts foretell of a stage, those that have read something of late.
 *
 * Source: Mantri §5.5, processRate from reports, Δtime over Δdata.
 */
export const foretoldRuns = (
  running: readonly { readonly task: TaskView; readonly attempt: AttemptView }[],
  window: number,
): readonly ForetoldRun[] => running.flatMap(({ task, attempt }) => foretoldOf(task, attempt, window) ?? []);

/**
 * Samples of a stage from its finished tasks, and what is foretold of running ones; `running` in any order.
 *
 * Source: Mantri §5.5, processRate (from reports and from finished tasks) and schedLag. Differs: time is not taken to be
 * in proportion to input where finished tasks tell otherwise.
 */
export function samplesOf({ statistics }: StageView, running: readonly ForetoldRun[]): SlownessSamples {
  const isLearnt = statistics.slowness.size > 0;
  const cost = isLearnt ? statistics.cost : fitCost(running, statistics.meanBytes);
  const slowness = new Float64Array(running.length);
  let place = 0;
  for (const { bytes, ms } of running) slowness[place++] = ms / costOf(cost, bytes);
  slowness.sort();
  let runningSum = 0;
  for (const each of slowness) runningSum += each;
  return {
    cost,
    finished: statistics.slowness,
    running: slowness,
    runningSum,
    lagMs: meanMs(statistics.lag),
  };
}

/**
 * What runs take in all of which only the least is known: that, where it is more than any other takes that is known; else
 * the median of what those take that take longer. Were the least taken for the whole, those that have just begun would make
 * each new copy look fast; were they left out, only the fastest of a stage would count, which are known first. None where
 * nothing is known as a whole.
 *
 * Source: Efron, "The two sample problem with censored data" (1967): mass goes to the right; the median in its place.
 */
export function wholeRuns(
  atLeast: readonly ForetoldRun[],
  known: readonly ForetoldRun[],
  stage: StageView,
): readonly ForetoldRun[] {
  if (atLeast.length === 0) return [];
  const { cost, finished, running } = samplesOf(stage, known);
  if (finished.size + running.length === 0) return [];
  const slownessOf = ({ bytes, ms }: ForetoldRun): number => ms / costOf(cost, bytes);
  const most = Math.max(atRank(finished, finished.size - 1) ?? 0, running.at(-1) ?? 0);
  const longest = atLeast.filter((run) => slownessOf(run) >= most);
  const others = Float64Array.from([...running, ...longest.map(slownessOf)]).sort();
  const count = finished.size + others.length;
  return atLeast.map((run) => {
    const least = slownessOf(run);
    if (least >= most) return run;
    const below = countBelow(finished, least) + countBelowIn(others, least);
    const slowness = atRankOfBoth(finished, others, (below + count) >>> 1) ?? least;
    return { ...run, ms: slowness * costOf(cost, run.bytes) };
  });
}

/** How slow running attempts are, and where: those of the samples that are not finished. */
export const zoneSamples = ({ cost }: SlownessSamples, running: readonly ForetoldRun[]): ZoneSample[] =>
  running.map(({ bytes, ms, zone }) => ({ zone, slowness: ms / costOf(cost, bytes) }));

/** Number of samples. */
export const sampleCount = ({ finished, running }: SlownessSamples): number => finished.size + running.length;

/**
 * E(t_new): mean time of a new copy of a task that reads `bytes`, on a machine `locationFactor` times as slow as
 * others. Undefined without samples.
 */
export function newCopyMs(samples: SlownessSamples, bytes: number, locationFactor = 1): number | undefined {
  const count = sampleCount(samples);
  if (count === 0) return undefined;
  const slowness = (samples.finished.sum + samples.runningSum) / count;
  return slowness * locationFactor * costOf(samples.cost, bytes) + samples.lagMs;
}

/** What a new copy takes as likely as not, which single slow tasks do not change. Undefined without samples. */
export function medianNewCopyMs(
  samples: SlownessSamples,
  bytes: number,
  locationFactor = 1,
): number | undefined {
  const slowness = atRankOfBoth(samples.finished, samples.running, (sampleCount(samples) - 1) >>> 1);
  return slowness === undefined
    ? undefined
    : slowness * locationFactor * costOf(samples.cost, bytes) + samples.lagMs;
}

/** P(t_new < `limitMs`): the share of samples at which a new copy would take less. 0 without samples. */
export function probabilityBelow(
  samples: SlownessSamples,
  bytes: number,
  limitMs: number,
  locationFactor = 1,
): number {
  const count = sampleCount(samples);
  if (count === 0) return 0;
  const slowness = (limitMs - samples.lagMs) / (costOf(samples.cost, bytes) * locationFactor);
  return (countBelow(samples.finished, slowness) + countBelowIn(samples.running, slowness)) / count;
}
