import type { Rng } from '../../lib/rng.ts';

/** What the paper tells of one of its seven jobs. Times in ms. */
interface JobFacts {
  readonly medianMs: number;
  readonly p90Ms: number;
  /** 90th percentiles of the fastest and of the slowest stage. */
  readonly fastestP90Ms: number;
  readonly slowestP90Ms: number;
  readonly stages: number;
  readonly barriers: number;
  readonly tasks: number;
}

/** Jockey, Table 2. */
export const jockeyFacts = {
  A: facts(16.3, 61.5, 4.0, 126.3, 23, 6, 681),
  B: facts(4.0, 54.1, 3.3, 116.7, 14, 0, 1_605),
  C: facts(2.6, 5.7, 1.7, 21.9, 16, 3, 5_751),
  D: facts(6.1, 25.1, 1.4, 72.6, 24, 3, 3_897),
  E: facts(8.0, 130.0, 3.9, 320.6, 11, 1, 2_033),
  F: facts(3.6, 17.4, 3.3, 110.4, 26, 1, 6_139),
  G: facts(3.0, 7.7, 1.6, 68.3, 110, 15, 8_496),
} as const;

export type JockeyJobName = keyof typeof jockeyFacts;
export const jockeyJobNames = ['A', 'B', 'C', 'D', 'E', 'F', 'G'] as const satisfies readonly JockeyJobName[];

/** A stage of a synthetic job: its task times are log-normal. */
export interface SyntheticStage {
  readonly tasks: number;
  readonly medianMs: number;
  /** Standard deviation of the logarithm. */
  readonly sigma: number;
  /** No task takes longer. */
  readonly mostMs: number;
  readonly inputs: readonly { readonly stage: number; readonly isBarrier: boolean }[];
}

function facts(
  median: number,
  p90: number,
  fastest: number,
  slowest: number,
  stages: number,
  barriers: number,
  tasks: number,
): JobFacts {
  return {
    medianMs: median * 1_000,
    p90Ms: p90 * 1_000,
    fastestP90Ms: fastest * 1_000,
    slowestP90Ms: slowest * 1_000,
    stages,
    barriers,
    tasks,
  };
}

/** Standard normal that 90 of 100 lie below. */
const z90 = 1.2815515655446004;
/** Spread of the stages' sizes beside what the fit asks for: standard deviation of their logarithm. */
const sizeSpread = 0.4;
/**
 * Longest task of a stage over its 90th percentile. The paper gives none; a log-normal that fits its percentiles draws
 * tasks of hours, with which no deadline of an hour could be met, as the paper's jobs met theirs. In phases of the same
 * clusters one straggler of ten takes more than ten times the median (Mantri, §4.1), about this many 90th percentiles.
 */
const longestOverP90 = 4;
/** Share of stages that read the job's input alone, and of the others that read two stages. */
const sourceShare = 0.2;
const twoInputs = 0.25;
/** How far back, in stages, an input lies at most. */
const reach = 4;

/**
 * A job with the numbers of stages, barriers and tasks of the paper's, whose stages' 90th percentiles span the paper's
 * range, and whose sizes and spread are fitted so that all its tasks together have the paper's median and 90th percentile.
 * The paper shows its graphs in a figure alone: here stages read one or two of the few before them, at random.
 *
 * Source: Jockey, Table 2 and Fig. 3.
 */
export function jockeyJob(name: JockeyJobName, rng: Rng): readonly SyntheticStage[] {
  const job = jockeyFacts[name];
  const p90s = drawP90s(job, rng.fork('times'));
  const noise = rng.fork('sizes');
  const spread = p90s.map(() => normal(noise) * sizeSpread);
  const { sigma, tilt } = fit(job, p90s, spread);
  const sizes = sizesOf(weightsOf(p90s, spread, tilt), job.tasks);
  const graph = rng.fork('graph');
  const inputs = p90s.map((_, stage) => drawInputs(stage, graph));
  const barriers = drawBarriers(inputs, job.barriers, graph);
  return p90s.map((p90Ms, stage) => ({
    tasks: sizes[stage] ?? 1,
    medianMs: p90Ms / Math.exp(z90 * sigma),
    sigma,
    mostMs: longestOverP90 * p90Ms,
    inputs: (inputs[stage] ?? []).map((read) => ({ stage: read, isBarrier: barriers.has(stage) })),
  }));
}

