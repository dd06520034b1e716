import { ascending, evenly, mean } from '../../../lib/quantiles.ts';

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
  /** Bytes that a downstream task reads of upstream outputs, all at once. */
  readonly sizeBytes: number;
  /** Bandwidths B with the share α that two readers of one copy got at the same time. */
  readonly flows: readonly Pick<SharedRead, 'bytesPerMs' | 'share'>[];
  /** How long after the first copies of all its sources their second ones were there; Infinity where they never were. */
  readonly gapsMs: readonly number[];
  /** Compute times of downstream copies. */
  readonly computeMs: readonly number[];
}

/** Values that stand for a longer list in sums over pairs. */
const sampleLimit = 48;
/** Flows of which the mean is taken. */
const flowLimit = 16;
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

/** Samples, few enough for sums over pairs of them. */
function fewOf({ sizeBytes, flows, gapsMs, computeMs }: AssignmentSamples): AssignmentSamples {
  return {
    sizeBytes,
    flows: evenly(
      flows.toSorted((a, b) => a.bytesPerMs - b.bytesPerMs),
      flowLimit,
    ),
    gapsMs: evenly(ascending(gapsMs), sampleLimit),
    computeMs: evenly(ascending(computeMs), sampleLimit),
  };
}

/** As `expectedTaskMs`, of samples that are few and in order. */
function expectedOf({ sizeBytes, flows, gapsMs, computeMs }: AssignmentSamples, waitMs: number): number {
  const contended = contentionProbability(gapsMs, waitMs);
  const inTime = gapsMs.filter((gap) => gap <= waitMs);
  const each = flows.map((flow) => {
    const read = { sizeBytes, ...flow };
    const shared = contended === 0 ? 0 : expectedLeast(computeMs, contendedReadMs(read, waitMs));
    const own = inTime.map((gap) => expectedLeast(computeMs, exclusiveReadMs(read, gap)));
    return contended * shared + (1 - contended) * (mean(own) ?? 0);
  });
  return mean(each) ?? 0;
}

/**
 * Expected duration of a downstream task with two clones of which the second waits up to `waitMs` (ω) for upstream
 * copies of its own: the shorter of the two, each its read and its compute time. ω = 0 is CC; from r/B on the clones
 * read in turn, which is what CAC comes to where a copy may be read again once its reader is done.
 *
 * Source: Dolly §4.4, steps 1 and 2. Differs: a clone begins when its copies come, and not at ω, and the mean is of
 * the shorter one with contention and without, not the shorter of mean times.
 */
export const expectedTaskMs = (samples: AssignmentSamples, waitMs: number): number =>
  expectedOf(fewOf(samples), waitMs);

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
  const few = fewOf(samples);
  const longest = Math.max(...few.flows.map(({ bytesPerMs }) => few.sizeBytes / bytesPerMs));
  const grid = Array.from({ length: gridPoints }, (_, point) => (longest * (point + 1)) / gridPoints);
  const came = few.gapsMs.filter((gap) => gap <= longest);
  let best: BestWait = { waitMs: 0, expectedMs: expectedOf(few, 0) };
  for (const waitMs of ascending([...grid, ...came])) {
    const expectedMs = expectedOf(few, waitMs);
    if (expectedMs < best.expectedMs) best = { waitMs, expectedMs };
  }
  return best;
}

/** Ends of the bins by number of tasks, the last without. Source: Dolly §5; the ends are from memory of its table. */
const binEnds = [10, 50, 150, 500] as const;

/** The bin, from 1 to 5, of a job with so many tasks. ω is kept per bin. */
export const jobBin = (tasks: number): number => 1 + binEnds.filter((end) => tasks > end).length;
