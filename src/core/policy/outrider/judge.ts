import { inputOf } from '../../model/task-input.ts';
import { invariant } from '../../../contracts/errors.ts';
import { atRankOfBoth, quantileOf } from '../../../lib/sorted-numbers.ts';
import { type Expected, foretell, type Foretold, isOverdue } from '../../estimate/foretell.ts';
import {
  type ForetoldRun,
  samplesOf,
  sampleCount,
  type SlownessSamples,
  wholeRuns,
  zoneSamples,
} from '../../estimate/new-copy.ts';
import { ranMs } from '../../estimate/progress-rate.ts';
import { recordFactor, usualDensity } from '../../estimate/record-density.ts';
import { type ProgressShape, shapeOfRunning } from '../../model/progress-shape.ts';
import { hasTakenUp, partForNew, partOf } from '../../model/taken-up.ts';
import { costOf, costOfShare, inputLeeway, type TaskCost } from '../../model/task-cost.ts';
import { type AppraisedCopy, cadenceMs, isContended, newMsOf, sampledOf } from '../mantri/appraise.ts';
import { type ChosenZone, chooseZone, type StageZones, zonesOf } from '../mantri/choose-zone.ts';
import type { AttemptView } from '../../model/job-view.ts';
import type { PolicyView, RunningTask, StageRuns } from '../policy-set.ts';

/** A copy as `outrider` weighs it. */
export interface JudgedCopy extends AppraisedCopy {
  /** How long it has run. */
  readonly ranMs: number;
}

/** A running task as `outrider` weighs it. Times are of the copy that ends first. */
export interface JudgedTask {
  readonly running: RunningTask;
  readonly copies: readonly JudgedCopy[];
  /**
   * Time left: as likely too long as too short; and what a copy is weighed by. While tasks wait, that is the least that it
   * is by the error of the estimate, since a wrong bet takes another task's slot; with slots to spare it is the same.
   */
  readonly remMs: number;
  readonly leastRemMs: number;
  /** How long it has run. */
  readonly ranMs: number;
  /** What a new copy may take, each as likely, ascending; in the zone where it would run. */
  readonly newMs: readonly number[];
  readonly newMeanMs: number;
  /** That zone; absent where it cannot be chosen. */
  readonly chosen?: ChosenZone | undefined;
  /** What one that waits takes as likely as not, wherever that runs. */
  readonly usualMs: number | undefined;
  readonly bytes: number;
  /** Since the last copy was launched. */
  readonly sinceCopyMs: number;
  /** Its whole run time over the most that its input explains. */
  readonly slowness: number;
  /** How many times as many records as usual it has in each byte; 1: as usual, or nobody knows. */
  readonly recordFactor: number;
  /** Whether it has run for longer than what those that have finished, for all that they may be wrong, let expect of it. */
  readonly isLate: boolean;
}

/** What is known of a stage at one tick. */
export interface JudgedStage {
  /** Tasks finished, or running with an end foretold. */
  readonly samples: number;
  /** Copies of a task come no closer than this, and a restart ends by so much sooner. */
  readonly deltaMs: number;
  /** Where copies of its tasks may run; undefined where that cannot be chosen. */
  readonly zones: StageZones | undefined;
  readonly tasks: readonly JudgedTask[];
}

/** Finished tasks before they foretell what their like take; all but one in a stage that has no more. */
const leastFinished = 3;
/** How wrong that may be where one or two have finished: a task alone may have been fast by a factor of e. */
const fewErrors = [1, 0.7] as const;
/** Of a normal distribution, the quartiles lie so many standard deviations apart. */
const quartileSpan = 1.349;
const leastError = 0.05;
/** Times of a new copy that stand for all. */
const draws = 16;
/** Share of an ordinary task's time within which its copies are not judged again. Source: Mantri §5, Δ. */
const deltaShare = 0.1;

/** What a new copy may take, each as likely, ascending, and in the mean; 0 where nothing tells. */
interface NewTimes {
  readonly newMs: readonly number[];
  readonly newMeanMs: number;
}

interface StageTerms {
  readonly view: PolicyView;
  readonly samples: SlownessSamples;
  readonly zones: StageZones | undefined;
  /** Slowness of as many tasks, ascending: finished ones and running ones. */
  readonly slowness: readonly number[];
  readonly medianSlowness: number;
  /** Bytes that a task is taken to read at the least. */
  readonly leastBytes: number;
  /** What a new copy may take where none ran in vain, by what its task costs there: tasks that read as much share it. */
  readonly newMsByCost: Map<number, NewTimes>;
}

/** What is foretold of a task. */
interface ForetoldTask {
  readonly recordFactor: number;
  readonly isLate: boolean;
  /** Of its attempts, in the order of `sampledOf`: its copies first. */
  readonly attempts: readonly (Foretold | undefined)[];
}

/** What is foretold where nothing is. */
const untold: ForetoldTask = { recordFactor: 1, isLate: false, attempts: [] };

