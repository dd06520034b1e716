import {
  AccessDeniedError,
  BudgetReachedError,
  type ErrorDetails,
  JobFailedError,
  type OutriderError,
} from '../contracts/errors.ts';
import type { JobId } from '../contracts/ids.ts';
import type { ScheduleOutput } from '../contracts/payloads.ts';
import { later } from '../contracts/units.ts';
import type { TickOutcome } from '../core/model/decision.ts';
import { untilNextTick } from './await-news.ts';
import { sweepEnded } from './end-job.ts';
import { enterJob, leaveJob } from './enter-job.ts';
import type { SchedulerDeps } from './scheduler-deps.ts';
import type { Residency, Session } from './scheduler-session.ts';
import { keepCounts } from './tell-costs.ts';
import { runTick } from './tick-job.ts';

/** Beyond any job's life at 20 ticks a second. */
const maxTicks = 1_000_000;

/** What a tick that ends its job is told as. */
function failureOf(
  { cause, message }: Extract<TickOutcome, { kind: 'fail' }>,
  details: ErrorDetails,
): OutriderError {
  if (cause === 'access-denied') return new AccessDeniedError(message, details);
  return cause === 'budget' ? new BudgetReachedError(message, details) : new JobFailedError(message, details);
}

async function tickUntilSettled(deps: SchedulerDeps, session: Session): Promise<ScheduleOutput['outcome']> {
  for (let ticks = 0; ticks < maxTicks; ticks++) {
    const { outcome, decisions } = await runTick(deps, session);
    if (outcome.kind === 'finish') return 'finish';
    if (outcome.kind === 'fail') {
      throw failureOf(outcome, { jobId: session.jobId });
    }
    // Tasks of what was opened are owed at once, and so are those whose output is gone.
    if (decisions.some(({ kind }) => kind === 'open-stage' || kind === 'lose-output')) continue;
    const { until, signal } = session.residency;
    if (later(deps.clock.now(), deps.config.tickMs) >= until) return 'continue';
    await untilNextTick(deps, session);
    if (signal?.aborted === true) return 'continue';
  }
  return 'continue';
}

/** Takes back what was done for a job after its end, if it has ended; where that fails the hourly sweep does it. */
export const takeBackLate = (deps: SchedulerDeps, jobId: JobId): Promise<void> =>
  sweepEnded(deps, jobId).catch((failure: unknown) => {
    deps.log.warn('ended job not swept', { jobId, cause: String(failure) });
  });

/**
 * Runs a job's scheduler until every task is committed (`finish`) or its invocation's time is nearly up
 * (`continue`: enter again). Of two schedulers at once one throws `LeaseHeldError` and acts no more. Throws
 * `JobFailedError` where the job cannot end well or was cancelled, `BudgetReachedError` where it has used up its budget. One that slept while its job was ended takes back
 * what it has done since; after `finish` that is left to whoever tells of it, and finds that nobody waits for it any more.
 */
export async function runScheduler(
  deps: SchedulerDeps,
  jobId: JobId,
  residency: Residency,
): Promise<ScheduleOutput> {
  try {
    const left = await reside(deps, jobId, residency);
    // Also one that leaves in order may have slept, and taken slots since that nobody gives back.
    if (left.outcome === 'continue') await takeBackLate(deps, jobId);
    return left;
  } catch (cause) {
    await takeBackLate(deps, jobId);
    throw cause;
  }
}

async function reside(deps: SchedulerDeps, jobId: JobId, residency: Residency): Promise<ScheduleOutput> {
  const session = await enterJob(deps, jobId, residency);
  try {
    const outcome = await tickUntilSettled(deps, session);
    if (outcome === 'continue') await keepCounts(deps, session);
    return { jobId, outcome };
  } finally {
    await leaveJob(deps, session); // Also after a failure: whoever tries again must not wait.
  }
}
