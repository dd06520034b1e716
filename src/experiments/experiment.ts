import { meanInterval, type MeanInterval } from '../lib/quantiles.ts';
import type { TraceFormat } from '../traces/trace-formats.ts';
import type { TraceJob } from '../traces/trace-job.ts';

/** A line of an experiment's table; columns in the order of the first row that has them. */
export type Row = Readonly<Record<string, string | number | null>>;

/**
 * What a check decides. `value`: a number that the paper states; `shape`: an order, a knee, a sign; `side`: a claim
 * beside the experiment's point, shown and left out of the verdict.
 */
export type CheckKind = 'value' | 'shape' | 'side';

/** One statement of the paper beside what came out, and the rule by which they agree. */
export interface Check {
  readonly what: string;
  readonly paper: string | number;
  readonly got: string | number;
  readonly rule: string;
  readonly kind: CheckKind;
  readonly ok: boolean;
}

export type Verdict = 'reproduced' | 'same-shape' | 'differs';

/** A point of a plot; `low` and `high` bound it where its spread is known. */
export interface PlotPoint {
  readonly x: number | string;
  readonly y: number;
  readonly low?: number;
  readonly high?: number;
}

/** A picture of a result, to be drawn by whoever shows it. `name` is unique in its experiment, and fit for a file. */
export interface Plot {
  readonly name: string;
  readonly kind: 'lines' | 'bars';
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly series: readonly { readonly name: string; readonly points: readonly PlotPoint[] }[];
}

/** What a run of an experiment found. */
export interface Findings {
  readonly rows: readonly Row[];
  readonly checks: readonly Check[];
  readonly plots?: readonly Plot[];
}

/** What an experiment is given. Equal inputs give equal findings, byte for byte. */
export interface ExperimentInput {
  /** At least one; each names a run that is independent of the others. */
  readonly seeds: readonly string[];
  /** Jobs of the traces that the experiment asks for, as recorded. */
  readonly traces: ReadonlyMap<TraceFormat, readonly TraceJob[]>;
}

/** A measurement of a paper, made again. */
export interface Experiment {
  readonly name: string;
  readonly title: string;
  /** Where the paper's figures are from. */
  readonly source: string;
  /** Seeds by default: enough for narrow intervals. 1 where nothing is random. */
  readonly defaultSeeds: number;
  /** Traces that it replays; it cannot run without them. */
  readonly traces: readonly TraceFormat[];
  run(input: ExperimentInput): Promise<Findings>;
}

/** What `experiments --json` prints for one experiment. */
export interface ExperimentResult {
  readonly name: string;
  readonly seed: number;
  readonly seeds: number;
  readonly rows: readonly Row[];
  readonly checks: readonly Check[];
  readonly verdict: Verdict;
}

/**
 * `differs` where a shape fails; `reproduced` where every value and shape holds and there is a value among them;
 * else `same-shape`.
 */
export function verdictOf(checks: readonly Check[]): Verdict {
  const failed = (kind: CheckKind): boolean => checks.some((check) => check.kind === kind && !check.ok);
  if (failed('shape')) return 'differs';
  return failed('value') || !checks.some(({ kind }) => kind === 'value') ? 'same-shape' : 'reproduced';
}

/** Runs an experiment with `count` seeds that derive from `seed`. */
export async function runExperiment(
  experiment: Experiment,
  options: { readonly seed: number; readonly count: number; readonly traces?: ExperimentInput['traces'] },
): Promise<{ readonly result: ExperimentResult; readonly plots: readonly Plot[] }> {
  const { seed, count, traces = new Map<TraceFormat, readonly TraceJob[]>() } = options;
  const seeds = Array.from({ length: count }, (_, index) => `${seed}/${index}`);
  const { rows, checks, plots = [] } = await experiment.run({ seeds, traces });
  return {
    result: { name: experiment.name, seed, seeds: count, rows, checks, verdict: verdictOf(checks) },
    plots,
  };
}

/** Three decimals: more is noise in a table, and the last bits of logarithms differ between machines. */
export const rounded = (value: number): number => Math.round(value * 1_000) / 1_000;

/** Mean and its 95 % interval over seeds, rounded; zeros of nothing. */
export function intervalOf(values: readonly number[]): MeanInterval {
  const { mean, low, high } = meanInterval(values) ?? { mean: 0, low: 0, high: 0 };
  return { mean: rounded(mean), low: rounded(low), high: rounded(high) };
}

/** `158.2 ± 0.9`, with the half-width of the interval. */
export const intervalText = ({ mean, high }: MeanInterval): string =>
  `${mean.toFixed(1)} ± ${(high - mean).toFixed(1)}`;
