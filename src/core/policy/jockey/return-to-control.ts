import type { AllocationReason } from '../../model/decision.ts';
import type { ObservedWork } from './observed-work.ts';

/** A job that has fallen back to its fair share waits so many periods of its loop before it is tried again. */
const waitPeriods = 10;
/** A forecast that was wrong holds again within this factor, well inside the one beyond which it was. */
const holdsFactor = 2;

/** Whether a job with a deadline goes by its fair share, without slots of its own. */
export const isOutOfControl = (reason: AllocationReason | undefined): boolean =>
  reason === 'best-effort' || reason === 'wrong-forecast';

/** A job that has fallen back. */
export interface FallenBack {
  readonly reason: AllocationReason;
  /** Since it fell back, or was last tried. */
  readonly sinceMs: number;
  readonly periodMs: number;
  /** Whether its deadline has changed since its last look. */
  readonly isChanged: boolean;
  readonly work: ObservedWork;
}

/**
 * Whether a job that has fallen back is to be tried again: one that did not fit after a while, or with another deadline;
 * one whose forecast was wrong after a while too, and where its work is within twice of what was foretold. It goes by
 * the rule of new jobs then, so that it takes nothing from those that were taken on. As factors are of all tasks that
 * have ended, and the two bounds lie apart, it cannot go to and fro.
 */
export function mayReturn({ reason, sinceMs, periodMs, isChanged, work }: FallenBack): boolean {
  const hasWaited = sinceMs >= waitPeriods * periodMs;
  if (reason === 'best-effort') return hasWaited || isChanged;
  return hasWaited && work.factor <= holdsFactor && work.factor >= 1 / holdsFactor;
}
