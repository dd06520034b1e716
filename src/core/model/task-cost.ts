/** How long tasks of a stage take, by what they read: so much each, and so much a byte. Relative until learnt. */
export interface TaskCost {
  /** Whether finished tasks have told it; else it is supposed. */
  readonly isLearnt: boolean;
  readonly fixed: number;
  readonly perByte: number;
  /** Input below which a task costs no less: a share of the stage's mean. */
  readonly leastBytes: number;
  /** Input up to which finished tasks tell it: what the larger of them read. Absent: it is in proportion to input anyway. */
  readonly knownBytes?: number;
}

/** A finished task. */
export interface TaskSample {
  readonly bytes: number;
  readonly ms: number;
}

/** Share of the stage's mean input that the smallest of its tasks counts as. */
const leastShare = 0.1;
/** Tasks that must have finished before anything is learnt of how time follows from input. */
const leastSamples = 6;
/** The thirds of the smaller and the larger tasks must lie so far apart, in shares of the mean. */
const leastSpread = 0.2;

const middleOf = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >>> 1] ?? 0, sorted[sorted.length >>> 1] ?? 0];
  return (low + high) / 2;
};

/** What is supposed before anything has finished: time in proportion to input, a task without any like a small one. */
export const supposedCost = (meanBytes: number): TaskCost => ({
  isLearnt: false,
  fixed: 0,
  perByte: 1,
  leastBytes: Math.max(1, meanBytes * leastShare),
});

/** The cost of a task that reads `bytes`, above 0: milliseconds once learnt, before that in a unit of its own. */
export const costOf = ({ fixed, perByte, leastBytes }: TaskCost, bytes: number): number =>
  fixed + perByte * Math.max(leastBytes, bytes);

/**
 * By how many times more than `costOf` says a task may take that its input explains it: 1 as far as finished tasks tell. A
 * line is not known where it is drawn out beyond them, least of all where empty tasks of a cold first wave are its other end, and
 * what reads more may take up to what is in proportion to them.
 *
 * Source: Mantri §5.5, whose time is in proportion to input throughout.
 */
export function inputLeeway(cost: TaskCost, bytes: number): number {
  const { knownBytes = Infinity } = cost;
  return bytes <= knownBytes ? 1 : (costOf(cost, knownBytes) / knownBytes) * (bytes / costOf(cost, bytes));
}

/** The most that a task which reads `bytes` may cost for its input to explain it. */
export const explainedCost = (cost: TaskCost, bytes: number): number =>
  costOf(cost, bytes) * inputLeeway(cost, bytes);

/**
 * The cost of a share of such a task, which is taken to read `leastBytes` at the least: its fixed part is that of every attempt. As
 * long as none is learnt, time is supposed to follow from input alone, and so is that of a share.
 */
export function costOfShare(
  cost: TaskCost,
  {
    bytes,
    share,
    leastBytes,
  }: { readonly bytes: number; readonly share: number; readonly leastBytes: number },
): number {
  if (cost.isLearnt) return costOf(cost, Math.max(bytes * share, leastBytes));
  return costOf(cost, Math.max(bytes, leastBytes)) * share;
}

/**
 * A fixed cost and a cost per byte from tasks that have finished, in any order, by a resistant line: through the
 * medians of the third that read least and of the third that read most. So neither a straggler nor an empty task moves
 * it. Where the larger took longer than in proportion, as those of a cold first wave do, it goes through the origin and
 * the median task: a steep line without its negative beginning would foretell all of them too long. Time is supposed to follow from input alone where sizes are too much alike, or tasks too few, to tell.
 *
 * Source: Tukey, Exploratory Data Analysis (1977), ch. 10; in place of Mantri's line through the origin (§5.5).
 */
export function fitCost(samples: readonly TaskSample[], meanBytes: number): TaskCost {
  const supposed = supposedCost(meanBytes);
  if (samples.length < leastSamples) return supposed;
  const sorted = samples.toSorted((a, b) => a.bytes - b.bytes || a.ms - b.ms);
  const third = Math.ceil(sorted.length / 3);
  const small = sorted.slice(0, third);
  const large = sorted.slice(-third);
  const [from, to] = [small, large].map((part) => middleOf(part.map(({ bytes }) => bytes)));
  if (from === undefined || to === undefined || to - from < leastSpread * meanBytes) return supposed;
  const risen = middleOf(large.map(({ ms }) => ms)) - middleOf(small.map(({ ms }) => ms));
  const { leastBytes } = supposed;
  const perByte = Math.max(0, risen / (to - from));
  const fixed = middleOf(samples.map(({ bytes, ms }) => ms - perByte * bytes));
  const cost =
    fixed >= 0
      ? { fixed, perByte, knownBytes: to }
      : { fixed: 0, perByte: proportionOf(samples, leastBytes) };
  if (cost.fixed + cost.perByte <= 0) return supposed;
  return { isLearnt: true, ...cost, leastBytes };
}

/** What a byte costs in the median where no task has a cost of its own: a line that would go below zero is none. */
const proportionOf = (samples: readonly TaskSample[], leastBytes: number): number =>
  middleOf(samples.map(({ bytes, ms }) => ms / Math.max(leastBytes, bytes)));
