import { ErrorName } from '../../contracts/errors.ts';
import type { ExplainedCause } from '../../contracts/explanation.ts';
import { finalJobStates, type JobRecord } from '../../contracts/records.ts';
import { type AttemptRun, endOf, hasFailed } from './attempt-runs.ts';
import type { ToldDecisions } from './decision-events.ts';

/** The wait of a task for an attempt that has not been launched, after one that came to nothing. */
export interface NextWait {
  readonly after: AttemptRun;
  readonly since: number;
  /** Now, or the job's end. */
  readonly until: number;
  readonly isJobOver: boolean;
}

/** Launches beside an attempt that is at work, or was just told to stop. */
const copies: ReadonlySet<string | undefined> = new Set(['backup', 'clone', 'restart']);

/**
 * Of attempts of a task of which none is done, the one that was at work last: of a copy and what it was launched beside, that
 * which ended later. Undefined of none. Of those before one that is no copy, or of which the log does not say so, none was at work
 * any more: clocks of different workers do not tell which ended first.
 */
export function lastAtWork(runs: readonly AttemptRun[], { launches }: ToldDecisions): AttemptRun | undefined {
  const first = runs.findLastIndex(({ attempt }) => !copies.has(launches.get(attempt.attemptId)?.reason));
  return runs
    .slice(Math.max(0, first))
    .toSorted((a, b) => endOf(a) - endOf(b))
    .at(-1);
}

/**
 * For how long a task has waited for its next attempt whose last one was `after`; undefined where it does not. Of a job that
 * failed, where it is not known to have failed over another task or its budget, that may be the attempt it failed over.
 */
export function nextWaitOf(
  after: AttemptRun | undefined,
  { state, error, endedAt }: Pick<JobRecord, 'state' | 'error' | 'endedAt'>,
  { failedTask, now }: { readonly failedTask: string | undefined; readonly now: number },
): NextWait | undefined {
  if (after === undefined || !hasFailed(after) || state === 'succeeded') return undefined;
  if (state === 'failed' && failedTask === undefined && error?.name !== ErrorName.BudgetReached)
    return undefined;
  // Of one that was given up, when that was.
  const since = after.attempt.endedAt ?? endOf(after);
  const isJobOver = finalJobStates.includes(state);
  const until = Math.max(since, isJobOver ? (endedAt ?? now) : now);
  return { after, since, until, isJobOver };
}

/** That wait as what holds its task up, with what the log tells of why the next attempt was not launched. */
export function causeOfNextWait(
  { after: { attempt, stage, task }, since, until, isJobOver }: NextWait,
  { declined, throttled, renewed }: ToldDecisions,
): ExplainedCause {
  const taskId = `${stage}/${task}`;
  const isSince = ({ at }: { readonly at: number }): boolean => at >= since;
  const of = (reason: string): number =>
    declined.filter((each) => each.reason === reason && each.task === taskId && isSince(each)).length;
  const isRenewed = renewed.some((each) => each.stage === stage && isSince(each));
  return {
    kind: 'waits-again',
    ms: until - since,
    attemptId: attempt.attemptId,
    facts: {
      jobOver: isJobOver ? 1 : 0,
      noSlot: of('no-slot'),
      overBudget: of('budget'),
      throttled: throttled.filter((each) => each.attemptId.startsWith(`${taskId}/`) && isSince(each)).length,
      lostInputs: attempt.failure?.cause === 'input-lost' && !isRenewed ? 1 : 0,
    },
  };
}
