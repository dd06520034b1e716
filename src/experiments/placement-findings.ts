import { ascending, type MeanInterval, median, quantile } from '../lib/quantiles.ts';
import { claim, within } from './checks.ts';
import { type Exchanged, exchangedFindings } from './exchanged-loads.ts';
import {
  type Check,
  type Findings,
  intervalFor,
  intervalOf,
  intervalText,
  type Plot,
  rounded,
  type Row,
} from './experiment.ts';

const shown = ['first free slot', 'mantri', 'start', 'equal', 'ours', 'ideal reduce'] as const;
const others = ['mantri, small to 0.1 GB', 'mantri, small to 1 GB', 'mantri, small to 100 GB'] as const;
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

const groups = ['all', 'small', 'large', 'input in several racks'] as const;
type Group = (typeof groups)[number];
const isIn = (group: Group, { isSmall, sources }: Measured): boolean =>
  group === 'input in several racks' ? sources > 1 : group === 'all' || isSmall === (group === 'small');

type Figure =
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

const base: SchemeName = 'first free slot';
const endOf = ({ ends }: Measured, scheme: SchemeName): number => ends.get(scheme)?.endMs ?? NaN;

/** The value up to which a share of the weight lies. */
function weightedQuantile(
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

type Found = (scheme: SchemeName, group: Group, figure: Figure) => MeanInterval;

function timeChecks(of: Found): Check[] {
  const seconds = (scheme: SchemeName, group: Group): number => of(scheme, group, 'seconds').mean;
  const pair = (a: SchemeName, b: SchemeName, group: Group): string =>
    `${intervalText(of(a, group, 'timePct'))} % against ${intervalText(of(b, group, 'timePct'))} % less time`;
  const above = (scheme: SchemeName): number =>
    100 * (seconds(scheme, 'all') / seconds('ideal reduce', 'all') - 1);
  const aboveIdeal = above('mantri');
  return [
    within(
      'Mantri: reduction of reduce phases at the median, phases weighed by time, %',
      60,
      of('mantri', 'all', 'p50'),
      {
        tolerance: 10,
        why: "another cluster's shuffles, tasks cut out of what a rack received, transfers alone",
      },
    ),
    claim('Mantri: all phases beside IdealReduce', {
      paper: 'near it',
      got: `${aboveIdeal.toFixed(1)} % more time`,
      rule: 'within 5 %; loads of links last about as long as large phases do here, and some links are busy all hour: see loads in another order',
      kind: 'value',
      ok: Math.abs(aboveIdeal) <= 5,
    }),
    claim('IdealReduce beside Start and Equal', {
      paper: 'ahead of both',
      got: `${intervalText(of('ideal reduce', 'all', 'timePct'))} % less time; ${intervalText(of('start', 'all', 'timePct'))} and ${intervalText(of('equal', 'all', 'timePct'))} %`,
      rule: 'ahead of both over all phases',
      ok: seconds('ideal reduce', 'all') <= Math.min(seconds('start', 'all'), seconds('equal', 'all')),
    }),
    claim('small phases: Start against Equal', {
      paper: 'Start better',
      got: pair('start', 'equal', 'small'),
      rule: 'more, over all small phases',
      ok: seconds('start', 'small') < seconds('equal', 'small'),
    }),
    claim('large phases: Equal against Start', {
      paper: 'Equal better',
      got: pair('equal', 'start', 'large'),
      rule: 'more, over all large phases',
      ok: seconds('equal', 'large') < seconds('start', 'large'),
    }),
    claim('phases that Mantri makes slower than the first free slot, by a hundredth or more', {
      paper: 'not in the paper',
      got: `${intervalText(of('mantri', 'all', 'slowerPct'))} % of their time`,
      rule: 'a tenth at most',
      kind: 'side',
      ok: of('mantri', 'all', 'slowerPct').mean <= 10,
    }),
    claim('ours, by a forecast of links: all phases beside IdealReduce', {
      paper: 'not in the paper',
      got: `${above('ours').toFixed(1)} % more time; Start ${above('start').toFixed(1)} %, Mantri ${aboveIdeal.toFixed(1)} %`,
      rule: 'ahead of Start and of Mantri',
      kind: 'side',
      ok: above('ours') < Math.min(above('start'), aboveIdeal),
    }),
  ];
}

function ratioChecks(of: Found): Check[] {
  const text = (scheme: SchemeName, group: Group = 'all'): string =>
    (['ratioP50', 'ratioP75', 'ratioP90', 'ratioMax'] as const)
      .map((figure) => of(scheme, group, figure).mean.toFixed(2))
      .join(', ');
  const across = (scheme: SchemeName): string =>
    (['acrossP50', 'acrossP75', 'acrossP90', 'acrossMax'] as const)
      .map((figure) => of(scheme, 'all', figure).mean.toFixed(2))
      .join(', ');
  const mean = (scheme: SchemeName, figure: Figure): number => of(scheme, 'all', figure).mean;
  return [
    claim('Mantri: throughput of the median task over the slowest, at 50, 75, 90, 100 % of phases', {
      paper: 'close to 1 at the median and never large',
      got: text('mantri'),
      rule: 'up to 1.25 at the median, up to 3 in any phase; where one rack holds all input, tasks beside it read as fast as their machines, and those for which it has no room do not',
      ok: mean('mantri', 'ratioP50') <= 1.25 && mean('mantri', 'ratioMax') <= 3,
    }),
    claim('first free slot: the same', {
      paper: 'a heavy tail',
      got: text(base),
      rule: "above Mantri's at 90 % and at the most",
      ok: (['ratioP90', 'ratioMax'] as const).every((figure) => mean(base, figure) > mean('mantri', figure)),
    }),
    claim('the same two, of phases with input in several racks', {
      paper: 'not in the paper by itself',
      got: `${text('mantri', 'input in several racks')}; ${text(base, 'input in several racks')}`,
      rule: "the first free slot's above Mantri's at 75, 90 and 100 %",
      kind: 'side',
      ok: (['ratioP75', 'ratioP90', 'ratioMax'] as const).every(
        (figure) =>
          of(base, 'input in several racks', figure).mean >
          of('mantri', 'input in several racks', figure).mean,
      ),
    }),
    claim('the same two, of tasks that read from other racks', {
      paper: 'close to 1 at the median and never large; a heavy tail',
      got: `${across('mantri')}; ${across(base)}`,
      rule: "Mantri's as above, the first free slot's above it at 90 and 100 %: in the paper every reduce task reads much from other racks wherever it is, since maps are spread over the cluster (on causes: cross-rack traffic)",
      kind: 'side',
      ok:
        mean('mantri', 'acrossP50') <= 1.25 &&
        mean('mantri', 'acrossMax') <= 3 &&
        (['acrossP90', 'acrossMax'] as const).every((figure) => mean(base, figure) > mean('mantri', figure)),
    }),
  ];
}

/** How far IdealReduce's placements can be from the best: the search is none that goes through all. */
function optimumCheck(bySeed: readonly (readonly Measured[])[]): Check {
  const farthest = intervalOf(
    bySeed.map((phases) => {
      const sum = (of: (phase: Measured) => number): number =>
        phases.reduce((all, phase) => all + of(phase), 0);
      return 100 * (sum(({ idealCostMs }) => idealCostMs) / sum(({ idealAtLeastMs }) => idealAtLeastMs) - 1);
    }),
  );
  return claim("IdealReduce's placements beside what none can be below, by the same links", {
    paper: 'not in the paper',
    got: `${intervalText(farthest)} % more time at most`,
    rule: 'within a quarter; the bound knows no room in racks and divides tasks',
    kind: 'side',
    ok: farthest.mean <= 25,
  });
}

const plotOf = (of: Found): Plot => ({
  name: 'reduction',
  kind: 'lines',
  title: 'Reduction of reduce phases against the first free slot',
  xLabel: 'percentile of phases, by time',
  yLabel: 'reduction, %',
  series: shown
    .filter((scheme) => scheme !== base)
    .map((name) => ({
      name,
      points: (['p25', 'p50', 'p75'] as const).map((p) => ({
        x: Number(p.slice(1)),
        y: of(name, 'all', p).mean,
      })),
    })),
});

/** Tables and verdicts over phases by seed; of the first seeds beside exchanged loads too. */
export function placementFindings(
  bySeed: readonly (readonly Measured[])[],
  exchanged: readonly (readonly Exchanged[])[],
): Findings {
  const figures = new Map(
    groups.map((group) => {
      const ofGroup = bySeed.map((phases) => phases.filter((phase) => isIn(group, phase)));
      const entries = [...shown, ...others].map(
        (scheme) => [scheme, ofGroup.map((phases) => figuresOf(phases, scheme))] as const,
      );
      return [group, new Map<SchemeName, readonly Figures[]>(entries)] as const;
    }),
  );
  const of: Found = (scheme, group, figure) =>
    intervalFor(figures.get(group) ?? new Map<SchemeName, Figures[]>(), scheme, figure);
  const row = (group: Group, scheme: SchemeName): Row => {
    const mean = (figure: Figure): number => rounded(of(scheme, group, figure).mean);
    return {
      phases: group,
      scheme,
      count: (bySeed[0] ?? []).filter((phase) => isIn(group, phase)).length,
      seconds: mean('seconds'),
      timePct: intervalText(of(scheme, group, 'timePct')),
      p25: mean('p25'),
      p50: intervalText(of(scheme, group, 'p50')),
      p75: mean('p75'),
      plainP50: mean('plainP50'),
      ratioP50: mean('ratioP50'),
      ratioP90: mean('ratioP90'),
      ratioMax: mean('ratioMax'),
      acrossP90: mean('acrossP90'),
      acrossMax: mean('acrossMax'),
    };
  };
  const rows = [
    ...groups.flatMap((group) => shown.map((scheme) => row(group, scheme))),
    ...others.map((scheme) => row('all', scheme)),
  ];
  const besideExchanged = exchangedFindings(exchanged);
  return {
    rows: [...rows, ...besideExchanged.rows],
    checks: [...timeChecks(of), ...ratioChecks(of), optimumCheck(bySeed), ...besideExchanged.checks],
    plots: [plotOf(of)],
  };
}
