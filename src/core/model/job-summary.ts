import type { Prices } from '../../contracts/prices.ts';
import type { StagePlan } from '../../contracts/plan.ts';
import { type AttemptCounts, noAttempts, type StageSummary } from '../../contracts/records.ts';
import type { EpochMs } from '../../contracts/units.ts';
import { billedMsOf, workerMsOf } from '../estimate/progress-rate.ts';
import { limits } from '../../contracts/limits.ts';
import { takesName } from '../../contracts/own-counters.ts';
import type { JobCosts, JobRequests, RequestTally } from '../../contracts/requests.ts';
import { computeDollars, costsOf, requestsOf, totalOf } from './cost.ts';
import { addTallies } from './request-tally.ts';
import {
  type AttemptView,
  isDeclined,
  isLive,
  isRiding,
  type JobState,
  type StageView,
  type TaskView,
} from './job-view.ts';

/** What a job has come to so far: the changing part of its record. */
export interface JobSummary {
  readonly stages: readonly StageSummary[];
  readonly attempts: AttemptCounts;
  readonly counters: Readonly<Record<string, number>>;
  readonly workerMs: number;
  readonly dollars: number;
  readonly costs: JobCosts;
  /** Absent, as are the coordinator's, where nobody counts. */
  readonly requests?: JobRequests;
  readonly coordination?: RequestTally;
}

/** Counter under which a job tells how many names it does not keep. */
const countersLeftOut = 'countersLeftOut';

/** Fraction of a task that is done: 1 with a result, else the furthest of its running attempts. */
function taskProgress(task: TaskView): number {
  if (task.result !== undefined) return 1;
  return task.attempts.filter(isLive).reduce((best, { progress }) => {
    if (progress === undefined || progress.bytesTotal === 0) return best;
    return Math.max(best, Math.min(1, progress.bytesRead / progress.bytesTotal));
  }, 0);
}

function stageSummary(stage: StageView, plan: StagePlan, now: EpochMs): StageSummary {
  const sum = (pick: (task: TaskView) => number): number =>
    stage.tasks.reduce((total, task) => total + pick(task), 0);
  const attempts = stage.tasks.flatMap((task) => task.attempts);
  return {
    name: stage.shape.name,
    operator: plan.description.operator ?? 'code',
    tasks: stage.tasks.length,
    done: stage.done,
    running: attempts.filter((attempt) => isLive(attempt) && !isRiding(attempt) && !attempt.cancelOrdered)
      .length,
    failed: attempts.filter(
      (attempt) => attempt.state === 'failed' || (attempt.state === 'lost' && !isDeclined(attempt)),
    ).length,
    bytesIn: sum(({ result }) => result?.bytesIn ?? 0),
    bytesOut: sum(({ result }) => result?.bytesOut ?? 0),
    recordsIn: sum(({ result }) => result?.recordsIn ?? 0),
    recordsOut: sum(({ result }) => result?.recordsOut ?? 0),
    ...(stage.openedAt === undefined ? {} : { startedAt: stage.openedAt }),
    ...(stage.doneAt === undefined ? {} : { endedAt: stage.doneAt }),
    workerMs: attempts.reduce((total, attempt) => total + workerMsOf(attempt, now), 0),
    progress: stage.tasks.length === 0 ? 1 : sum(taskProgress) / stage.tasks.length,
  };
}

function attemptCounts(attempts: Iterable<AttemptView>): AttemptCounts {
  const counts: { -readonly [Name in keyof AttemptCounts]: number } = { ...noAttempts };
  for (const attempt of attempts) {
    const { reason, state, cancelOrdered } = attempt;
    counts.launched += 1;
    if (reason === 'backup') counts.backups += 1;
    if (reason === 'clone') counts.clones += 1;
    if (reason === 'recompute') counts.recomputed += 1;
    if (reason === 'restart') counts.restarts += 1;
    if (isDeclined(attempt)) counts.declined += 1;
    else if (state === 'lost') counts.lost += 1;
    else if (state === 'cancelled' || (cancelOrdered && state !== 'done')) counts.cancelled += 1;
  }
  return counts;
}

/**
 * The counters of all tasks, summed by name. A job keeps as many names as its limit, those that come first by stage
 * and task, and all of the system's own; how many were left out is told under a name of its own.
 */
function summedCounters({ stages }: JobState): Readonly<Record<string, number>> {
  const sums = new Map<string, number>();
  const leftOut = new Set<string>();
  let taken = 0;
  for (const { result } of stages.flatMap(({ tasks }) => tasks)) {
    for (const [name, value] of Object.entries(result?.counters ?? {})) {
      const before = sums.get(name);
      const isCharged = before === undefined && takesName(name);
      if (isCharged && taken >= limits.countersPerJob) {
        leftOut.add(name);
        continue;
      }
      if (isCharged) taken += 1;
      sums.set(name, (before ?? 0) + value);
    }
  }
  if (leftOut.size > 0) sums.set(countersLeftOut, leftOut.size);
  return Object.fromEntries(sums);
}

/** Whether an attempt has worked and nobody will tell any more how much it asked for: it died, or was given up. */
const isUncounted = ({ state, claimedAt, progress }: AttemptView): boolean =>
  claimedAt !== undefined && (state === 'lost' || (state !== 'running' && progress?.requests === undefined));

/**
 * What a job has asked for and cost so far: what its workers have told, and what the coordinator has counted.
 * Attempts that run have told what they had asked for at their last report.
 */
function expenses(
  state: JobState,
  plans: readonly StagePlan[],
  now: EpochMs,
  coordination: RequestTally | undefined,
  prices: Prices | undefined,
): Pick<JobSummary, 'costs' | 'dollars' | 'requests' | 'coordination'> {
  let compute = 0;
  let uncounted = 0;
  let tally = coordination ?? {};
  for (const attempt of state.attempts.values()) {
    const worker = attempt.worker ?? plans[attempt.stage]?.description.worker;
    if (worker !== undefined) compute += computeDollars(worker, billedMsOf(attempt, now), prices);
    if (attempt.progress?.requests !== undefined) tally = addTallies(tally, attempt.progress.requests);
    if (isUncounted(attempt)) uncounted += 1;
  }
  const costs = costsOf(tally, compute, prices);
  return {
    costs,
    dollars: totalOf(costs),
    ...(coordination === undefined ? {} : { requests: requestsOf(tally, uncounted), coordination }),
  };
}

/**
 * Sums a job up. `plans` are its stages' plans, in the order of its state; `coordination` is what the coordinator has
 * counted, where somebody counts; `prices` are the list unless told. Costs one pass over all attempts.
 */
export function summarizeJob(
  state: JobState,
  plans: readonly StagePlan[],
  now: EpochMs,
  coordination?: RequestTally,
  prices?: Prices,
): JobSummary {
  const stages = state.stages.flatMap((stage) => {
    const plan = plans[stage.index];
    return plan === undefined ? [] : [stageSummary(stage, plan, now)];
  });
  return {
    stages,
    attempts: attemptCounts(state.attempts.values()),
    counters: summedCounters(state),
    workerMs: stages.reduce((total, { workerMs }) => total + workerMs, 0),
    ...expenses(state, plans, now, coordination, prices),
  };
}
