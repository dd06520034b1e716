import { atRankOfBoth, quantileOf } from '../../../lib/sorted-numbers.ts';
import { type Expected, foretell, type Foretold } from '../../estimate/foretell.ts';
import { samplesOf, sampleCount, type SlownessSamples } from '../../estimate/new-copy.ts';
import { ranMs } from '../../estimate/progress-rate.ts';
import type { AttemptView } from '../../model/job-view.ts';
import { costOf } from '../../model/task-cost.ts';
import { type AppraisedCopy, cadenceMs, newMsOf } from '../mantri/appraise.ts';
import type { PolicyView, RunningTask, StageRuns } from '../policy-set.ts';

/** A running task as `outrider` weighs it. Times are of the copy that ends first. */
export interface JudgedTask {
  readonly running: RunningTask;
  readonly copies: readonly AppraisedCopy[];
  /** Time left: as likely too long as too short, and what it is at least, by the error of the estimate. */
  readonly remMs: number;
  readonly leastRemMs: number;
  /** How long it has run. */
  readonly ranMs: number;
  /** What a new copy may take, each as likely, ascending. */
  readonly newMs: readonly number[];
  readonly bytes: number;
  /** Since the last copy was launched. */
  readonly sinceCopyMs: number;
  /** Its whole run time over what is usual for its input. */
  readonly slowness: number;
}

/** What is known of a stage at one tick. */
export interface JudgedStage {
  /** Tasks finished, or running with an end foretold. */
  readonly samples: number;
  /** Copies of a task come no closer than this, and a restart ends by so much sooner. */
  readonly deltaMs: number;
  readonly tasks: readonly JudgedTask[];
}

/** Finished tasks before they foretell what their like take. */
const leastFinished = 3;
/** Of a normal distribution, the quartiles lie so many standard deviations apart. */
const quartileSpan = 1.349;
const leastError = 0.05;
/** Times of a new copy that stand for all. */
const draws = 16;
/** Share of an ordinary task's time within which its copies are not judged again. Source: Mantri §5, Δ. */
const deltaShare = 0.1;

interface StageTerms {
  readonly view: PolicyView;
  readonly samples: SlownessSamples;
  /** Slowness of as many tasks, ascending: finished ones and running ones. */
  readonly slowness: readonly number[];
  readonly medianSlowness: number;
  readonly meanBytes: number;
  /** Foretold of every copy that anything is foretold of. */
  readonly foretold: ReadonlyMap<AttemptView, Foretold>;
}

/** What finished tasks of a stage foretell, as slowness: its median and spread; undefined of too few. */
function usualOf({ stage }: StageRuns): Expected | undefined {
  const { slowness } = stage.statistics;
  const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => quantileOf(slowness, share) ?? 0);
  if (slowness.size < leastFinished || low === undefined || middle === undefined || high === undefined)
    return undefined;
  const error = low <= 0 ? leastError : Math.log(high / low) / quartileSpan;
  return { ms: middle, error: Math.max(leastError, error) };
}

function foretellAll(runs: StageRuns, view: PolicyView): ReadonlyMap<AttemptView, Foretold> {
  const { shape, cost } = runs.stage.statistics;
  const usual = usualOf(runs);
  const found = new Map<AttemptView, Foretold>();
  for (const { task, copies } of runs.tasks) {
    const expected = usual && { ...usual, ms: usual.ms * costOf(cost, task.inputBytes) };
    for (const attempt of copies) {
      const foretold = foretell(attempt, { now: view.now, shape, expected, reportMs: view.reportMs });
      if (foretold !== undefined) found.set(attempt, foretold);
    }
  }
  return found;
}

/** As many numbers that stand for finished and running tasks together: each the middle of as large a share. */
function drawsOf({ finished, running }: SlownessSamples): number[] {
  const count = finished.size + running.length;
  return Array.from({ length: Math.min(draws, count) }, (_, place) => {
    const rank = Math.floor(((place + 0.5) / Math.min(draws, count)) * count);
    return atRankOfBoth(finished, running, rank) ?? 0;
  });
}

/** Weighs a task. As long as nothing is learnt of costs, one that reads little is not supposed to take little. */
function judgeTask(running: RunningTask, terms: StageTerms): JudgedTask {
  const { view, samples, slowness, medianSlowness, foretold } = terms;
  const bytes = running.task.inputBytes;
  const cost = costOf(samples.cost, samples.cost.isLearnt ? bytes : Math.max(bytes, terms.meanBytes));
  const usualMs = medianSlowness * cost;
  const copies = running.copies.map((attempt) => {
    const known = foretold.get(attempt);
    const ran = ranMs(attempt, view.now);
    // One of which nothing is known is taken for an ordinary one.
    const totalMs = known?.totalMs ?? Math.max(ran, usualMs);
    const remMs = Math.max(0, totalMs - ran);
    const leastRemMs = Math.max(0, totalMs * Math.exp(-(known?.error ?? 0)) - ran);
    return { attempt, remMs, leastRemMs, ranMs: ran, isTold: known?.isTold ?? false };
  });
  const first = copies.reduce((best, each) => (each.leastRemMs < best.leastRemMs ? each : best));
  const lastLaunch = Math.max(...running.copies.map(({ launchedAt }) => launchedAt));
  return {
    running,
    copies,
    remMs: first.remMs,
    leastRemMs: first.leastRemMs,
    ranMs: first.ranMs,
    newMs: slowness.map((each) => newMsOf(running, each * cost + samples.lagMs, view.now)),
    bytes,
    sinceCopyMs: Math.max(0, view.now - lastLaunch),
    slowness: usualMs <= 0 ? 1 : (first.ranMs + first.remMs) / usualMs,
  };
}

/**
 * Δ of a stage: a share of what an ordinary task takes; once the shape of its progress is learnt, how often attempts
 * report, where that is less. Then nothing new is known until the next report, and there is no reason to wait after it: a
 * tenth of twenty minutes let tasks run on that were known to be slow. Before, most of what looks slow is only young.
 */
function deltaOf(runs: StageRuns, view: PolicyView, shareMs: number): number {
  const isLearnt = runs.stage.statistics.shape.tasks > 0;
  return isLearnt ? Math.min(shareMs, cadenceMs(runs, view)) : shareMs;
}

/** Weighs every running task of a stage. Costs a sort of what runs. */
export function judgeStage(runs: StageRuns, view: PolicyView): JudgedStage {
  const foretold = foretellAll(runs, view);
  const samples = samplesOf(
    runs.stage,
    runs.tasks.flatMap(({ task, copies }) =>
      copies.flatMap((attempt) => {
        const ms = (attempt.progress?.bytesRead ?? 0) > 0 ? foretold.get(attempt)?.totalMs : undefined;
        return ms === undefined ? [] : [{ bytes: task.inputBytes, ms }];
      }),
    ),
  );
  const slowness = drawsOf(samples);
  const medianSlowness = slowness[slowness.length >>> 1] ?? 0;
  const { meanBytes } = runs.stage.statistics;
  const usualMs = medianSlowness * costOf(samples.cost, meanBytes);
  const terms = { view, samples, slowness, medianSlowness, meanBytes, foretold };
  return {
    samples: sampleCount(samples),
    deltaMs: deltaOf(runs, view, deltaShare * usualMs),
    tasks: runs.tasks.map((running) => judgeTask(running, terms)),
  };
}
