import type { AttemptId } from '../../contracts/ids.ts';
import { type DurationMs, elapsedMs, type EpochMs } from '../../contracts/units.ts';
import type { Decision, LossReason } from '../model/decision.ts';
import { stageAt, taskOfAttempt } from '../model/job-state.ts';
import { type AttemptView, isLive, type JobState } from '../model/job-view.ts';
import { workerOf } from '../model/stage-worker.ts';
import type { TickConfig } from '../model/tick-config.ts';

/** How long a launch of an attempt may wait for its claim, by what it runs on: see `TickConfig`. */
export function claimLeaseOf(state: JobState, attempt: AttemptView, config: TickConfig): DurationMs {
  const { kind } = workerOf(stageAt(state, attempt.stage), attempt);
  return kind === 'fargate' ? (config.fargateClaimLeaseMs ?? config.claimLeaseMs) : config.claimLeaseMs;
}

/**
 * Whether an attempt was read when it had been told to stop for longer than that takes, and had not, and its task waits for nothing
 * else. Where another works on the task, or has won, nobody waits for this one.
 */
function isUnheard(state: JobState, attempt: AttemptView, { cancelMs }: TickConfig): boolean {
  const { cancelledAt, outputReadAt } = attempt;
  if (cancelMs === undefined || cancelledAt === undefined || outputReadAt === undefined) return false;
  if (elapsedMs(cancelledAt, outputReadAt) <= cancelMs) return false;
  const { attempts, result, since } = taskOfAttempt(state, attempt.id);
  const works = attempts.some((each) => each.number >= since && isLive(each) && !each.cancelOrdered);
  return result === undefined && attempt.number >= since && !works;
}

/**
 * Attempts to give up: launched and never claimed within the claim lease of their kind of worker (asynchronous
 * invocations may be lost, and grow too old to wait for), or unclaimed and among `early`; running and silent for too
 * long (a killed worker says nothing), or in the way of their task though they were told to stop; or with a record that nobody can read. Those whose launch has not been made yet
 * are not waited for. Oldest first, ties by id.
 */
export function lostAttempts(
  state: JobState,
  now: EpochMs,
  config: TickConfig,
  early: ReadonlySet<AttemptId> = new Set(),
): Decision[] {
  const reasonOf = (attempt: AttemptView): LossReason | undefined => {
    if (attempt.unreadable !== undefined) return 'unreadable';
    if (attempt.state === 'launched') {
      if (attempt.isHeldBack === true) return undefined;
      const isOld =
        elapsedMs(attempt.launchedAt, attempt.readAt ?? now) > claimLeaseOf(state, attempt, config);
      return isOld || early.has(attempt.id) ? 'unclaimed' : undefined;
    }
    if (elapsedMs(attempt.seenAt, attempt.outputReadAt ?? now) > config.silenceMs) return 'silent';
    return isUnheard(state, attempt, config) ? 'unheard' : undefined;
  };
  return [...state.live]
    .flatMap((attempt) => {
      const reason = reasonOf(attempt);
      return reason === undefined ? [] : [{ attempt, reason }];
    })
    .sort((a, b) => a.attempt.seenAt - b.attempt.seenAt || (a.attempt.id < b.attempt.id ? -1 : 1))
    .map(({ attempt, reason }) => ({ kind: 'lose', attemptId: attempt.id, reason }));
}
