import { ascending, type MeanInterval, median, quantile } from '../lib/quantiles.ts';
import { intervalFor } from './experiment.ts';

export const shown = ['first free slot', 'mantri', 'start', 'equal', 'ours', 'ideal reduce'] as const;
export const others = [
  'mantri, small to 0.1 GB',
  'mantri, small to 1 GB',
  'mantri, small to 100 GB',
] as const;
export type SchemeName = (typeof shown)[number] | (typeof others)[number];

export interface End {
  readonly endMs: number;
  readonly ratio: number;
  /** The same of those tasks alone that read from other racks; NaN where fewer than two do. */
  readonly ratioAcross: number;
}

/** A phase under every scheme: when it had all its input, and how much less than the median its slowest task was given. */
export interface Measured {
  readonly tasks: number;
  /** Racks that hold its input. */
  readonly sources: number;
  /** By the limit of the rule. */
  readonly isSmall: boolean;
  readonly ends: ReadonlyMap<SchemeName, End>;
  /** IdealReduce's last placement by the links that it went by: its cost, and what none can be below. */
  readonly idealCostMs: number;
  readonly idealAtLeastMs: number;
}

/** The throughput of the median task over that of the slowest. */
export function medianOverSlowest(throughputs: readonly number[]): number {
  const sorted = ascending(throughputs);
  return (median(sorted) ?? 1) / (sorted[0] ?? 1);
}

export const groups = ['all', 'small', 'large', 'input in several racks'] as const;
export type Group = (typeof groups)[number];
export const isIn = (group: Group, { isSmall, sources }: Measured): boolean =>
  group === 'input in several racks' ? sources > 1 : group === 'all' || isSmall === (group === 'small');

export type Figure =
  | 'p25'
  | 'p50'
  | 'p75'
  | 'plainP50'
  | 'timePct'
  | 'seconds'
  | 'slowerPct'
  | 'ratioP50'
  | 'ratioP75'
  | 'ratioP90'
  | 'ratioMax'
  | 'acrossP50'
  | 'acrossP75'
  | 'acrossP90'
  | 'acrossMax';
type Figures = Readonly<Record<Figure, number>>;

export const base: SchemeName = 'first free slot';
const endOf = ({ ends }: Measured, scheme: SchemeName): number => ends.get(scheme)?.endMs ?? NaN;

/** The value up to which a share of the weight lies. */
export function weightedQuantile(
  values: readonly (readonly [value: number, weight: number])[],
  share: number,
): number {
  const sorted = values.toSorted(([a], [b]) => a - b);
  let left = share * sorted.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [value, weight] of sorted) {
    left -= weight;
    if (left <= 0) return value;
  }
  return sorted.at(-1)?.[0] ?? NaN;
}

/** Reductions in per cent of the first free slot's time; percentiles weigh phases by that time, as the paper's do. */
function figuresOf(phases: readonly Measured[], scheme: SchemeName): Figures {
  const reductions = phases.map((phase) => {
    const before = endOf(phase, base);
    return [100 * (1 - endOf(phase, scheme) / before), before] as const;
  });
  const sum = (name: SchemeName): number => phases.reduce((all, phase) => all + endOf(phase, name), 0);
  const slowerMs = reductions.reduce((ms, [value, before]) => (value <= -1 ? ms + before : ms), 0);
  const ratios = ascending(
    phases.filter(({ tasks }) => tasks > 1).map(({ ends }) => ends.get(scheme)?.ratio ?? NaN),
  );
  const across = ascending(
    phases.map(({ ends }) => ends.get(scheme)?.ratioAcross ?? NaN).filter((ratio) => !Number.isNaN(ratio)),
  );
  return {
    p25: weightedQuantile(reductions, 0.25),
    p50: weightedQuantile(reductions, 0.5),
    p75: weightedQuantile(reductions, 0.75),
    plainP50: median(reductions.map(([value]) => value)) ?? NaN,
    timePct: 100 * (1 - sum(scheme) / sum(base)),
    seconds: sum(scheme) / 1_000,
    slowerPct: (100 * slowerMs) / sum(base),
    ratioP50: quantile(ratios, 0.5) ?? NaN,
    ratioP75: quantile(ratios, 0.75) ?? NaN,
    ratioP90: quantile(ratios, 0.9) ?? NaN,
    ratioMax: ratios.at(-1) ?? NaN,
    acrossP50: quantile(across, 0.5) ?? NaN,
    acrossP75: quantile(across, 0.75) ?? NaN,
    acrossP90: quantile(across, 0.9) ?? NaN,
    acrossMax: across.at(-1) ?? NaN,
  };
}

/** A figure of a scheme over a group of phases, by seed. */
export type Found = (scheme: SchemeName, group: Group, figure: Figure) => MeanInterval;

/** Figures of all schemes over phases by seed. */
export function foundIn(bySeed: readonly (readonly Measured[])[]): Found {
  const figures = new Map(
    groups.map((group) => {
      const ofGroup = bySeed.map((phases) => phases.filter((phase) => isIn(group, phase)));
      const entries = [...shown, ...others].map(
        (scheme) => [scheme, ofGroup.map((phases) => figuresOf(phases, scheme))] as const,
      );
      return [group, new Map<SchemeName, readonly Figures[]>(entries)] as const;
    }),
  );
  return (scheme, group, figure) =>
    intervalFor(figures.get(group) ?? new Map<SchemeName, Figures[]>(), scheme, figure);
}
