import { atRankOfBoth, type SortedNumbers } from '../../lib/sorted-numbers.ts';
import type { AttemptView } from '../model/job-view.ts';
import { hasTakenUp } from '../model/taken-up.ts';
import { scoreOf } from './progress-rate.ts';

/** Attempts that tell what is usual; fewer tell nothing. */
const leastTold = 3;
/** Share of its input that a running one has read: before, more of what was read ahead may wait than is counted. */
const leastRead = 0.5;
/** By less, records of one kind differ among each other. */
const leastFactor = 1.5;

/** Records per byte of what an attempt has read so far; undefined where it counts none, and of one that does a rest. */
export function densityOf(attempt: AttemptView): number | undefined {
  const { bytesRead = 0, recordsIn = 0 } = attempt.progress ?? {};
  if (hasTakenUp(attempt)) return undefined;
  return bytesRead > 0 && recordsIn > 0 ? recordsIn / bytesRead : undefined;
}

/**
 * Records per byte of a usual attempt of a stage: the lower median of finished ones and of running ones that have read a
 * good part; undefined of too few.
 */
export function usualDensity(finished: SortedNumbers, running: readonly AttemptView[]): number | undefined {
  const told = running.filter((attempt) => (scoreOf(attempt) ?? 0) >= leastRead);
  const densities = Float64Array.from(told.flatMap((attempt) => densityOf(attempt) ?? [])).sort();
  const count = finished.size + densities.length;
  return count < leastTold ? undefined : atRankOfBoth(finished, densities, (count - 1) >>> 1);
}

/**
 * How many times as many records as usual a task has in each byte that it reads, by its attempt that has read the most: 1
 * where they are about as many, fewer, or nobody knows. Compressed input may hold several times what as many bytes hold
 * elsewhere: then a new copy takes so much longer, too.
 *
 * Source: Mantri §4.2, slowness that is explained by the data; that records tell what bytes hide is ours.
 */
export function recordFactor(attempts: readonly AttemptView[], usual: number | undefined): number {
  if (usual === undefined) return 1;
  let [most, density] = [0, 0];
  for (const attempt of attempts) {
    const bytes = attempt.progress?.bytesRead ?? 0;
    if (bytes > most) [most, density] = [bytes, densityOf(attempt) ?? 0];
  }
  const factor = density / usual;
  return factor >= leastFactor ? factor : 1;
}