/** What finished tasks of a stage foretell, as slowness: its median and spread; undefined of too few. */
function usualOf({ stage }: StageRuns): Expected | undefined {
  const { slowness } = stage.statistics;
  const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => quantileOf(slowness, share) ?? 0);
  const least = Math.max(1, Math.min(leastFinished, stage.tasks.length - 1));
  if (slowness.size < least || low === undefined || middle === undefined || high === undefined)
    return undefined;
  const spread = low <= 0 ? leastError : Math.log(high / low) / quartileSpan;
  return { ms: middle, error: Math.max(leastError, fewErrors[slowness.size - 1] ?? spread) };
}

/** The shape of a stage's progress: of finished tasks, or until there are enough, of those that run. */
function shapeNow({ stage, tasks }: StageRuns, { now }: PolicyView): ProgressShape {
  const { shape } = stage.statistics;
  if (shape.tasks > 0) return shape;
  const courses = tasks.flatMap(({ copies }) =>
    copies.flatMap((attempt) => {
      const { bytesRead = 0, bytesTotal = 0 } = attempt.progress ?? {};
      const runMs = ranMs(attempt, now);
      return bytesRead <= 0 || bytesTotal <= 0 || hasTakenUp(attempt)
        ? []
        : [{ reports: attempt.reports, bytesTotal, runMs }];
    }),
  );
  return shapeOfRunning(courses);
}

/**
 * Bytes that a task is taken to read at the least: as long as nothing is learnt of what a byte costs, one that reads less
 * than others is not supposed to take less than those that have finished did. 0 once it is.
 */
function leastSupposed({ stage: { statistics } }: StageRuns, { isLearnt }: TaskCost): number {
  if (isLearnt) return 0;
  const { meanBytes, readBytes, runMs } = statistics;
  return Math.max(meanBytes, runMs.size === 0 ? 0 : readBytes / runMs.size);
}

/** What is foretold of each running task, in their order, and of its attempts that tell what a new one may take. */
function foretellAll(
  runs: StageRuns,
  view: PolicyView,
): { readonly byTask: readonly ForetoldTask[]; readonly samples: ForetoldRun[] } {
  const { cost } = runs.stage.statistics;
  const shape = shapeNow(runs, view);
  const { now, reportMs } = view;
  const usual = usualOf(runs);
  const leastBytes = leastSupposed(runs, cost);
  const { density } = runs.stage.statistics;
  const usually = usualDensity(
    density,
    runs.tasks.flatMap(({ copies }) => copies),
  );
  const samples: ForetoldRun[] = [];
  const atLeast: ForetoldRun[] = [];
  const byTask = runs.tasks.map((running): ForetoldTask => {
    const bytes = inputOf(running.task);
    const factor = recordFactor(running.copies, usually);
    const expectedOf = (attempt: AttemptView): Expected | undefined => {
      const { share, takeUpMs } = partOf(attempt);
      return (
        usual && {
          ms: usual.ms * costOfShare(cost, { bytes, share, leastBytes }) * factor + takeUpMs,
          error: usual.error,
        }
      );
    };
    const attempts: (Foretold | undefined)[] = [];
    let isLate = false;
    for (const attempt of sampledOf(running)) {
      const expected = expectedOf(attempt);
      const isCopy = attempts.length < running.copies.length;
      if (isCopy && expected !== undefined && isOverdue(ranMs(attempt, now), expected)) isLate = true;
      // One that was told to stop is taken as it was when it was seen last.
      const terms = { now, shape, expected, reportMs };
      const foretold = foretell(attempt, attempt.cancelOrdered ? { ...terms, now: attempt.seenAt } : terms);
      attempts.push(foretold);
      if (foretold === undefined || (attempt.progress?.bytesRead ?? 0) <= 0 || hasTakenUp(attempt)) continue;
      const run = { bytes, ms: foretold.totalMs / factor, zone: attempt.zone };
      (foretold.isLeast === true ? atLeast : samples).push(run);
    }
    return { recordFactor: factor, isLate, attempts };
  });
  return { byTask, samples: [...samples, ...wholeRuns(atLeast, samples, runs.stage)] };
}

/** As many numbers that stand for finished and running tasks together: each the middle of as large a share. */
function drawsOf({ finished, running }: SlownessSamples): number[] {
  const count = finished.size + running.length;
  return Array.from({ length: Math.min(draws, count) }, (_, place) => {
    const rank = Math.floor(((place + 0.5) / Math.min(draws, count)) * count);
    return atRankOfBoth(finished, running, rank) ?? 0;
  });
}

/** What a new copy of a task may take: no less than one took that has not brought anything. */
function newMsFor(
  cost: number,
  { inVainMs, takeUpMs = 0 }: { readonly inVainMs: number; readonly takeUpMs?: number },
  { slowness, samples, newMsByCost }: StageTerms,
): NewTimes {
  const isAny = inVainMs === 0 && takeUpMs === 0;
  const known = isAny ? newMsByCost.get(cost) : undefined;
  if (known !== undefined) return known;
  const beforeMs = samples.lagMs + takeUpMs;
  const newMs = slowness.map((each) => Math.max(each * cost + beforeMs, inVainMs));
  let sumMs = 0;
  for (const ms of newMs) sumMs += ms;
  const times = { newMs, newMeanMs: sumMs / Math.max(1, newMs.length) };
  if (isAny) newMsByCost.set(cost, times);
  return times;
}

