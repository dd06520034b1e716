import type {
  Explanation,
  ExplainedAttempt,
  ExplainedStage,
  ExplainedTask,
} from '../../contracts/explanation.ts';
import type { JobRecord } from '../../contracts/records.ts';
import { deadlineMet } from '../job-table.ts';
import { type AttemptRun, endOf, hasFailed, isGivenUp } from './attempt-runs.ts';
import { criticalPath, lastTasks } from './critical-path.ts';
import type { ToldDecisions } from './decision-events.ts';
import { isOver, type JobFacts, type Known, knownOf } from './known-job.ts';
import { slowFactor, taskIdOf } from './node-evidence.ts';
import { slowNodesOf } from './slow-nodes.ts';
import { causesOfTask, decidingRun, decidingRuns, type TaskRuns, totalMsOf } from './task-causes.ts';
import { latenessOf, notUsualOf, slownessOf } from './usual-run.ts';

/** A stage, or a task of it. Absent: the job. */
export interface About {
  readonly stage: string;
  readonly task?: number;
}

/** Stragglers of a stage that are told of: of a job, and of a stage that was asked about. */
const toldOfJob = 3;
const toldOfStage = 20;

/** Explains a job, a stage or a task from its records and its log. Takes nothing for known that they do not tell. */
export function explainJob(facts: JobFacts, about?: About): Explanation {
  const known = knownOf(facts);
  const { job, decisions, runs, now } = known;
  const isWanted = (id: string): boolean => {
    if (about === undefined) return true;
    const wanted = about.task === undefined ? about.stage : `${about.stage}/${about.task}`;
    return `${id}/`.startsWith(`${wanted}/`) || (about.task === undefined ? false : id === about.stage);
  };
  const stages = job.stages.filter(({ name }) => about === undefined || name === about.stage);
  const wanted = runs.filter(({ attempt }) => isWanted(attempt.attemptId));
  const endedAt = job.endedAt ?? now;
  return {
    jobId: job.jobId,
    state: job.state,
    error: job.error?.message ?? null,
    ...(known.failedTask === undefined ? {} : { failedTask: known.failedTask }),
    deadline: deadlineOf(job, now),
    budget: budgetOf(job),
    policy: job.spec.policy,
    about:
      about === undefined ? null : about.task === undefined ? about.stage : `${about.stage}/${about.task}`,
    log: logOf(facts),
    wallMs: Math.max(0, endedAt - job.createdAt),
    path: about === undefined ? [...pathOf(known, endedAt)] : [],
    stages: stages.map((stage) => explainStage(stage, known, about)),
    slowNodes: [...slowNodesOf(wanted, known.causes)],
    actions: decisions.actions
      .filter(({ of }) => (of === undefined ? about === undefined : isWanted(of)))
      .map((action) => ({ ...action, ...endOfAction(action, known) })),
    declined: decisions.declined.filter(({ task }) => isWanted(task)),
    failures: wanted.flatMap(failureOf(decisions)),
    cost: costOf(known, wanted, about),
  };
}

function deadlineOf(job: JobRecord, now: number): Explanation['deadline'] {
  const { deadlineAt, endedAt } = job;
  if (deadlineAt === undefined) return null;
  return {
    at: deadlineAt,
    isMet: deadlineMet(job) ?? (now > deadlineAt ? false : null),
    ...(endedAt !== undefined && endedAt > deadlineAt ? { lateMs: endedAt - deadlineAt } : {}),
  };
}

function budgetOf({ dollars, spec: { budget } }: JobRecord): Explanation['budget'] {
  if (budget === undefined) return null;
  return { dollars: budget, ...(dollars > budget ? { overDollars: dollars - budget } : {}) };
}

function logOf({ decisions, unread }: JobFacts): Explanation['log'] {
  if (unread === undefined) return { state: decisions.state };
  return { state: decisions.state === 'none' ? 'unread' : 'part', why: unread };
}

/** The task of a stage over which the job failed, or that ended last; where one has not ended, or not again, that one. */
function lastOf(tasks: readonly TaskRuns[]): TaskRuns | undefined {
  const end = (task: TaskRuns): number => {
    const run = decidingRun(task);
    return run === undefined ? 0 : endOf(run);
  };
  const failed = tasks.find((task) => task.failed !== undefined);
  if (failed !== undefined) return failed;
  const open = tasks.filter(({ winner, again }) => winner === undefined || again !== undefined);
  return (open.length > 0 ? open : tasks).toSorted((a, b) => end(b) - end(a))[0];
}

