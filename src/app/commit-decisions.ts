import { AccessDeniedError, JobFailedError, LeaseHeldError } from '../contracts/errors.ts';
import { type EpochMs, durationMs, later } from '../contracts/units.ts';
import { type TickDecision, applyDecisions } from '../core/decide-tick.ts';
import type { Decision } from '../core/model/decision.ts';
import { withdrawAttempt } from '../core/model/job-state.ts';
import { prepareStage } from './open-stage.ts';
import { performDecisions } from './perform-decisions.ts';
import type { SchedulerDeps } from './scheduler-deps.ts';
import type { Session } from './scheduler-session.ts';

/** A throttled launch waits so long before it is tried again. */
const throttleDelayMs = durationMs(1_000);

/** Takes decisions over into the state of the job, and prepares the stages that they open. */
export function apply(
  deps: SchedulerDeps,
  session: Session,
  decisions: readonly Decision[],
  now: EpochMs,
): void {
  const open = deps.prepareStage ?? prepareStage;
  applyDecisions(session.state, decisions, {
    now,
    openStage: (stage) => session.openStages.set(stage, open(session.state, session.plan, stage, now)),
  });
}

/**
 * Does what was decided and committed. What was throttled is owed again after a pause. Throws `AccessDeniedError` or
 * `JobFailedError` where a launch never can be made.
 */
export async function perform(
  deps: SchedulerDeps,
  session: Session,
  decisions: readonly Decision[],
  now: EpochMs,
): Promise<void> {
  const outcomes = await performDecisions(deps, session, decisions, now);
  // The last first: an attempt can be withdrawn only while none of its task is numbered after it.
  for (const { attemptId, outcome, message, denied } of outcomes.toReversed()) {
    if (outcome === 'accepted') continue;
    if (denied === true) throw new AccessDeniedError(message ?? 'access denied', { attemptId });
    if (outcome === 'refused')
      throw new JobFailedError(`attempt ${attemptId} cannot be launched: ${message ?? 'refused'}`);
    deps.log.warn('throttled', { jobId: session.jobId, attemptId, message });
    withdrawAttempt(session.state, attemptId, later(now, throttleDelayMs));
  }
}

/** Commits what a tick decided under the next version. Throws `LeaseHeldError` where another has taken over. */
export async function append(
  deps: SchedulerDeps,
  session: Session,
  decided: Pick<TickDecision, 'decisions' | 'refusals'>,
  now: EpochMs,
): Promise<void> {
  const entry = {
    version: session.version + 1,
    epoch: session.epoch,
    at: now,
    decisions: [...decided.decisions, ...decided.refusals],
  };
  if ((await deps.decisions.append(session.jobId, entry)) === 'stale') {
    throw new LeaseHeldError('another scheduler has taken over', {
      jobId: session.jobId,
      version: entry.version,
    });
  }
  session.version += 1;
}
