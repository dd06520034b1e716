import {
  meanPhaseMs,
  phaseAwareTimeLeftMs,
  phaseTimesOf,
  type PhaseTimes,
} from '../../estimate/phase-aware.ts';
import { ranMs, reportedMs, scoreOf, timeLeftMs } from '../../estimate/progress-rate.ts';
import type { PolicyView, StageRuns } from '../policy-set.ts';
import type { AttemptView, TaskView } from '../../model/job-view.ts';

/** A running task as LATE weighs it. */
export interface LateTask {
  readonly task: TaskView;
  readonly attempt: AttemptView;
  readonly isCopied: boolean;
  readonly score: number;
  readonly ranMs: number;
  /** How long it had run when it reported its score. */
  readonly scoredMs: number;
  /** Time per unit of progress, 1 over LATE's progress rate: infinite without progress. */
  readonly msPerTask: number;
  readonly leftMs: number;
}

/**
 * A score is divided by the age at which it was reported, since it says nothing of the time after. The oldest copy
 * stands for its task: a copied task is not copied again and counts for percentiles alone, and
 * there it stays as slow as it was found, since a young copy's rate would raise the threshold and have more tasks
 * copied than the percentile says. One that has not reported has made no progress.
 */
function lateTask({ task, copies }: StageRuns['tasks'][number], view: PolicyView): LateTask {
  const [attempt] = copies;
  const score = scoreOf(attempt) ?? 0;
  const scoredMs = reportedMs(attempt);
  return {
    task,
    attempt,
    isCopied: copies.length > 1,
    score,
    ranMs: ranMs(attempt, view.now),
    scoredMs,
    msPerTask: score <= 0 ? Infinity : scoredMs / score,
    leftMs: timeLeftMs(score, scoredMs),
  };
}

/** The phases of an attempt; a finished one has read all by its end, whatever it reported last. */
function phasesOf(attempt: AttemptView, ms: number, view: PolicyView): PhaseTimes {
  const bytesTotal = attempt.progress?.bytesTotal ?? 0;
  const reports =
    attempt.state === 'done'
      ? [...attempt.reports, { workedMs: ms, bytesRead: bytesTotal }]
      : attempt.reports;
  return phaseTimesOf(reports, { bytesTotal, ranMs: ms }, view.config.late.phaseEnds);
}

/** Estimates again by phases, with what running and lately finished tasks of the stage show of each phase. */
function withPhases(tasks: readonly LateTask[], runs: StageRuns, view: PolicyView): readonly LateTask[] {
  const own = tasks.map((each) => phasesOf(each.attempt, each.ranMs, view));
  const finished = runs.stage.statistics.recent.map((attempt) =>
    phasesOf(attempt, reportedMs(attempt), view),
  );
  const means = meanPhaseMs([...own, ...finished], view.config.late.phaseEnds.length);
  return tasks.map((each, index) => {
    const times = own[index];
    const leftMs = times === undefined ? undefined : phaseAwareTimeLeftMs(times, means);
    return { ...each, leftMs: leftMs ?? each.leftMs };
  });
}

/**
 * Running tasks of a stage with their time left, longest first, ties by index. Those already copied are among them,
 * since they count for percentiles.
 *
 * Source: LATE §4. Differs by setting: `phase-aware` uses the estimator that the paper proposes as future work.
 */
export function rankByTimeLeft(runs: StageRuns, view: PolicyView): readonly LateTask[] {
  const plain = runs.tasks.map((running) => lateTask(running, view));
  const tasks = view.config.late.estimator === 'phase-aware' ? withPhases(plain, runs, view) : plain;
  return tasks.toSorted((a, b) =>
    a.leftMs === b.leftMs ? a.task.index - b.task.index : b.leftMs - a.leftMs,
  );
}
