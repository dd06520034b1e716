import type { AttemptPayload } from '../contracts/payloads.ts';
import { hasTimeFor } from '../core/model/time-limit.ts';
import { type AttemptDeps, type AttemptOutcome, runAttempt } from './run-attempt.ts';

/** What one worker has done: how each attempt that it took up has ended, in turn. */
export type PackOutcome = readonly AttemptOutcome[];

/** What a worker may need to do before it takes up another attempt: to give memory back. */
export interface PackHost {
  readonly beforeNext?: () => void;
}

/**
 * Executes the attempt that a worker was started for, and then those that ride with it, each claimed by itself once the
 * one before has ended, with its result recorded and nothing of it left running. One that somebody else has claimed, or
 * that was taken back, is passed over. Takes up no more where the first was refused (a second delivery) or declined, where one did
 * not end well, since the environment may be to blame, where the process is to stop, and where the time that is left may
 * not suffice: what is left is its scheduler's to launch again. Throws what a claim throws.
 */
export async function runPack(
  deps: AttemptDeps,
  { next = [], nextTakesMs = 0, ...first }: AttemptPayload,
  { beforeNext }: PackHost = {},
): Promise<PackOutcome> {
  const outcomes = [await runAttempt(deps, first)];
  const used = { ...deps, isUsed: true };
  const isTimeUp = (): boolean => !hasTimeFor(deps.endsAt, deps.clock.now(), nextTakesMs);
  let goesOn = outcomes[0] === 'done' || outcomes[0] === 'replica';
  for (const rider of next) {
    if (!goesOn || deps.stopSignal?.aborted === true || isTimeUp()) break;
    beforeNext?.();
    const outcome = await runAttempt(used, { ...first, copies: undefined, saved: undefined, ...rider });
    outcomes.push(outcome);
    goesOn = outcome === 'done' || outcome === 'replica' || outcome === 'refused';
  }
  return outcomes;
}
