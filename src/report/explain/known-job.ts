import type { ExplainedCause } from '../../contracts/explanation.ts';
import { failedTaskIn } from '../../contracts/failed-task.ts';
import { type AttemptRecord, finalJobStates, type JobRecord } from '../../contracts/records.ts';
import { hasTakenUp } from '../../core/model/taken-up.ts';
import { type AttemptRun, attemptRuns, endOf, hasFailed } from './attempt-runs.ts';
import type { ToldDecisions } from './decision-events.ts';
import { type RunIndex, taskIdOf, witnessesOf } from './node-evidence.ts';
import { causesOfSlowness } from './slowness-causes.ts';
import { lastAtWork, nextWaitOf } from './next-attempt.ts';
import { redoOf, type TaskRuns } from './task-causes.ts';
import { usualOf } from './usual-run.ts';

/** What is known of a job. */
export interface JobFacts {
  readonly job: JobRecord;
  readonly attempts: readonly AttemptRecord[];
  readonly decisions: ToldDecisions;
  /** Why the log was not read, or not all of it; absent where it was. */
  readonly unread?: string;
  readonly now: number;
}

/** What is known of a job, and what follows from it. */
export interface Known extends JobFacts {
  readonly runs: readonly AttemptRun[];
  readonly index: RunIndex;
  readonly tasks: ReadonlyMap<string, TaskRuns>;
  /** The task over which the job failed; undefined where it did not, or nobody says over which. */
  readonly failedTask: string | undefined;
  /** When stages were opened: by the log, else by the job's record. */
  readonly opened: ReadonlyMap<string, number>;
  readonly causes: (run: AttemptRun) => readonly ExplainedCause[];
}

/** Puts together what is known of a job, so that each of its tasks and stages can be told of. */
export function knownOf(facts: JobFacts): Known {
  const { job, attempts, decisions, now } = facts;
  const runs = attemptRuns(attempts, {
    ...(isOver(job) ? {} : { now }),
    waitedUntil: job.endedAt ?? now,
    stoppedAt: (attemptId) => decisions.stops.get(attemptId)?.at,
  });
  const byTask = Map.groupBy(runs, taskIdOf);
  const failedTask = failedTaskOf(job, byTask);
  const tasks = new Map(
    [...byTask].map(([taskId, all]) => [taskId, taskRunsOf(taskId, all, failedTask, facts)]),
  );
  const winners = Map.groupBy(
    // One that did only the rest of its task is no measure of others.
    [...tasks.values()].flatMap(({ winner }) =>
      winner === undefined || hasTakenUp(winner.attempt) ? [] : winner,
    ),
    ({ stage }) => stage,
  );
  const usual = new Map(
    [...winners].flatMap(([stage, all]) => {
      const found = usualOf(all);
      return found === undefined ? [] : [[stage, found] as const];
    }),
  );
  const byNode = Map.groupBy(
    runs.filter(({ attempt }) => attempt.node !== undefined),
    ({ attempt }) => attempt.node ?? '',
  );
  const firsts = Map.groupBy(
    runs.filter(({ isWarm, isFinished }) => isWarm === false && isFinished),
    ({ stage }) => stage,
  );
  const index: RunIndex = { byNode, byTask, usual, firsts };
  const causes = (run: AttemptRun): readonly ExplainedCause[] =>
    causesOfSlowness(run, usual.get(run.stage), () => witnessesOf(run, index));
  return { ...facts, runs, index, tasks, causes, failedTask, opened: openingsOf(job, decisions) };
}

function taskRunsOf(
  taskId: string,
  all: readonly AttemptRun[],
  failedTask: string | undefined,
  { job, decisions, now }: JobFacts,
): TaskRuns {
  const winner = winnerOf(all, decisions);
  const { redo, makers } = redosOf(all, winner, decisions);
  // What had failed before the task was done failed no job.
  const failed = taskId === failedTask ? lastFailed(winner === undefined ? all : redo) : undefined;
  const isDone = job.state === 'succeeded' || redo.some(({ attempt }) => attempt.state === 'done');
  const again = isDone ? undefined : lastAtWork(redo, decisions);
  const last = winner === undefined ? lastAtWork(all, decisions) : undefined;
  const waits = failed === undefined ? nextWaitOf(again ?? last, job, { failedTask, now }) : undefined;
  return {
    ...{ taskId, runs: all, winner, redo, makers },
    ...(failed === undefined ? {} : { failed }),
    ...(again === undefined ? {} : { again }),
    ...(last === undefined ? {} : { last }),
    ...(waits === undefined ? {} : { waits }),
  };
}

/** The attempts since the last loss of a task's output, and of each loss the one that made the output again. */
function redosOf(
  all: readonly AttemptRun[],
  winner: AttemptRun | undefined,
  decisions: ToldDecisions,
): Pick<TaskRuns, 'redo' | 'makers'> {
  const makers: AttemptRun[] = [];
  let redo = redoOf(all, winner, decisions);
  // Each has a higher number than the one before.
  for (let maker = winnerOf(redo, decisions); maker !== undefined; maker = winnerOf(redo, decisions)) {
    makers.push(maker);
    const next = redoOf(all, maker, decisions);
    if (next.length === 0) break;
    redo = next;
  }
  return { redo, makers };
}

export const isOver = ({ state }: JobRecord): boolean => finalJobStates.includes(state);

const openingsOf = ({ stages }: JobRecord, { opened }: ToldDecisions): ReadonlyMap<string, number> =>
  new Map(
    stages.flatMap(({ name, startedAt }) => {
      const at = opened.get(name) ?? startedAt;
      return at === undefined ? [] : [[name, at]];
    }),
  );

/** Of those that were done, the one whose result counts: the others were told that they came second, or ended later. */
function winnerOf(runs: readonly AttemptRun[], { seconds }: ToldDecisions): AttemptRun | undefined {
  const done = runs.filter(({ attempt }) => attempt.state === 'done').toSorted((a, b) => endOf(a) - endOf(b));
  return done.find(({ attempt }) => !seconds.has(attempt.attemptId)) ?? done[0];
}

function failedTaskOf(
  { state, error }: JobRecord,
  byTask: ReadonlyMap<string, readonly AttemptRun[]>,
): string | undefined {
  const named = state === 'failed' && error !== undefined ? failedTaskIn(error.message) : undefined;
  return named !== undefined && byTask.has(named) ? named : undefined;
}

const lastFailed = (runs: readonly AttemptRun[]): AttemptRun | undefined =>
  runs.filter(hasFailed).toSorted((a, b) => endOf(b) - endOf(a))[0];
