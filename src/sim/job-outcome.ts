import { invariant } from '../contracts/errors.ts';
import type { RequestTally } from '../contracts/requests.ts';
import type { JobRun } from './job-scheduler.ts';
import type { AttemptOutcome, JobOutcome, StageOutcome } from './outcome.ts';
import { computeDollars, costsOf, totalOf } from '../core/model/cost.ts';
import { addTallies } from '../core/model/request-tally.ts';
import type { JobState, StageView, TaskView } from '../core/model/job-view.ts';

/** From the first claim of any attempt of a task to its result; undefined without either. */
function taskMs(task: TaskView): number | undefined {
  if (task.result === undefined) return undefined;
  const first = task.attempts.reduce(
    (least, { claimedAt }) => Math.min(least, claimedAt ?? Infinity),
    Infinity,
  );
  return first === Infinity ? undefined : task.result.committedAt - first;
}

function stageOutcome(stage: StageView): StageOutcome {
  return {
    name: stage.shape.name,
    tasks: stage.tasks.length,
    upstream: stage.shape.upstream,
    clones: stage.clones,
    openedAtMs: stage.openedAt,
    doneAtMs: stage.doneAt,
    taskMs: stage.tasks.flatMap((task) => taskMs(task) ?? []),
  };
}

function lastCommitMs(state: JobState): number {
  let last = 0;
  for (const { tasks } of state.stages) {
    for (const { result } of tasks) last = Math.max(last, result?.committedAt ?? 0);
  }
  return last;
}

function launchesOf({ attempts }: JobState): JobOutcome['launches'] {
  const unclaimed = [...attempts.values()].filter(({ claimedAt }) => claimedAt === undefined).length;
  return { made: attempts.size, unclaimed };
}

/**
 * What a job has cost at list prices, copies that stopped after its end included: its workers' time and what their
 * attempts have asked for, as far as they tell.
 */
function dollarsOf({ job, session }: JobRun, attempts: readonly AttemptOutcome[]): number {
  let compute = 0;
  let tally: RequestTally = {};
  for (const { attemptId, stage, claimedAtMs, leftAtMs } of attempts) {
    const attempt = session?.state.attempts.get(attemptId);
    const worker = attempt?.worker ?? job.stages[stage]?.scenario.worker ?? job.scenario.worker;
    if (claimedAtMs !== undefined) compute += computeDollars(worker, leftAtMs - claimedAtMs);
    if (attempt?.progress?.requests !== undefined) tally = addTallies(tally, attempt.progress.requests);
  }
  return totalOf(costsOf(tally, compute));
}

/** The deadline that a job had when it ended: the last that came in time, in whatever order they are listed. */
function deadlineOf(
  { deadlineMs, deadlineChanges }: JobRun['job']['scenario'],
  ranMs: number,
): number | undefined {
  const inTime = deadlineChanges.filter(({ atMs }) => atMs < ranMs).toSorted((a, b) => a.atMs - b.atMs);
  return inTime.at(-1)?.deadlineMs ?? deadlineMs;
}

/** What became of a job. `attempts` holds all its deliveries, in the order in which they left their slots. */
export function outcomeOf(run: JobRun, attempts: readonly AttemptOutcome[], invocations: number): JobOutcome {
  const { job, session, state, error } = run;
  invariant(session !== undefined && (state === 'succeeded' || state === 'failed'), 'the job has not ended', {
    jobId: job.id,
  });
  for (const attempt of attempts) attempt.reason = session.state.attempts.get(attempt.attemptId)?.reason;
  const startedAtMs = attempts.reduce(
    (first, { claimedAtMs }) => Math.min(first, claimedAtMs ?? Infinity),
    Infinity,
  );
  const completedAtMs = state === 'failed' ? run.endedAtMs : lastCommitMs(session.state);
  return {
    jobId: job.id,
    index: job.index,
    name: job.scenario.name,
    policy: job.scenario.policy,
    state,
    error,
    tasks: job.stages.reduce((sum, { tasks }) => sum + tasks.length, 0),
    arrivedAtMs: job.arrivesAt,
    startedAtMs: startedAtMs === Infinity ? undefined : startedAtMs,
    completedAtMs,
    deadlineMs: deadlineOf(job.scenario, completedAtMs - job.arrivesAt),
    asked: run.asked,
    stages: session.state.stages.map(stageOutcome),
    attempts,
    lostOutputs: run.lostOutputs,
    copiedOutputs: run.copiedOutputs,
    launches: launchesOf(session.state),
    invocations,
    dollars: dollarsOf(run, attempts),
  };
}
