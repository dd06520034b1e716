import { ascending, mean, thinned } from '../../../lib/quantiles.ts';

/** Two downstream clones that want one upstream output, of which one copy is there at time 0. */
export interface SharedRead {
  readonly sizeBytes: number;
  /** B: what a reader gets alone. */
  readonly bytesPerMs: number;
  /** α: the share of B that each of two readers gets, in (0, 1]. */
  readonly share: number;
}

/** When each of the two clones has read the output, in milliseconds from time 0. */
export type ReadMs = readonly [first: number, second: number];

/**
 * Read times where the second clone gets a copy of its own by `waitMs` (ω) at the latest. After r/B the first is
 * done and its copy can be read alone, so that nobody waits longer.
 *
 * Source: Dolly §4.4, T_E.
 */
export function exclusiveReadMs({ sizeBytes, bytesPerMs }: SharedRead, waitMs: number): ReadMs {
  const alone = sizeBytes / bytesPerMs;
  return [alone, alone + Math.min(alone, waitMs)];
}

/**
 * Read times where no second copy comes: after ω the clones share the one there is, unless the first has read it.
 *
 * Source: Dolly §4.4, T_C; the formula is lost in print, so this follows from the two readers' bandwidths.
 */
export function contendedReadMs({ sizeBytes, bytesPerMs, share }: SharedRead, waitMs: number): ReadMs {
  const alone = sizeBytes / bytesPerMs;
  if (waitMs >= alone) return [alone, 2 * alone];
  const first = waitMs + (sizeBytes - bytesPerMs * waitMs) / (share * bytesPerMs);
  return [first, first + waitMs];
}

/** What finished jobs of one bin tell. Each list holds at least one value, in any order. */
export interface AssignmentSamples {
  /** Bytes of one upstream output that a downstream task reads. */
  readonly sizeBytes: number;
  /** Upstream outputs that a downstream task reads: all in all-to-all, one in one-to-one. At least 1. */
  readonly reads: number;
  /** Bandwidths B with the share α that two readers of one copy got at the same time. */
  readonly flows: readonly Pick<SharedRead, 'bytesPerMs' | 'share'>[];
  /** How long after the first clone of an upstream group the next one came; Infinity where it never did. */
  readonly gapsMs: readonly number[];
  /** Compute times of downstream copies. */
  readonly computeMs: readonly number[];
}

/** Values that stand for a longer list in sums over pairs. */
const sampleLimit = 64;
/** Waits tried besides those at which the risk of contention changes. */
const gridPoints = 32;

/**
 * p_c(ω): probability that a downstream clone has no upstream copy of its own by ω: the share of past groups whose
 * next copy came later. Falls as ω grows; 1 without samples.
 */
export const contentionProbability = (gapsMs: readonly number[], waitMs: number): number =>
  gapsMs.length === 0 ? 1 : gapsMs.filter((gap) => gap > waitMs).length / gapsMs.length;

/**
 * E min(x + X, y + Y) of independent X and Y, each any of `sorted` with equal probability. In one pass: for each
 * value of the one, those of the other that are less than it have been summed before, and the rest count as itself.
 */
function expectedLeast(sorted: readonly number[], [x, y]: ReadMs): number {
  let sum = 0;
  let less = 0;
  let sumOfLess = 0;
  for (const one of sorted) {
    for (; less < sorted.length && y + (sorted[less] ?? 0) < x + one; less++)
      sumOfLess += y + (sorted[less] ?? 0);
    sum += sumOfLess + (sorted.length - less) * (x + one);
  }
  return sum / sorted.length ** 2;
}

function expectedTaskMsOf(samples: AssignmentSamples, computeMs: readonly number[], waitMs: number): number {
  const contended = contentionProbability(samples.gapsMs, waitMs);
  const each = samples.flows.map((flow) => {
    const read = { sizeBytes: samples.sizeBytes, ...flow };
    const [shared, own] = [contendedReadMs(read, waitMs), exclusiveReadMs(read, waitMs)];
    const readMs = (clone: 0 | 1): number =>
      samples.reads * (contended * shared[clone] + (1 - contended) * own[clone]);
    return expectedLeast(computeMs, [readMs(0), readMs(1)]);
  });
  return mean(each) ?? 0;
}

/**
 * Expected duration of a downstream task with two clones that wait up to `waitMs` (ω) for upstream copies of their
 * own: the shorter of the two, each the sum of its expected reads and its compute time. ω = 0 is CC; from r/B on
 * the clones read in turn, which is what CAC comes to where a copy may be read again once its reader is done.
 *
 * Source: Dolly §4.4, steps 1 and 2.
 */
export const expectedTaskMs = (samples: AssignmentSamples, waitMs: number): number =>
  expectedTaskMsOf(samples, thinned(samples.computeMs, sampleLimit), waitMs);

/** ω and what is expected of it. */
export interface BestWait {
  readonly waitMs: number;
  readonly expectedMs: number;
}

/**
 * ω: the wait with the least expected duration of a downstream task; of equals the shortest, so 0 (CC) where waiting
 * gains nothing. Tries the times at which past copies came, since p_c falls there, and an even grid up to the
 * longest time that reading alone takes, beyond which ω changes nothing but p_c.
 *
 * Source: Dolly §4.4, step 3.
 */
export function bestWait(samples: AssignmentSamples): BestWait {
  const computeMs = thinned(samples.computeMs, sampleLimit);
  const longest = Math.max(...samples.flows.map(({ bytesPerMs }) => samples.sizeBytes / bytesPerMs));
  const grid = Array.from({ length: gridPoints }, (_, point) => (longest * (point + 1)) / gridPoints);
  const came = thinned(
    samples.gapsMs.filter((gap) => gap <= longest),
    sampleLimit,
  );
  let best: BestWait = { waitMs: 0, expectedMs: expectedTaskMsOf(samples, computeMs, 0) };
  for (const waitMs of ascending([...grid, ...came])) {
    const expectedMs = expectedTaskMsOf(samples, computeMs, waitMs);
    if (expectedMs < best.expectedMs) best = { waitMs, expectedMs };
  }
  return best;
}

/** Ends of the bins by number of tasks, the last without. Source: Dolly §5; the ends are from memory of its table. */
const binEnds = [10, 50, 150, 500] as const;

/** The bin, from 1 to 5, of a job with so many tasks. ω is kept per bin. */
export const jobBin = (tasks: number): number => 1 + binEnds.filter((end) => tasks > end).length;
