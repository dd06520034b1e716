import { type DurationMs, durationMs, elapsedMs, type EpochMs } from '../../contracts/units.ts';
import { quantileOf } from '../../lib/sorted-numbers.ts';
import type { JobState, StageView } from '../model/job-view.ts';

/** A slot stands idle for at most about this share of what an attempt takes until it is seen that it is free. */
const idleShare = 1 / 10;
/** The same as long as none has ended: it happens once a stage, and looks are many while the attempts are young. */
const firstIdleShare = 1 / 4;
/** One process looks at most so often, whatever the number of its jobs. */
const leastPauseMs = 15;

/** What a scheduler's looks hang on. */
export interface LookTerms {
  readonly now: EpochMs;
  readonly tickMs: DurationMs;
  /** Jobs that share the process. */
  readonly jobs: number;
}

/** How long a slot of a stage may stand idle, by the median of what attempts took, or else by how long one has run. */
function idleMsOf(state: JobState, { index, statistics }: StageView, now: EpochMs): number | undefined {
  const medianMs = quantileOf(statistics.runMs, 0.5);
  if (medianMs !== undefined) return medianMs * idleShare;
  let oldest: number | undefined;
  for (const attempt of state.live) {
    if (attempt.stage !== index || attempt.cancelOrdered) continue;
    oldest = Math.max(oldest ?? 0, elapsedMs(attempt.launchedAt, now));
  }
  return oldest === undefined ? undefined : oldest * firstIdleShare;
}

/**
 * How long to wait before it is looked again whether an attempt has ended: a tenth of what attempts of the open stages
 * take, or a quarter of what they have run so far while that is all that is known, at most a tick's length, and longer where many jobs share the process. Costs a pass over what lives as long
 * as nothing of a stage has ended.
 */
export function lookPauseMs(state: JobState, { now, tickMs, jobs }: LookTerms): DurationMs {
  if (state.live.size === 0) return tickMs;
  let idleMs = Infinity;
  for (const stage of state.stages)
    if (stage.state === 'open') idleMs = Math.min(idleMs, idleMsOf(state, stage, now) ?? Infinity);
  const pauseMs = Math.max(leastPauseMs * Math.max(1, jobs), Math.round(idleMs));
  return durationMs(Math.min(tickMs, pauseMs));
}
