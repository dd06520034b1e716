const empty = Buffer.alloc(0);

/** A cut between two partitions of sorted lines. */
export interface Bound {
  readonly key: Buffer;
  /**
   * Of how many samples that equal it each partition gets how many, from the one before the first bound of its key on;
   * empty: all lie behind it.
   */
  readonly shares: readonly number[];
}

/** How shares are written: 32 bits each, little-endian. */
export function sharesBytes(shares: readonly number[]): Buffer {
  const bytes = Buffer.alloc(shares.length * 4);
  for (const [place, share] of shares.entries()) bytes.writeUInt32LE(share, place * 4);
  return bytes;
}

/** A bound as it was written. */
export const boundOf = (key: Buffer, value: Buffer): Bound => ({
  key: Buffer.from(key),
  shares: Array.from({ length: value.length >>> 2 }, (_, place) => value.readUInt32LE(place * 4)),
});

/** Steps of these, whole numbers left away, fall evenly between 0 and 1, however many there are: of lines, and of tasks. */
const [lineStep, taskStep] = [0.6180339887498949, 0.7548776662466927];

/** Spreads equal lines over partitions by their shares: the same lines of the same task alike each time. */
class Spread {
  readonly #first: number;
  /** Ends of the partitions' shares, between 0 and 1. */
  readonly #ends: readonly number[];
  #at: number;
  /** Lines that were spread. */
  passed: number;

  constructor(first: number, shares: readonly number[], task: number, passed: number) {
    const sum = shares.reduce((total, share) => total + share, 0);
    let end = 0;
    this.#first = first;
    this.#ends = shares.map((share) => (end += share) / sum);
    this.#at = (task * taskStep) % 1;
    this.passed = passed;
    // The same steps, since sums of rounded numbers hang on their order.
    for (let line = 0; line < passed; line++) this.#at = (this.#at + lineStep) % 1;
  }

  /** The partition of the next line. */
  next(): number {
    this.passed++;
    this.#at = (this.#at + lineStep) % 1;
    const place = this.#ends.findIndex((end) => this.#at < end);
    return this.#first + (place < 0 ? this.#ends.length - 1 : place);
  }
}

/** Finds the partition of a line between sorted bounds. */
export class RangeSearch {
  readonly #bounds: readonly Buffer[];
  /** By how many bounds are not above a line: how those that equal the last of these are spread; undefined: they lie behind it. */
  readonly #spreads: readonly (Spread | undefined)[];
  readonly #last: number;
  /** Bytes that all bounds have in common, and the four of each that follow, zeros after its end. */
  readonly #common: Buffer;
  readonly #heads: Uint32Array;

  constructor(
    sorted: readonly Bound[],
    {
      partitions,
      task,
      passed = [],
    }: { readonly partitions: number; readonly task: number; readonly passed?: readonly number[] },
  ) {
    const bounds = sorted.map(({ key }) => key);
    this.#bounds = bounds;
    this.#spreads = spreadsOf(sorted, task, passed);
    this.#last = partitions - 1;
    this.#common = commonStart(bounds[0] ?? empty, bounds.at(-1) ?? empty);
    const at = this.#common.length;
    this.#heads = Uint32Array.from(bounds, (bound) => headOf(bound, at, bound.length));
  }

  /** How many lines were spread that equal a bound, by the same place as the spreads; 0 where none are. */
  get passed(): readonly number[] {
    return this.#spreads.map((spread) => spread?.passed ?? 0);
  }

  /** How many of the bounds are not above the line: its partition, if there are so many. */
  find(bytes: Buffer, start: number, end: number): number {
    const count = this.#countUpTo(bytes, start, end);
    const spread = this.#spreads[count];
    const isSpread = spread !== undefined && this.#bounds[count - 1]?.compare(bytes, start, end) === 0;
    return Math.min(isSpread ? spread.next() : count, this.#last);
  }

  #countUpTo(bytes: Buffer, start: number, end: number): number {
    const common = this.#common;
    const stop = Math.min(common.length, end - start);
    for (let at = 0; at < stop; at++) {
      const differs = (bytes[start + at] ?? 0) - (common[at] ?? 0);
      if (differs !== 0) return differs < 0 ? 0 : this.#bounds.length;
    }
    // A line that ends within what all bounds begin with is below them, or the first of them.
    const head = headOf(bytes, start + common.length, end);
    const heads = this.#heads;
    let low = 0;
    let high = heads.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const bound = heads[middle] ?? 0;
      if (bound < head || (bound === head && this.#isUpTo(middle, bytes, start, end))) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #isUpTo(bound: number, bytes: Buffer, start: number, end: number): boolean {
    return (this.#bounds[bound] ?? empty).compare(bytes, start, end) <= 0;
  }
}

/** The bytes with which two texts begin alike; of the first and last of sorted ones, those of all. */
function commonStart(first: Buffer, last: Buffer): Buffer {
  let at = 0;
  while (at < Math.min(first.length, last.length) && first[at] === last[at]) at++;
  return first.subarray(0, at);
}

/** Four bytes from `at` on as a number, zeros from `end` on: of two that differ, the order is that of the bytes. */
function headOf(bytes: Buffer, at: number, end: number): number {
  const left = end - at;
  const high =
    ((left > 0 ? (bytes[at] ?? 0) : 0) << 24) |
    ((left > 1 ? (bytes[at + 1] ?? 0) : 0) << 16) |
    ((left > 2 ? (bytes[at + 2] ?? 0) : 0) << 8) |
    (left > 3 ? (bytes[at + 3] ?? 0) : 0);
  return high >>> 0;
}

/** How lines that equal bounds are spread, by how many bounds are not above them. */
function spreadsOf(
  sorted: readonly Bound[],
  task: number,
  passed: readonly number[],
): readonly (Spread | undefined)[] {
  let first = 0;
  const spreads = sorted.map(({ key, shares }, place) => {
    if (place > 0 && sorted[place - 1]?.key.equals(key) !== true) first = place;
    const isLast = sorted[place + 1]?.key.equals(key) !== true;
    return isLast && shares.some((share) => share > 0)
      ? new Spread(first, shares, task, passed[place + 1] ?? 0)
      : undefined;
  });
  return [undefined, ...spreads];
}
