import { elapsedMs } from '../../../contracts/units.ts';
import { quantileIn, quantileOf } from '../../../lib/sorted-numbers.ts';
import { newCopyMs, type RateSamples, rateSamples } from '../../estimate/new-copy.ts';
import { ranMs, reportedMs, scoreOf } from '../../estimate/progress-rate.ts';
import { type RemainingTerms, remainingMs } from '../../estimate/remaining-time.ts';
import { meanMs, workBytes } from '../../model/stage-statistics.ts';
import type { PolicyView, RunningTask, StageRuns } from '../policy-set.ts';
import type { AttemptView } from '../../model/job-view.ts';

/** A copy with its t_rem: infinite where it has not begun. */
export interface AppraisedCopy {
  readonly attempt: AttemptView;
  readonly remMs: number;
}

const hasRead = ({ attempt }: AppraisedCopy): boolean => (attempt.progress?.bytesRead ?? 0) > 0;

/**
 * Orders copies of a task by how far they have come: those that have read by their time left, then those of which
 * nothing can be told; among equals the oldest, which has the most to lose, first. Were copies that have read nothing
 * ordered by an estimate that grows with age, each new one would have the oldest killed, and the task never ended.
 */
export const byAdvance = (a: AppraisedCopy, b: AppraisedCopy): number => {
  const read = hasRead(a);
  if (read !== hasRead(b)) return read ? -1 : 1;
  return read && a.remMs !== b.remMs ? a.remMs - b.remMs : a.attempt.number - b.attempt.number;
};

/** A running task as Mantri weighs it. */
export interface Appraisal {
  readonly running: RunningTask;
  readonly copies: readonly AppraisedCopy[];
  /** The least over its copies; undefined where nothing can be said. */
  readonly remMs: number | undefined;
  /** E(t_new); undefined without samples. */
  readonly newMs: number | undefined;
  /** Input by which its time is measured. */
  readonly bytes: number;
  /** Since the last copy was launched. */
  readonly sinceCopyMs: number;
}

/** What Mantri knows of a stage at one tick. */
export interface StageAppraisal {
  readonly samples: RateSamples;
  /** Δ, the period of reports. */
  readonly deltaMs: number;
  readonly tasks: readonly Appraisal[];
}

/**
 * Δ of a stage: 10 s or a tenth of a task's lifetime, whichever is less, and never below the interval of reports.
 * The lifetime is the median of finished tasks, before those of what running ones foretell.
 *
 * Source: Mantri §5; which lifetime is not said.
 */
export function deltaOf(runs: StageRuns, view: PolicyView): number {
  const { deltaMs, lifetimeShare } = view.config.mantri;
  const foretold = runs.tasks.flatMap(({ copies: [first] }) => {
    const score = scoreOf(first) ?? 0;
    return score <= 0 ? [] : [reportedMs(first) / score];
  });
  const lifetime =
    quantileOf(runs.stage.statistics.runMs, 0.5) ?? quantileIn(Float64Array.from(foretold).sort(), 0.5);
  return Math.max(
    view.reportMs,
    Math.min(deltaMs, lifetime === undefined ? deltaMs : lifetime * lifetimeShare),
  );
}

/**
 * t_rem of a copy. One that has read nothing for longer than Δ needs a whole copy's time still, or as long again as it
 * has run, whichever is more: what it did meanwhile, nobody knows. One that was not claimed yet is not judged.
 *
 * Source: Mantri §5.5 leaves t_rem open without a byte read.
 */
function copyRemMs(
  attempt: AttemptView,
  known: number | undefined,
  view: PolicyView,
  terms: { deltaMs: number; newMs: number | undefined },
): number {
  if (known !== undefined) return known;
  const ran = ranMs(attempt, view.now);
  return terms.newMs === undefined || attempt.claimedAt === undefined || ran <= terms.deltaMs
    ? Infinity
    : Math.max(terms.newMs, ran);
}

/** An estimator of time left: undefined where it cannot tell. */
export type Remaining = (attempt: AttemptView, terms: RemainingTerms) => number | undefined;

interface AppraisalTerms {
  readonly samples: RateSamples;
  readonly deltaMs: number;
  readonly wrapUpMs: number;
  readonly remaining: Remaining;
}

function appraiseTask(running: RunningTask, stage: AppraisalTerms, view: PolicyView): Appraisal {
  const bytes = workBytes(running.task);
  const newMs = newCopyMs(stage.samples, bytes);
  const terms = {
    now: view.now,
    wrapUpMs: stage.wrapUpMs,
    window: view.config.mantri.reportWindow,
    deltaMs: stage.deltaMs,
  };
  const copies = running.copies.map((attempt) => ({
    attempt,
    remMs: copyRemMs(attempt, stage.remaining(attempt, terms), view, { deltaMs: stage.deltaMs, newMs }),
  }));
  const least = Math.min(...copies.map(({ remMs }) => remMs));
  const lastLaunch = Math.max(...running.copies.map(({ launchedAt }) => launchedAt));
  return {
    running,
    copies,
    remMs: least === Infinity ? undefined : least,
    newMs,
    bytes,
    sinceCopyMs: Math.max(0, view.now - lastLaunch),
  };
}

/** Weighs every running task of a stage, time left by Mantri's t_rem unless told otherwise. Costs a sort of what runs. */
export function appraiseStage(
  runs: StageRuns,
  view: PolicyView,
  remaining: Remaining = remainingMs,
): StageAppraisal {
  const samples = rateSamples(
    runs.stage,
    runs.tasks.flatMap(({ copies }) => copies),
  );
  const deltaMs = deltaOf(runs, view);
  const wrapUpMs = meanMs(runs.stage.statistics.wrapUp);
  return {
    samples,
    deltaMs,
    tasks: runs.tasks.map((running) =>
      appraiseTask(running, { samples, deltaMs, wrapUpMs, remaining }, view),
    ),
  };
}

/** Whether tasks wait for slots that they will not all get this tick. Then a copy takes a waiting task's place. */
export const isContended = ({ waiting, free }: PolicyView['slots']): boolean =>
  waiting > 0 && waiting >= free;

/** How long an attempt is since its launch, on our clock. */
export const ageMs = (attempt: AttemptView, view: PolicyView): number =>
  elapsedMs(attempt.launchedAt, view.now);
