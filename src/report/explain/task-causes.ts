import type { ExplainedCause, ToldRefusal } from '../../contracts/explanation.ts';
import { type AttemptRun, endOf, hasFailed } from './attempt-runs.ts';
import type { ToldDecisions } from './decision-events.ts';
import { causeOfNextWait, type NextWait } from './next-attempt.ts';

/** A task, as far as it has come. */
export interface TaskRuns {
  readonly taskId: string;
  /** By launch; at least one. */
  readonly runs: readonly AttemptRun[];
  /** The one whose result counts. */
  readonly winner: AttemptRun | undefined;
  /** The attempt that failed the job; absent where the task did not. */
  readonly failed?: AttemptRun;
  /** Attempts launched since its output was lost, for the last time, by launch. */
  readonly redo: readonly AttemptRun[];
  /** Those that made an output again that was lost, one for each loss after which it was. */
  readonly makers: readonly AttemptRun[];
  /** The last of them at work, while none of them is done; absent where nothing is to be made again. */
  readonly again?: AttemptRun;
  /** The one at work last, while none is done. */
  readonly last?: AttemptRun;
  /** Present where that came to nothing, or the last of those that were to make its output again, and no other is launched yet. */
  readonly waits?: NextWait;
}

/**
 * The attempts of a task from the one on that was launched since the output of one that was done was lost. The log tells why each was
 * launched; without it, those that were launched once the winner had ended, which its own worker's clock tells.
 */
export function redoOf(
  runs: readonly AttemptRun[],
  winner: AttemptRun | undefined,
  { launches }: ToldDecisions,
): readonly AttemptRun[] {
  const later = winner === undefined ? [] : runs.filter(({ number }) => number > winner.number);
  const reasons = later.map(({ attempt }) => launches.get(attempt.attemptId)?.reason);
  const first = reasons.indexOf('recompute');
  if (first >= 0) return later.slice(first);
  if (winner?.attempt.claimedAt === undefined || reasons.some((reason) => reason !== undefined)) return [];
  return later.filter(({ attempt }) => attempt.launchedAt >= endOf(winner));
}

/**
 * The attempt that a task's time is told of: the one that failed the job, or was to make an output again that was lost, or
 * that won, else the one at work last.
 */
export const decidingRun = ({ winner, failed, again, last }: TaskRuns): AttemptRun | undefined =>
  failed ?? again ?? winner ?? last;

/**
 * That one, and those before it, which it came after: what the time of a task went to. Those that were launched as it ran
 * took none of it, and beside a clone that decides no other did.
 */
export function decidingRuns(task: TaskRuns, { launches }: ToldDecisions): readonly AttemptRun[] {
  const deciding = decidingRun(task);
  if (deciding === undefined) return [];
  if (launches.get(deciding.attempt.attemptId)?.reason === 'clone') return [deciding];
  return task.runs.filter(({ number }) => number <= deciding.number);
}

/**
 * From the opening of its stage, or its first launch where that is not known, to its end or what was seen last; until now, or
 * the job's end, where it waits for its next attempt.
 */
export function totalMsOf(task: TaskRuns, openedAt: number | undefined): number {
  const from = Math.min(openedAt ?? Infinity, task.runs[0]?.attempt.launchedAt ?? Infinity);
  const deciding = decidingRun(task);
  return deciding === undefined ? 0 : Math.max(0, (task.waits?.until ?? endOf(deciding)) - from);
}

/** Whether a task was owed what it was refused: numbers tell why a copy was to be made, and dollars of one at work are for a copy. */
function isOfOwed({ at, reason, facts }: ToldRefusal, runs: readonly AttemptRun[]): boolean {
  if (reason !== 'budget') return Object.keys(facts).length === 0;
  return !runs.some(
    ({ attempt: { launchedAt, endedAt } }) => launchedAt <= at && (endedAt === undefined || endedAt > at),
  );
}

interface Told {
  readonly openedAt: number | undefined;
  readonly decisions: ToldDecisions;
  /** Why an attempt was slow. */
  readonly slownessOf: (run: AttemptRun) => readonly ExplainedCause[];
  /** The attempts of any task of the job. */
  readonly runsOf: (taskId: string) => readonly AttemptRun[];
}

/**
 * Where the time of a task went beyond what is usual, in the order in which it did: the wait for its first launch, the
 * attempts before the one that decides, that one's waits, why it was slow where it was, and the wait for the next one where it
 * came to nothing.
 */
export function causesOfTask(task: TaskRuns, told: Told): readonly ExplainedCause[] {
  const [first] = task.runs;
  const deciding = decidingRun(task);
  if (first === undefined || deciding === undefined) return [];
  return [
    ...causesBeforeLaunch(first, told),
    ...causesBefore(task, first, deciding, told),
    ...causesOfWait(deciding, told.decisions),
    ...told.slownessOf(deciding),
    ...(task.waits === undefined ? [] : [causeOfNextWait(task.waits, told.decisions)]),
  ];
}

/** How often the host refused the launch of an attempt, until some time or after it. */
function refusalsOf(
  { attemptId, launchedAt }: AttemptRun['attempt'],
  { throttled }: ToldDecisions,
  which: 'until-launch' | 'since-launch',
): number {
  const own = throttled.filter((each) => each.attemptId === attemptId);
  return own.filter(({ at }) => at < launchedAt === (which === 'until-launch')).length;
}

