/**
 * Numbers in ascending order, kept so under insertion. Plain data: copies and compares like any value. Insertion
 * costs about the square root of the size, since numbers lie in buckets that split when they are full.
 */
export interface SortedNumbers {
  readonly buckets: number[][];
  size: number;
  /** Sum of all numbers; the mean is `sum / size`. */
  sum: number;
}

const bucketLimit = 512;

/** No numbers yet. */
export const emptySorted = (): SortedNumbers => ({ buckets: [], size: 0, sum: 0 });

/** How many of an ascending array are below `value` (or at most it, with `inclusive`). */
export function countBelowIn(sorted: ArrayLike<number>, value: number, inclusive = false): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const here = sorted[middle] ?? Infinity;
    if (here < value || (inclusive && here === value)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Place of the first bucket whose last number is at least `value`; the number of buckets if there is none. */
function bucketFor(list: SortedNumbers, value: number): number {
  let low = 0;
  let high = list.buckets.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((list.buckets[middle]?.at(-1) ?? Infinity) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Adds one number. */
export function insertSorted(list: SortedNumbers, value: number): void {
  list.size += 1;
  list.sum += value;
  const place = Math.min(bucketFor(list, value), list.buckets.length - 1);
  const bucket = list.buckets[place];
  if (bucket === undefined) {
    list.buckets.push([value]);
    return;
  }
  bucket.splice(countBelowIn(bucket, value), 0, value);
  if (bucket.length > bucketLimit) list.buckets.splice(place + 1, 0, bucket.splice(bucketLimit >>> 1));
}

/** The number at `rank` (0 is the smallest), or undefined where there is none. */
export function atRank(list: SortedNumbers, rank: number): number | undefined {
  let left = rank;
  for (const bucket of list.buckets) {
    if (left < bucket.length) return bucket[left];
    left -= bucket.length;
  }
  return undefined;
}

/** How many numbers are below `value`. */
export function countBelow(list: SortedNumbers, value: number): number {
  const place = bucketFor(list, value);
  let count = 0;
  for (const bucket of list.buckets.slice(0, place)) count += bucket.length;
  return count + countBelowIn(list.buckets[place] ?? [], value);
}

/** The `fraction` quantile with linear interpolation between neighbours; undefined of nothing. */
export function quantileOf(list: SortedNumbers, fraction: number): number | undefined {
  return interpolated(fraction, list.size, (rank) => atRank(list, rank));
}

/** The `fraction` quantile of an ascending array; undefined of nothing. */
export function quantileIn(sorted: ArrayLike<number>, fraction: number): number | undefined {
  return interpolated(fraction, sorted.length, (rank) => sorted[rank]);
}

/**
 * The number at `rank` of two ascending sequences taken together, without merging them; undefined where there is
 * none.
 */
export function atRankOfBoth(
  list: SortedNumbers,
  others: ArrayLike<number>,
  rank: number,
): number | undefined {
  if (rank < 0 || rank >= list.size + others.length) return undefined;
  // Takes k of the others and rank + 1 - k of the list: the least k at which the next other is not too small.
  let low = Math.max(0, rank + 1 - list.size);
  let high = Math.min(others.length, rank + 1);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((others[middle] ?? Infinity) < (atRank(list, rank - middle) ?? Infinity)) low = middle + 1;
    else high = middle;
  }
  const fromOthers = low === 0 ? -Infinity : (others[low - 1] ?? -Infinity);
  const fromList = rank - low < 0 ? -Infinity : (atRank(list, rank - low) ?? -Infinity);
  return Math.max(fromOthers, fromList);
}

/** The `fraction` quantile of `size` numbers given by rank, with linear interpolation; undefined of nothing. */
export function interpolated(
  fraction: number,
  size: number,
  at: (rank: number) => number | undefined,
): number | undefined {
  if (size === 0) return undefined;
  const place = Math.min(1, Math.max(0, fraction)) * (size - 1);
  const below = at(Math.floor(place));
  const above = at(Math.ceil(place));
  if (below === undefined || above === undefined) return undefined;
  return below + (above - below) * (place - Math.floor(place));
}
