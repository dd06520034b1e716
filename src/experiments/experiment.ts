import { meanInterval, type MeanInterval } from '../lib/quantiles.ts';
import type { HostProfileName } from '../sim/host-profiles.ts';
import type { TraceJob } from '../traces/trace-job.ts';
import type { TraceName } from './trace-names.ts';

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
  readonly traces: ReadonlyMap<TraceName, readonly TraceJob[]>;
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
  readonly traces: readonly TraceName[];
  /** What its jobs run on: the papers' clusters, or Lambda. Absent where it is of its own. */
  readonly host?: HostProfileName;
  run(input: ExperimentInput): Promise<Findings>;
}

/** How an experiment came out once more, with seeds that derive from another. */
export interface OtherSeed {
  readonly seed: number;
  readonly verdict: Verdict;
  /** What counts and holds with one of the seeds, and not with the other. */
  readonly turned: readonly string[];
}

/** What `experiments --json` prints for one experiment. */
export interface ExperimentResult {
  readonly name: string;
  readonly seed: number;
  readonly seeds: number;
  readonly rows: readonly Row[];
  readonly checks: readonly Check[];
  /** The worst of all seeds: none that another turns. */
  readonly verdict: Verdict;
  /** Absent where nothing is random, or it ran with one seed alone. */
  readonly others?: readonly OtherSeed[];
}

/** Of all that counts, what has to hold where only the shape is claimed to be the same. */
const leastHeld = 0.5;

/**
 * `differs` where a shape fails, or more than half of the values and shapes; `reproduced` where every value and shape
 * holds and there is a value among them; else `same-shape`. Asides count for nothing.
 */
export function verdictOf(checks: readonly Check[]): Verdict {
  const counted = checks.filter(({ kind }) => kind !== 'side');
  const missed = counted.filter(({ ok }) => !ok);
  if (missed.some(({ kind }) => kind === 'shape')) return 'differs';
  if (missed.length > (1 - leastHeld) * counted.length) return 'differs';
  return missed.length > 0 || !counted.some(({ kind }) => kind === 'value') ? 'same-shape' : 'reproduced';
}

/** Runs an experiment with `count` seeds that derive from `seed`. */
export async function runExperiment(
  experiment: Experiment,
  options: { readonly seed: number; readonly count: number; readonly traces?: ExperimentInput['traces'] },
): Promise<{ readonly result: ExperimentResult; readonly plots: readonly Plot[] }> {
  const { seed, count, traces = new Map<TraceName, readonly TraceJob[]>() } = options;
  const seeds = Array.from({ length: count }, (_, index) => `${seed}/${index}`);
  const { rows, checks, plots = [] } = await experiment.run({ seeds, traces });
  return {
    result: { name: experiment.name, seed, seeds: count, rows, checks, verdict: verdictOf(checks) },
    plots,
  };
}

const fromWorst: readonly Verdict[] = ['differs', 'same-shape', 'reproduced'];

/** A result with how it came out with other seeds. Its verdict is the worst of all. */
export function besideOthers(
  result: ExperimentResult,
  others: readonly Pick<ExperimentResult, 'seed' | 'verdict' | 'checks'>[],
): ExperimentResult {
  const heldBy = new Map(result.checks.map(({ what, ok }) => [what, ok]));
  const found = others.map(({ seed, verdict, checks }): OtherSeed => ({
    seed,
    verdict,
    turned: checks.flatMap(({ what, ok, kind }) =>
      kind !== 'side' && heldBy.get(what) !== ok ? [what] : [],
    ),
  }));
  const verdicts = new Set([result.verdict, ...found.map(({ verdict }) => verdict)]);
  return {
    ...result,
    verdict: fromWorst.find((each) => verdicts.has(each)) ?? result.verdict,
    others: found,
  };
}

/** Three decimals: more is noise in a table, and the last bits of logarithms differ between machines. */
export const rounded = (value: number): number => Math.round(value * 1_000) / 1_000;

/** Mean and its 95 % interval over seeds, rounded; zeros of nothing. */
export function intervalOf(values: readonly number[]): MeanInterval {
  const { mean, low, high } = meanInterval(values) ?? { mean: 0, low: 0, high: 0 };
  return { mean: rounded(mean), low: rounded(low), high: rounded(high) };
}

/** The same of one figure, of the runs of one setting. */
export const intervalFor = <Setting, Figure extends string>(
  found: ReadonlyMap<Setting, readonly Readonly<Record<Figure, number>>[]>,
  setting: Setting,
  figure: Figure,
): MeanInterval => intervalOf((found.get(setting) ?? []).map((figures) => figures[figure]));

/** `158.2 ± 0.9`, with the half-width of the interval. */
export const intervalText = ({ mean, high }: MeanInterval): string =>
  `${mean.toFixed(1)} ± ${(high - mean).toFixed(1)}`;
