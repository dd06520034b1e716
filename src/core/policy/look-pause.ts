import { type DurationMs, durationMs, elapsedMs, type EpochMs } from '../../contracts/units.ts';
import { quantileOf } from '../../lib/sorted-numbers.ts';
import type { JobState, StageView } from '../model/job-view.ts';

/** A slot stands idle for at most about this share of what an attempt takes until it is seen that it is free. */
const idleShare = 1 / 10;
/** One process looks at most so often, whatever the number of its jobs. */
const leastPauseMs = 15;

/** What a scheduler's looks hang on. */
export interface LookTerms {
  readonly now: EpochMs;
  readonly tickMs: DurationMs;
  /** Jobs that share the process. */
  readonly jobs: number;
}

/** What attempts of a stage take: the median of those that have ended, or else how long one has run at least. */
function runMsOf(state: JobState, { index, statistics }: StageView, now: EpochMs): number | undefined {
  const medianMs = quantileOf(statistics.runMs, 0.5);
  if (medianMs !== undefined) return medianMs;
  let oldest: number | undefined;
  for (const attempt of state.live) {
    if (attempt.stage !== index || attempt.cancelOrdered) continue;
    oldest = Math.max(oldest ?? 0, elapsedMs(attempt.launchedAt, now));
  }
  return oldest;
}

/**
 * How long to wait before it is looked again whether an attempt has ended: a tenth of what attempts of the open stages
 * take, at most a tick's length, and longer where many jobs share the process. Costs a pass over what lives as long
 * as nothing of a stage has ended.
 */
export function lookPauseMs(state: JobState, { now, tickMs, jobs }: LookTerms): DurationMs {
  if (state.live.size === 0) return tickMs;
  let shortestMs = Infinity;
  for (const stage of state.stages)
    if (stage.state === 'open') shortestMs = Math.min(shortestMs, runMsOf(state, stage, now) ?? Infinity);
  const pauseMs = Math.max(leastPauseMs * Math.max(1, jobs), Math.round(shortestMs * idleShare));
  return durationMs(Math.min(tickMs, pauseMs));
}