/** Weighs a task. */
function judgeTask(running: RunningTask, foretold: ForetoldTask, terms: StageTerms): JudgedTask {
  const { view, samples, medianSlowness } = terms;
  const bytes = inputOf(running.task);
  const { recordFactor: factor, isLate, attempts } = foretold;
  const { leastBytes } = terms;
  const costOfPart = (share: number): number =>
    costOfShare(samples.cost, { bytes, share, leastBytes }) * factor;
  const usualOfMs = (attempt: AttemptView): number => {
    const { share, takeUpMs } = partOf(attempt);
    return medianSlowness * costOfPart(share) + takeUpMs;
  };
  const inVainMs = newMsOf(running, 0, view.now);
  const chosen = chooseZone(terms.zones, running);
  // Another copy takes up what is there, too; a task that waits does not.
  const left = partForNew(running.task);
  const waitingMs = newMsFor(costOfPart(1), { inVainMs }, terms).newMs;
  const caution = isContended(view.slots) ? 1 : 0;
  const copies = running.copies.map((attempt, place) => {
    const known = attempts[place];
    const ran = ranMs(attempt, view.now);
    // One of which nothing is known is taken for an ordinary one.
    const totalMs = known?.totalMs ?? Math.max(ran, usualOfMs(attempt));
    const remMs = Math.max(0, totalMs - ran);
    const leastRemMs = Math.max(0, totalMs * Math.exp(-caution * (known?.error ?? 0)) - ran);
    return { attempt, remMs, leastRemMs, ranMs: ran, isTold: known?.isTold ?? false };
  });
  let first: (typeof copies)[number] | undefined;
  let lastLaunch = -Infinity;
  for (const each of copies) {
    if (first === undefined || each.leastRemMs < first.leastRemMs) first = each;
    if (each.attempt.launchedAt > lastLaunch) lastLaunch = each.attempt.launchedAt;
  }
  invariant(first !== undefined, 'a running task of which nothing runs', { task: running.task.index });
  const usualMs = usualOfMs(first.attempt);
  return {
    running,
    copies,
    remMs: first.remMs,
    leastRemMs: first.leastRemMs,
    ranMs: first.ranMs,
    ...newMsFor(costOfPart(left.share) * (chosen?.factor ?? 1), { inVainMs, takeUpMs: left.takeUpMs }, terms),
    chosen,
    usualMs: waitingMs[waitingMs.length >>> 1],
    bytes,
    sinceCopyMs: Math.max(0, view.now - lastLaunch),
    slowness: usualMs <= 0 ? 1 : (first.ranMs + first.remMs) / (usualMs * inputLeeway(samples.cost, bytes)),
    recordFactor: factor,
    isLate,
  };
}

/** Before the shape of progress is learnt, a task is judged once it could have reported so often. */
const earlyReports = 4;

/**
 * Δ of a stage: a share of what an ordinary task takes; once the shape of its progress is learnt, how often attempts
 * report, where that is less. Then nothing new is known until the next report, and there is no reason to wait after it: a
 * tenth of twenty minutes let tasks run on that were known to be slow. Before, most of what looks slow is only young: it
 * is a few reports, since what a task takes may be foretold by far too long where progress is slow at first, and so
 * would its tenth be.
 */
function deltaOf(runs: StageRuns, view: PolicyView, shareMs: number): number {
  const isLearnt = runs.stage.statistics.shape.tasks > 0;
  return Math.min(shareMs, (isLearnt ? 1 : earlyReports) * cadenceMs(runs, view));
}

/** Weighs every running task of a stage. Costs a sort of what runs. */
export function judgeStage(runs: StageRuns, view: PolicyView): JudgedStage {
  const foretold = foretellAll(runs, view);
  const samples = samplesOf(runs.stage, foretold.samples);
  const zones = zonesOf(runs.stage, () => zoneSamples(samples, foretold.samples), view);
  const slowness = drawsOf(samples);
  const medianSlowness = slowness[slowness.length >>> 1] ?? 0;
  const { meanBytes } = runs.stage.statistics;
  const usualMs = medianSlowness * costOf(samples.cost, meanBytes);
  const leastBytes = leastSupposed(runs, samples.cost);
  const terms = { view, samples, zones, slowness, medianSlowness, leastBytes, newMsByCost: new Map() };
  return {
    samples: sampleCount(samples),
    deltaMs: deltaOf(runs, view, deltaShare * usualMs),
    zones,
    tasks: runs.tasks.map((running, place) => judgeTask(running, foretold.byTask[place] ?? untold, terms)),
  };
}