const tasksOf = ({ tasks }: Known, stage: string): readonly TaskRuns[] =>
  [...tasks.values()].filter(({ runs }) => runs[0]?.stage === stage);

function pathOf(known: Known, endedAt: number): Explanation['path'] {
  const { job, opened, failedTask } = known;
  const last = new Map(
    job.stages.flatMap(({ name }) => {
      const task = lastOf(tasksOf(known, name));
      return task === undefined ? [] : [[name, task] as const];
    }),
  );
  const tasks = lastTasks(job, last, failedTask?.split('/')[0]);
  const isRunning = !isOver(job);
  // One that has failed in another stage did not end for want of a slot.
  const mayWait = isRunning || job.state === 'cancelled' || tasks.length === 0;
  const waiting = mayWait ? waitingStage(known, last) : undefined;
  const marks = { createdAt: job.createdAt, endedAt, opened, isRunning };
  return [...criticalPath(tasks, waiting === undefined ? marks : { ...marks, waiting })];
}

/** The stage that was opened first of those of which nothing was launched; undefined where there is none. */
const waitingStage = ({ opened }: Known, last: ReadonlyMap<string, TaskRuns>): string | undefined =>
  [...opened].filter(([name]) => !last.has(name)).toSorted(([, a], [, b]) => a - b)[0]?.[0];

/** How late the worst is of the attempts that a task's time went to; 0 where that is not known. */
const worstLateness = (task: TaskRuns, { index: { usual }, decisions }: Known): number =>
  Math.max(0, ...decidingRuns(task, decisions).map((run) => latenessOf(run, usual.get(run.stage)) ?? 0));

const isStraggler = (task: TaskRuns, known: Known): boolean => worstLateness(task, known) > slowFactor;

function explainStage(
  { name, tasks, done }: JobRecord['stages'][number],
  known: Known,
  about: About | undefined,
): ExplainedStage {
  const all = tasksOf(known, name);
  const usual = known.index.usual.get(name);
  const last = lastOf(all);
  const stragglers = all
    .filter((task) => isStraggler(task, known))
    .map((task) => ({ task, lateness: worstLateness(task, known) }))
    .toSorted((a, b) => b.lateness - a.lateness)
    .map(({ task }) => task);
  const asked = about?.task === undefined ? undefined : known.tasks.get(`${name}/${about.task}`);
  const limit = about === undefined ? toldOfJob : toldOfStage;
  const told =
    about?.task === undefined
      ? [...new Set([...(last === undefined ? [] : [last]), ...stragglers.slice(0, limit)])]
      : asked === undefined
        ? []
        : [asked];
  return {
    stage: name,
    tasks,
    done,
    usual:
      usual === undefined
        ? null
        : {
            tasks: usual.tasks,
            runMs: usual.runMs,
            waitMs: usual.waitMs,
            bytes: usual.bytes,
            phaseMs: { ...usual.phaseMs },
          },
    ...(usual === undefined
      ? {
          notUsual: notUsualOf(
            tasks,
            all.flatMap(({ winner = [] }) => winner),
          ),
        }
      : {}),
    last: last?.taskId ?? null,
    stragglers: stragglers.length,
    told: told.map((task) => explainTask(task, known)),
  };
}

function explainTask(task: TaskRuns, known: Known): ExplainedTask {
  const { decisions, causes, opened } = known;
  const openedAt = opened.get(task.runs[0]?.stage ?? '');
  return {
    taskId: task.taskId,
    winner: task.winner?.attempt.attemptId ?? null,
    straggler: isStraggler(task, known),
    totalMs: totalMsOf(task, openedAt),
    causes: [
      ...causesOfTask(task, {
        ...{ openedAt, decisions, slownessOf: causes },
        runsOf: (taskId) => known.tasks.get(taskId)?.runs ?? [],
      }),
    ],
    attempts: task.runs.map((run) => explainAttempt(run, task, known)),
  };
}

