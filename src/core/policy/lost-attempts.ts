import { elapsedMs, type EpochMs } from '../../contracts/units.ts';
import type { Decision, LossReason } from '../model/decision.ts';
import type { TickConfig } from '../model/tick-config.ts';
import type { AttemptView, JobState } from '../model/job-view.ts';

/**
 * Attempts to give up: launched and never claimed within the claim lease (asynchronous invocations may be lost),
 * running and silent for too long (a killed worker says nothing), or with a record that nobody can read. None is
 * given up before it was looked at after that time, its task's result included. Oldest first, ties by id.
 */
export function lostAttempts(state: JobState, now: EpochMs, config: TickConfig): Decision[] {
  const reasonOf = (attempt: AttemptView): LossReason | undefined => {
    if (attempt.unreadable !== undefined) return 'unreadable';
    if (attempt.state === 'launched') {
      return elapsedMs(attempt.seenAt, attempt.readAt ?? now) > config.claimLeaseMs ? 'unclaimed' : undefined;
    }
    return elapsedMs(attempt.seenAt, attempt.outputReadAt ?? now) > config.silenceMs ? 'silent' : undefined;
  };
  return [...state.live]
    .flatMap((attempt) => {
      const reason = reasonOf(attempt);
      return reason === undefined ? [] : [{ attempt, reason }];
    })
    .sort((a, b) => a.attempt.seenAt - b.attempt.seenAt || (a.attempt.id < b.attempt.id ? -1 : 1))
    .map(({ attempt, reason }) => ({ kind: 'lose', attemptId: attempt.id, reason }));
}
