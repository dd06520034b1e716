import { inputOf } from '../../model/task-input.ts';
import { elapsedMs, type EpochMs } from '../../../contracts/units.ts';
import { quantileIn, quantileOf } from '../../../lib/sorted-numbers.ts';
import {
  foretoldRuns,
  newCopyMs,
  samplesOf,
  type SlownessSamples,
  zoneSamples,
} from '../../estimate/new-copy.ts';
import { ranMs, reportedMs, scoreOf } from '../../estimate/progress-rate.ts';
import { type RemainingTerms, remainingMs } from '../../estimate/remaining-time.ts';
import { type AttemptView, isLive } from '../../model/job-view.ts';
import { partForNew } from '../../model/taken-up.ts';
import type { PolicyView, RunningTask, StageRuns } from '../policy-set.ts';
import { type ChosenZone, chooseZone, type StageZones, zonesOf } from './choose-zone.ts';

/** A copy with its t_rem: infinite where it has not begun. */
export interface AppraisedCopy {
  readonly attempt: AttemptView;
  readonly remMs: number;
  /** Whether its own progress tells its time left; else it is supposed by its age. */
  readonly isTold: boolean;
}

/**
 * Orders copies of a task by how far they have come: those whose time left is told by it, then those of which nothing
 * can be told by what they have read; among equals the oldest, which has the most to lose, first. Were copies that do
 * not get on ordered by an estimate that grows with age, each new one would have the oldest killed, and the task never
 * ended.
 */
export const byAdvance = (a: AppraisedCopy, b: AppraisedCopy): number => {
  if (a.isTold !== b.isTold) return a.isTold ? -1 : 1;
  const [one, other] = a.isTold
    ? [a.remMs, b.remMs]
    : [-(scoreOf(a.attempt) ?? 0), -(scoreOf(b.attempt) ?? 0)];
  return one === other ? a.attempt.number - b.attempt.number : one - other;
};

/** A task is late after its last byte when it takes so many times as long for the rest as this share of tasks. */
const lateShare = 0.9;
const lateFactor = 1.5;

/** A running task as Mantri weighs it. */
export interface Appraisal {
  readonly running: RunningTask;
  readonly copies: readonly AppraisedCopy[];
  /** The least over its copies; undefined where nothing can be said. */
  readonly remMs: number | undefined;
  /** E(t_new), in the zone where another copy would run; undefined without samples. */
  readonly newMs: number | undefined;
  /** That zone; absent where it cannot be chosen. */
  readonly chosen?: ChosenZone | undefined;
  /** Input by which the time of a copy is measured: of the whole task, or of what is left where there is work to take up. */
  readonly newBytes: number;
  /** What others of the stage took, with what comes before the first byte. */
  readonly samples: SlownessSamples;
  /** Since the last copy was launched. */
  readonly sinceCopyMs: number;
}

/** What Mantri knows of a stage at one tick. */
export interface StageAppraisal {
  readonly samples: SlownessSamples;
  /** Δ, the period of reports. */
  readonly deltaMs: number;
  /** Where copies of its tasks may run; absent where that cannot be chosen. */
  readonly zones?: StageZones | undefined;
  readonly tasks: readonly Appraisal[];
}

/**
 * How often attempts of a stage report of late: the median over them of the time since the report before, of one that
 * has reported once since its start. Workers report often while they are young and then less, and at once where they
 * do not get on as before. Before the first report, what the host says.
 */
export function cadenceMs(runs: StageRuns, view: PolicyView): number {
  const gaps = new Float64Array(runs.tasks.length);
  let count = 0;
  for (const { copies } of runs.tasks) {
    const { reports } = copies[0];
    const last = reports[reports.length - 1];
    if (last === undefined) continue;
    gaps[count] = last.workedMs - (reports[reports.length - 2]?.workedMs ?? 0);
    count += 1;
  }
  return Math.min(view.reportMs, quantileIn(gaps.subarray(0, count).sort(), 0.5) ?? view.reportMs);
}

/**
 * Δ of a stage: 10 s or a tenth of a task's lifetime, whichever is less, and never below the interval at which its
 * attempts really report. The lifetime is the median of finished tasks, before those of what running ones foretell.
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
    cadenceMs(runs, view),
    Math.min(deltaMs, lifetime === undefined ? deltaMs : lifetime * lifetimeShare),
  );
}

/**
 * t_rem of a copy. One of which nothing tells for longer than Δ needs a whole copy's time still, or as long again as it
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

interface AppraisalTerms {
  readonly samples: SlownessSamples;
  readonly zones: StageZones | undefined;
  readonly remaining: RemainingTerms;
}

/**
 * What a new copy of a task takes: as the stage says, and no less than what earlier copies of the task have run for in
 * vain. A task that is as slow wherever it runs is not copied again and again. Attempts from before its output was lost
 * were not in vain, and the first one since is no copy.
 */
