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

/** Since when the first and the last launched of a stage's attempts that were not told to stop are on their way. */
interface Ages {
  readonly oldestMs: number;
  readonly youngestMs: number;
}

function agesByStage(state: JobState, now: EpochMs): ReadonlyMap<number, Ages> {
  const ages = new Map<number, Ages>();
  for (const attempt of state.live) {
    if (attempt.cancelOrdered) continue;
    const ageMs = Math.max(0, elapsedMs(attempt.launchedAt, now));
    const known = ages.get(attempt.stage);
    ages.set(attempt.stage, {
      oldestMs: Math.max(known?.oldestMs ?? 0, ageMs),
      youngestMs: Math.min(known?.youngestMs ?? Infinity, ageMs),
    });
  }
  return ages;
}

/**
 * How long a slot of a stage may stand idle: by the median of what attempts took, or by how long the youngest has run
 * where all have run for longer than that. Were it by the median alone, a task of an hour among empty ones would have
 * its end looked for all the hour, each 15 ms. As long as none has ended, by how long one has run.
 */
function idleMsOf({ statistics }: StageView, { oldestMs, youngestMs }: Ages): number {
  const medianMs = quantileOf(statistics.runMs, 0.5);
  return medianMs === undefined ? oldestMs * firstIdleShare : Math.max(medianMs, youngestMs) * idleShare;
}

/**
 * How long to wait before it is looked again whether an attempt has ended: a tenth of what attempts of the open stages
 * take, or have run so far where that is longer, or a quarter of what they have run while that is all that is known; at
 * most a tick's length, and longer where many jobs share the process. Costs a pass over what lives.
 */
export function lookPauseMs(state: JobState, { now, tickMs, jobs }: LookTerms): DurationMs {
  if (state.live.size === 0) return tickMs;
  const ages = agesByStage(state, now);
  let idleMs = Infinity;
  for (const stage of state.stages) {
    const known = stage.state === 'open' ? ages.get(stage.index) : undefined;
    if (known !== undefined) idleMs = Math.min(idleMs, idleMsOf(stage, known));
  }
  const pauseMs = Math.max(leastPauseMs * Math.max(1, jobs), Math.round(idleMs));
  return durationMs(Math.min(tickMs, pauseMs));
}