function explainAttempt(run: AttemptRun, task: TaskRuns, { decisions, index }: Known): ExplainedAttempt {
  const { attempt, waitMs, rideMs, unclaimedMs, runMs, phaseMs } = run;
  const { attemptId, launchedAt, claimedAt, endedAt, failure, node, zone, progress } = attempt;
  const launch = decisions.launches.get(attemptId);
  const stopReason = decisions.stops.get(attemptId)?.reason;
  const givenUp = decisions.givenUp.get(attemptId);
  const slowness = slownessOf(run, index.usual.get(run.stage));
  return {
    attemptId,
    // The first attempt of a task is owed, whatever is left of the log.
    reason: launch?.reason ?? (run.number === 0 ? 'first' : null),
    end: endingOf(run, task),
    launchedAt,
    facts: { ...launch?.facts },
    ...(stopReason === undefined ? {} : { stopReason }),
    ...(failure === undefined ? {} : { failure: { cause: failure.cause, message: failure.message } }),
    ...(givenUp === undefined || failure !== undefined ? {} : { givenUp }),
    ...(claimedAt === undefined ? {} : { claimedAt }),
    ...(endedAt === undefined ? {} : { endedAt }),
    ...(waitMs === undefined ? {} : { waitMs }),
    ...(rideMs === undefined ? {} : { rideMs }),
    ...(unclaimedMs === undefined ? {} : { unclaimedMs }),
    ...(runMs === undefined ? {} : { runMs }),
    ...(phaseMs === undefined ? {} : { phaseMs: { ...phaseMs } }),
    ...(progress === undefined ? {} : { bytesRead: progress.bytesRead, bytesTotal: progress.bytesTotal }),
    ...(progress?.takenUp === undefined
      ? {}
      : { takenUp: { attempt: progress.takenUp.attempt, bytes: progress.takenUp.bytes } }),
    ...(node === undefined ? {} : { node }),
    ...(zone === undefined ? {} : { zone }),
    ...(slowness === undefined ? {} : { slowness }),
  };
}

function endingOf(run: AttemptRun, { winner, makers }: TaskRuns): ExplainedAttempt['end'] {
  switch (run.attempt.state) {
    case 'done':
      if (run === winner) return 'won';
      return makers.includes(run) ? 'again' : 'second';
    case 'failed':
      return 'failed';
    case 'lost':
      return 'lost';
    case 'cancelled':
      return 'stopped';
    case 'launched':
    case 'running':
      return 'open';
  }
}

function endOfAction(
  { of, kind, reason, facts }: ToldDecisions['actions'][number],
  { runs, tasks }: Known,
): Partial<Pick<Explanation['actions'][number], 'end' | 'takenUp' | 'facts'>> {
  const run = runs.find(({ attempt }) => attempt.attemptId === of);
  if (run === undefined) return {};
  const task = tasks.get(taskIdOf(run));
  if (task === undefined) return {};
  const takenUp = run.attempt.progress?.takenUp?.attempt;
  // Why a node is avoided that no job knows as slow.
  const failedThere =
    kind === 'decline'
      ? task.runs.filter((each) => hasFailed(each) && each.attempt.node === reason).length
      : 0;
  return {
    end: endingOf(run, task),
    ...(takenUp === undefined ? {} : { takenUp }),
    ...(failedThere === 0 ? {} : { facts: { ...facts, failedThere } }),
  };
}

const failureOf =
  ({ givenUp }: ToldDecisions) =>
  (run: AttemptRun): Explanation['failures'] => {
    if (!hasFailed(run) || run.attempt.failure?.cause === 'declined') return [];
    const { attemptId, failure } = run.attempt;
    const { cause = givenUp.get(attemptId) ?? 'unknown', message = '' } = failure ?? {};
    return [{ attemptId, cause, message }];
  };

/** What a given-up attempt is billed beyond its last report: nobody knows when it ended before it was given up. */
function unheardOf({ attempt, runMs = 0 }: AttemptRun): number {
  const { claimedAt, launchedAt, endedAt } = attempt;
  if (!isGivenUp(attempt) || claimedAt === undefined || endedAt === undefined) return 0;
  return Math.max(0, endedAt - Math.max(claimedAt, launchedAt) - runMs);
}

/** By the record of the job or the stage, which counts attempts to their end; a task has none. */
function costOf(
  { job, tasks }: Known,
  wanted: readonly AttemptRun[],
  about: About | undefined,
): Explanation['cost'] {
  const isWinner = (run: AttemptRun): boolean => tasks.get(taskIdOf(run))?.winner === run;
  const sum = (runs: readonly AttemptRun[]): number =>
    runs.reduce((total, { runMs = 0 }) => total + runMs, 0);
  const wonMs = sum(wanted.filter(isWinner));
  const otherMs = sum(wanted.filter((run) => !isWinner(run)));
  const ofStage = job.stages.find(({ name }) => name === about?.stage)?.workerMs ?? 0;
  const unheardMs =
    about?.task === undefined
      ? Math.max(0, (about === undefined ? job.workerMs : ofStage) - wonMs - otherMs)
      : wanted.reduce((total, run) => total + unheardOf(run), 0);
  const { dollars, costs, workerMs } = job;
  return { dollars, costs: { ...costs }, workerMs, wonMs, otherMs, unheardMs };
}
