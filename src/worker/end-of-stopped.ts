import type { Failure } from '../contracts/records.ts';
import { failureOf, failureWith } from './failure-of.ts';
import type { Ending } from './record-attempt.ts';
import { OutOfTimeError, PlaceTakenError } from './time-limit.ts';

/** What is known of an attempt that was stopped. */
export interface Stopped {
  /** Whether others had used some of its environment's time: it might have had enough in a worker of its own. */
  readonly isUsed: boolean;
  /**
   * Whether another attempt may well have the time, or hand on what it has done: this one was kept from that by what need not
   * come again. Its operator had not begun until its time was nearly up, or what it handed on could not be written, or not in
   * time.
   */
  readonly mayPass: boolean;
}

/** An attempt that was stopped: by order, with its place, or by itself when its time was nearly up. */
export function endOfAborted({ reason }: AbortSignal, stopped: Stopped): Ending {
  if (reason instanceof PlaceTakenError || reason instanceof OutOfTimeError)
    return endOfStopped(reason, stopped);
  return { outcome: 'cancelled' };
}

/** An attempt that lost its place, or ran out of time. */
export function endOfStopped(
  reason: PlaceTakenError | OutOfTimeError,
  { isUsed, mayPass }: Stopped,
): { readonly outcome: 'failed'; readonly failure: Failure } {
  if (reason instanceof PlaceTakenError)
    return { outcome: 'failed', failure: failureWith('interrupted', reason.message) };
  const failure = isUsed
    ? failureWith('interrupted', `${reason.message}, of which attempts before it had taken some`)
    : { ...failureWith('timeout', reason.message), ...(mayPass ? { mayPass } : {}) };
  return { outcome: 'failed', failure };
}

/** Whether what kept an attempt from handing on its work need not do so again: the store or the machine, and no want of a right. */
export function mayPass(error: unknown): boolean {
  const { cause } = failureOf(error, 'operator');
  return cause === 'storage' || cause === 'internal';
}
