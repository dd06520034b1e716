import type { Failure } from '../contracts/records.ts';
import { outOfTime, type Stopped } from '../core/model/time-limit.ts';
import { failureOf, failureWith } from './failure-of.ts';
import type { Ending } from './record-attempt.ts';
import { OutOfTimeError, PlaceTakenError } from './time-limit.ts';

/** An attempt that was stopped: by order, with its place, or by itself when its time was nearly up. */
export function endOfAborted({ reason }: AbortSignal, stopped: Stopped): Ending {
  if (reason instanceof PlaceTakenError || reason instanceof OutOfTimeError)
    return endOfStopped(reason, stopped);
  return { outcome: 'cancelled' };
}

/** An attempt that lost its place, or ran out of time. */
export function endOfStopped(
  reason: PlaceTakenError | OutOfTimeError,
  stopped: Stopped,
): { readonly outcome: 'failed'; readonly failure: Failure } {
  if (reason instanceof PlaceTakenError)
    return { outcome: 'failed', failure: failureWith('interrupted', reason.message) };
  return { outcome: 'failed', failure: outOfTime(reason.message, stopped) };
}

/** Whether what kept an attempt from handing on its work need not do so again: the store or the machine, and no want of a right. */
export function mayPass(error: unknown): boolean {
  const { cause } = failureOf(error, 'operator');
  return cause === 'storage' || cause === 'internal';
}