function causesBeforeLaunch(
  { attempt, stage }: AttemptRun,
  { openedAt, decisions, runsOf }: Told,
): readonly ExplainedCause[] {
  const { attemptId, launchedAt } = attempt;
  const ms = openedAt === undefined ? 0 : Math.max(0, launchedAt - openedAt);
  if (ms === 0) return [];
  const { throttled, renewed } = decisions;
  const isBefore = ({ at }: { readonly at: number }): boolean => at <= launchedAt && at >= launchedAt - ms;
  // Of the tasks of a stage that wait, the first alone is told of. That there was no room for a copy held none of them up.
  const of = (reason: string): number =>
    decisions.declined.filter(
      (each) =>
        each.reason === reason &&
        each.at <= launchedAt &&
        each.task.startsWith(`${stage}/`) &&
        isOfOwed(each, runsOf(each.task)),
    ).length;
  return [
    {
      kind: 'before-launch',
      ms,
      attemptId,
      facts: {
        noSlot: of('no-slot'),
        overBudget: of('budget'),
        throttled: refusalsOf(attempt, decisions, 'until-launch'),
        // Whatever they were of: what the host refuses leaves the job fewer slots for a while.
        othersThrottled: throttled.filter((each) => each.attemptId !== attemptId && isBefore(each)).length,
        renewedInputs: renewed.filter((each) => each.stage === stage && isBefore(each)).length,
      },
    },
  ];
}

/** What came before the attempt that decides. Of one that makes a lost output again, what came before the loss is its winner's. */
function causesBefore(
  { runs, redo }: TaskRuns,
  first: AttemptRun,
  deciding: AttemptRun,
  told: Told,
): readonly ExplainedCause[] {
  const [again] = redo;
  if (again === undefined || !redo.includes(deciding)) return triedBefore(runs, first, deciding, told);
  const { attemptId, launchedAt } = again.attempt;
  const ms = Math.max(0, launchedAt - first.attempt.launchedAt);
  return [{ kind: 'output-lost', ms, attemptId, facts: {} }, ...triedBefore(redo, again, deciding, told)];
}

/** Of some attempts from the first on: failures where all before the one that decides had failed, else attempts that lagged. */
function triedBefore(
  runs: readonly AttemptRun[],
  first: AttemptRun,
  deciding: AttemptRun,
  { decisions, slownessOf }: Told,
): readonly ExplainedCause[] {
  if (deciding === first) return [];
  const before = runs.filter(({ attempt }) => attempt.launchedAt <= deciding.attempt.launchedAt);
  const ms = Math.max(0, deciding.attempt.launchedAt - first.attempt.launchedAt);
  const failed = before.filter((run) => run !== deciding && hasFailed(run));
  const others = before.filter((run) => run !== deciding && !hasFailed(run));
  const { attemptId } = deciding.attempt;
  if (decisions.launches.get(attemptId)?.reason === 'clone') return [];
  const isRetry = others.length === 0;
  return [
    {
      kind: isRetry ? 'earlier-failed' : 'copied',
      ms,
      attemptId,
      facts: { failedAttempts: failed.length, otherAttempts: others.length },
    },
    // What they waited for and why they lagged, without its time: that is in the time until the copy was made.
    ...others.flatMap((run) => refusedWait(run, decisions)).map(withoutTime),
    ...others.flatMap(slownessOf).map(withoutTime),
  ];
}

function withoutTime(cause: ExplainedCause): ExplainedCause {
  const { kind, attemptId, node, evidence, facts } = cause;
  return {
    kind,
    attemptId,
    ...(node === undefined ? {} : { node }),
    ...(evidence === undefined ? {} : { evidence }),
    facts,
  };
}

/**
 * The wait for a launch that the host refused, until it was made again: its record has the time of the first try. Nothing
 * where it was not refused, or the log does not tell when it was made.
 */
function refusedWait(
  { attempt, unclaimedMs = 0, waitMs = unclaimedMs }: AttemptRun,
  decisions: ToldDecisions,
): readonly ExplainedCause[] {
  const { attemptId, launchedAt } = attempt;
  const throttled = refusalsOf(attempt, decisions, 'since-launch');
  const ms = Math.min(waitMs, Math.max(0, (decisions.launchedAt.get(attemptId) ?? launchedAt) - launchedAt));
  return throttled === 0 || ms === 0
    ? []
    : [{ kind: 'launch-refused', ms, attemptId, facts: { throttled, waitedMs: ms } }];
}

function causesOfWait(run: AttemptRun, decisions: ToldDecisions): readonly ExplainedCause[] {
  const { attempt, unclaimedMs, waitMs = unclaimedMs ?? 0, isWarm } = run;
  const { attemptId, node } = attempt;
  const refused = refusedWait(run, decisions);
  const refusedMs = refused[0]?.ms ?? 0;
  const rideMs = Math.max(0, (run.rideMs ?? 0) - refusedMs);
  const hostMs = Math.max(0, waitMs - refusedMs - rideMs);
  const where = { attemptId, ...(node === undefined ? {} : { node }) };
  return [
    ...refused,
    ...(rideMs === 0 ? [] : [{ kind: 'ride', ms: rideMs, ...where, facts: {} } as const]),
    ...(hostMs === 0
      ? []
      : [
          {
            kind: 'host-wait',
            ms: hostMs,
            ...where,
            facts: {
              ...(unclaimedMs === undefined ? {} : { unclaimed: 1 }),
              warm: isWarm === true ? 1 : 0,
              // Those of which the log does not tell when the launch was made again.
              throttled: refused.length > 0 ? 0 : refusalsOf(attempt, decisions, 'since-launch'),
            },
          } as const,
        ]),
  ];
}
