import { type DurationMs, durationMs, elapsedMs } from '../contracts/units.ts';
import { stoppedItself, type TimeLimit, workLeftMs } from '../core/model/time-limit.ts';
import type { Clock } from '../ports/clock.ts';

/** What an attempt is aborted with when the time of its environment is nearly up. */
export class OutOfTimeError extends Error {
  override readonly name = 'OutOfTime';
}

/** What an attempt is aborted with when its place is taken away under it: it did nothing wrong, and is done again. */
export class PlaceTakenError extends Error {
  override readonly name = 'PlaceTaken';
  /** How long after the notice its process is killed. */
  readonly notice: DurationMs;

  constructor(message: string, notice = durationMs(0)) {
    super(message);
    this.notice = notice;
  }
}

/** Of the notice that a place is taken, what an attempt may use to hand on what it has done: then it has to end. */
const leaveShare = 0.75;

/** How long an attempt may take to hand on its work after it is told that its place is taken. */
export const leaveMs = ({ notice }: PlaceTakenError): DurationMs => durationMs(notice * leaveShare);

/** How long an operator may take to stop. */
export interface Grace {
  readonly usual: DurationMs;
  /** Of user code that was ordered to stop: it can be ended by force, whatever it is at. */
  readonly ordered: DurationMs;
}

/** Of the longest time between two reports, what user code has to stop once it is told to. */
const orderedShare = 0.1;

/**
 * The grace of an attempt. Orders are heard up to a report interval after they were given; somebody else has won then, or
 * nobody wants the result, and code that does not listen must not use a processor for much longer. Operators of ours
 * stop as soon as they can, and nothing ends them sooner.
 */
export const graceOf = (usual: DurationMs, reportMs: number): Grace => ({
  usual,
  ordered: durationMs(Math.min(usual, reportMs * orderedShare)),
});

/** Of the spare time, how much later than it asked for an attempt may be woken and count as having run until then. */
const lateShare = 0.5;

/**
 * Calls `onEnd` once, when only the spare time is left, unless `stop` was called before. An environment that stood still
 * until well past that moment has taken the time itself, and its task did not use it.
 */
export function startTimeLimit(
  clock: Clock,
  limit: TimeLimit | undefined,
  onEnd: (error: OutOfTimeError | PlaceTakenError) => void,
): { stop(): void } {
  const stopped = new AbortController();
  if (limit === undefined) return { stop: () => undefined };
  const workMs = durationMs(workLeftMs(limit, clock.now()));
  void clock.sleep(workMs, stopped.signal).then(() => {
    if (stopped.signal.aborted) return;
    if (elapsedMs(clock.now(), limit.endsAt) < (1 - lateShare) * limit.spare) {
      onEnd(new PlaceTakenError('its environment stood still until its time was up'));
      return;
    }
    onEnd(new OutOfTimeError(stoppedItself(limit)));
  });
  return {
    stop: () => {
      stopped.abort();
    },
  };
}

/**
 * Calls `onNotice` once with the time that is left before the spare time, when that is no more than is kept for handing
 * work on, unless `stop` was called before. Not where the environment stood still until that time was up.
 */
export function startNotice(
  clock: Clock,
  limit: TimeLimit | undefined,
  onNotice: (error: OutOfTimeError, left: DurationMs) => void,
): { stop(): void } {
  const stopped = new AbortController();
  if (limit === undefined) return { stop: () => undefined };
  const { spare, saving } = limit;
  void clock.sleep(durationMs(workLeftMs(limit, clock.now()) - saving), stopped.signal).then(() => {
    const left = workLeftMs(limit, clock.now());
    if (stopped.signal.aborted || left <= 0) return;
    const inSeconds = `${String(Math.round((left + spare) / 100) / 10)} s`;
    const message = `it left its task ${inSeconds} before its environment's time was up, in which it would not have been done`;
    onNotice(new OutOfTimeError(message), durationMs(left));
  });
  return {
    stop: () => {
      stopped.abort();
    },
  };
}