export function newMsOf({ task, copies }: RunningTask, expectedMs: number, now: EpochMs): number {
  if (task.attempts.length === 1) return expectedMs;
  const first = copies[0].number;
  return task.attempts.reduce((most, attempt) => {
    if (attempt.number <= task.since || attempt.state === 'failed' || attempt.number === first) return most;
    return Math.max(most, isLive(attempt) ? ranMs(attempt, now) : reportedMs(attempt));
  }, expectedMs);
}

function appraiseTask(running: RunningTask, stage: AppraisalTerms, view: PolicyView): Appraisal {
  const bytes = inputOf(running.task);
  const chosen = chooseZone(stage.zones, running);
  const { share, takeUpMs } = partForNew(running.task);
  const newBytes = bytes * share;
  const samples =
    takeUpMs === 0 ? stage.samples : { ...stage.samples, lagMs: stage.samples.lagMs + takeUpMs };
  const expectedMs = newCopyMs(samples, newBytes, chosen?.factor);
  const newMs = expectedMs === undefined ? undefined : newMsOf(running, expectedMs, view.now);
  const copies = running.copies.map((attempt) => {
    const known = remainingMs(attempt, stage.remaining);
    const terms = { deltaMs: stage.remaining.deltaMs, newMs };
    return { attempt, remMs: copyRemMs(attempt, known, view, terms), isTold: known !== undefined };
  });
  const least = Math.min(...copies.map(({ remMs }) => remMs));
  const lastLaunch = Math.max(...running.copies.map(({ launchedAt }) => launchedAt));
  return {
    running,
    copies,
    remMs: least === Infinity ? undefined : least,
    newMs,
    chosen,
    newBytes,
    samples,
    sinceCopyMs: Math.max(0, view.now - lastLaunch),
  };
}

/**
 * Attempts of a running task that tell what a new one may take: those that run, and those that were killed. Were the slow
 * ones forgotten once they are killed, each kill would make new copies look faster, until all were killed.
 */
export function sampledOf({ task, copies }: RunningTask): readonly AttemptView[] {
  if (task.attempts.length === copies.length) return copies;
  return [
    ...copies,
    ...task.attempts.filter(({ cancelOrdered, state }) => cancelOrdered && state !== 'lost'),
  ];
}

/** Weighs every running task of a stage. Costs a sort of what runs. */
export function appraiseStage(runs: StageRuns, view: PolicyView): StageAppraisal {
  const { reportWindow } = view.config.mantri;
  const foretold = foretoldRuns(
    runs.tasks.flatMap((running) => sampledOf(running).map((attempt) => ({ task: running.task, attempt }))),
    reportWindow,
  );
  const samples = samplesOf(runs.stage, foretold);
  const zones = zonesOf(runs.stage, () => zoneSamples(samples, foretold), view);
  const deltaMs = deltaOf(runs, view);
  const { wrapUpMs } = runs.stage.statistics;
  const remaining = {
    now: view.now,
    wrapUpMs: wrapUpMs.size === 0 ? 0 : wrapUpMs.sum / wrapUpMs.size,
    lateWrapUpMs: lateFactor * (quantileOf(wrapUpMs, lateShare) ?? 0),
    window: reportWindow,
    deltaMs,
  };
  return {
    samples,
    deltaMs,
    zones,
    tasks: runs.tasks.map((running) => appraiseTask(running, { samples, zones, remaining }, view)),
  };
}

/** Whether tasks wait for slots that they will not all get this tick. Then a copy takes a waiting task's place. */
export const isContended = ({ waiting, free }: PolicyView['slots']): boolean =>
  waiting > 0 && waiting >= free;

/**
 * Whether at least as many tasks wait as the job has slots. Then a copy may go before them: there is time to make up
 * for it. Fewer are the stage's last wave, where each copy keeps a task back by as long as another takes, and with it
 * the stage's end, however small its share of all slot time is.
 */
export const isQueueLong = (slots: PolicyView['slots']): boolean =>
  isContended(slots) && slots.waiting >= slots.granted;

/** How long an attempt is since its launch, on our clock. */
export const ageMs = (attempt: AttemptView, view: PolicyView): number =>
  elapsedMs(attempt.launchedAt, view.now);