/** In random order: the ends of the range, and the rest spread evenly between them on a logarithmic scale. */
function drawP90s({ fastestP90Ms, slowestP90Ms, stages }: JobFacts, rng: Rng): number[] {
  const ratio = slowestP90Ms / fastestP90Ms;
  const all = Array.from({ length: stages }, (_, rank) => fastestP90Ms * ratio ** (rank / (stages - 1)));
  return shuffled(all, rng);
}

/** Shares of the tasks: `tilt` makes slow stages larger than fast ones, or smaller. */
function weightsOf(p90s: readonly number[], spread: readonly number[], tilt: number): number[] {
  const raw = p90s.map((ms, stage) => Math.exp(tilt * Math.log(ms) + (spread[stage] ?? 0)));
  const sum = raw.reduce((total, each) => total + each, 0);
  return raw.map((each) => each / sum);
}

/** The spread within stages and the tilt of sizes by which the share of tasks below both percentiles comes out nearest. */
function fit(
  { medianMs, p90Ms }: JobFacts,
  p90s: readonly number[],
  spread: readonly number[],
): { readonly sigma: number; readonly tilt: number } {
  let best = { sigma: 1, tilt: 0, miss: Infinity };
  for (let tilt = -4; tilt <= 2; tilt += 0.05) {
    const weights = weightsOf(p90s, spread, tilt);
    for (let sigma = 0.05; sigma <= 2.5; sigma += 0.05) {
      const below = (ms: number): number =>
        p90s.reduce(
          (sum, p90, stage) =>
            sum +
            (weights[stage] ?? 0) *
              (ms >= longestOverP90 * p90 ? 1 : normalShare(Math.log(ms / p90) / sigma + z90)),
          0,
        );
      const miss = (below(medianMs) - 0.5) ** 2 + 4 * (below(p90Ms) - 0.9) ** 2;
      if (miss < best.miss) best = { sigma, tilt, miss };
    }
  }
  return best;
}

/** Whole numbers, at least 1 each, that sum to `tasks`. */
function sizesOf(weights: readonly number[], tasks: number): number[] {
  const sizes = weights.map((weight) => Math.max(1, Math.round(weight * tasks)));
  const largest = sizes.indexOf(Math.max(...sizes));
  const rest = sizes.reduce((sum, each) => sum + each, 0) - tasks;
  return sizes.map((size, stage) => (stage === largest ? Math.max(1, size - rest) : size));
}

function drawInputs(stage: number, rng: Rng): readonly number[] {
  if (stage === 0 || rng.next() < sourceShare) return [];
  const count = rng.next() < twoInputs ? 2 : 1;
  const read = Array.from(
    { length: count },
    () => stage - 1 - Math.floor(rng.next() * Math.min(stage, reach)),
  );
  return [...new Set(read)].toSorted((a, b) => a - b);
}

function drawBarriers(inputs: readonly (readonly number[])[], count: number, rng: Rng): ReadonlySet<number> {
  const readers = inputs.flatMap((reads, stage) => (reads.length > 0 ? [stage] : []));
  return new Set(shuffled(readers, rng).slice(0, count));
}

function shuffled<T>(items: readonly T[], rng: Rng): T[] {
  return items
    .map((item) => ({ item, at: rng.next() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

/** Standard normal, by Box and Muller. */
function normal(rng: Rng): number {
  return Math.sqrt(-2 * Math.log(1 - rng.next())) * Math.cos(2 * Math.PI * rng.next());
}

/** Task times of a stage, as one run would show them, in ms. */
export const drawTimes = ({ tasks, medianMs, sigma, mostMs }: SyntheticStage, rng: Rng): number[] =>
  Array.from({ length: tasks }, () => Math.min(mostMs, medianMs * Math.exp(sigma * normal(rng))));

/** Share of a standard normal below `x`, to 1e-7 (Abramowitz and Stegun 26.2.17). */
function normalShare(x: number): number {
  const t = 1 / (1 + 0.2316419 * Math.abs(x));
  const series =
    t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  const tail = (Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI)) * series;
  return x >= 0 ? 1 - tail : tail;
}
