import { claim, within } from './checks.ts';
import { type Exchanged, exchangedFindings } from './exchanged-loads.ts';
import {
  type Check,
  type Findings,
  intervalOf,
  intervalText,
  type Plot,
  rounded,
  type Row,
} from './experiment.ts';
import {
  base,
  type Figure,
  type Found,
  foundIn,
  type Group,
  groups,
  isIn,
  type Measured,
  others,
  type SchemeName,
  shown,
} from './placement-figures.ts';
import { hourFindings, type ReplayedHour } from './placement-hour.ts';

/** What was found, by seed; of the first seeds beside exchanged loads too. */
export interface PlacementRuns {
  /** Beside others that Mantri's rule has placed. */
  readonly inside: readonly (readonly Measured[])[];
  /** Beside others where they were recorded. */
  readonly alone: readonly (readonly Measured[])[];
  readonly exchanged: readonly (readonly Exchanged[])[];
  readonly replayed: readonly ReplayedHour[];
}

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
      rule: 'within 5 %, beside others that are placed by the rule too',
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
  const isInShape = (p50: Figure, p90: Figure, most: Figure): boolean =>
    mean('mantri', p50) <= 1.25 &&
    mean('mantri', most) <= 3 &&
    [p90, most].every((figure) => mean(base, figure) > mean('mantri', figure));
  const spread: Group = 'input in several racks';
  const ofSpread = (scheme: SchemeName, figure: Figure): number => of(scheme, spread, figure).mean;
  return [
    claim(
      'phases with input in several racks, Mantri: throughput of the median task over the slowest, at 50, 75, 90, 100 % of them',
      {
        paper: 'close to 1 at the median and never large',
        got: text('mantri', spread),
        rule: 'up to 1.25 at the median, up to 3 in any phase; of such phases, since in the paper maps are spread over the cluster and every reduce task reads much from other racks (on causes: cross-rack traffic)',
        ok: ofSpread('mantri', 'ratioP50') <= 1.25 && ofSpread('mantri', 'ratioMax') <= 3,
      },
    ),
    claim('the same, first free slot', {
      paper: 'a heavy tail',
      got: text(base, spread),
      rule: "above Mantri's at 75, 90 and 100 %",
      ok: (['ratioP75', 'ratioP90', 'ratioMax'] as const).every(
        (figure) => ofSpread(base, figure) > ofSpread('mantri', figure),
      ),
    }),
    claim('the same two, of all phases', {
      paper: 'not in the paper',
      got: `${text('mantri')}; ${text(base)}`,
      rule: "Mantri's up to 1.25 at the median and 3 in any phase, the first free slot's above it at 90 and 100 %; where one rack holds all input, tasks beside it read as fast as their machines, and those for which it has no room do not",
      kind: 'side',
      ok: isInShape('ratioP50', 'ratioP90', 'ratioMax'),
    }),
    claim('the same two, of tasks that read from other racks', {
      paper: 'close to 1 at the median and never large; a heavy tail',
      got: `${across('mantri')}; ${across(base)}`,
      rule: "Mantri's as above, the first free slot's above it at 90 and 100 %",
      kind: 'side',
      ok: isInShape('acrossP50', 'acrossP90', 'acrossMax'),
    }),
  ];
}

interface TableAndChecks {
  readonly rows: Row[];
  readonly checks: Check[];
}

/** What a scheme does for one job, where all others are placed as recorded. */
function aloneFindings(of: Found): TableAndChecks {
  const table = 'one job placed so, all others as recorded';
  const rows = (['all', 'small', 'large'] as const).flatMap((group) =>
    shown.map((scheme): Row => ({
      table,
      phases: group,
      scheme,
      seconds: rounded(of(scheme, group, 'seconds').mean),
      timePct: intervalText(of(scheme, group, 'timePct')),
      p50: intervalText(of(scheme, group, 'p50')),
    })),
  );
  const seconds = (scheme: SchemeName): number => of(scheme, 'all', 'seconds').mean;
  const above = (scheme: SchemeName): number => 100 * (seconds(scheme) / seconds('ideal reduce') - 1);
  const text = (scheme: SchemeName): string => above(scheme).toFixed(1);
  return {
    rows,
    checks: [
      claim('one job alone among others as recorded: beside IdealReduce', {
        paper: 'not in the paper: there every job manager places so',
        got: `Mantri ${text('mantri')} % more time, Start ${text('start')}, ours ${text('ours')}`,
        rule: 'Mantri within 5 %; where nobody else spreads load, it lasts about as long as large phases do, and some links are busy all hour: see loads in another order',
        kind: 'side',
        ok: above('mantri') <= 5,
      }),
      claim('the same: ours beside Start and Mantri', {
        paper: 'not in the paper',
        got: `${text('ours')} % above IdealReduce; ${text('start')} and ${text('mantri')}`,
        rule: 'ahead of both',
        kind: 'side',
        ok: above('ours') < Math.min(above('start'), above('mantri')),
      }),
    ],
  };
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

function rowsOf(of: Found, phases: readonly Measured[]): Row[] {
  const row = (group: Group, scheme: SchemeName): Row => {
    const mean = (figure: Figure): number => rounded(of(scheme, group, figure).mean);
    return {
      phases: group,
      scheme,
      count: phases.filter((phase) => isIn(group, phase)).length,
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
  return [
    ...groups.flatMap((group) => shown.map((scheme) => row(group, scheme))),
    ...others.map((scheme) => row('all', scheme)),
  ];
}

/** Tables and verdicts. */
export function placementFindings({ inside, alone, exchanged, replayed }: PlacementRuns): Findings {
  const of = foundIn(inside);
  const besideRecorded = aloneFindings(foundIn(alone));
  const hour = hourFindings(replayed);
  const besideExchanged = exchangedFindings(exchanged);
  return {
    rows: [...rowsOf(of, inside[0] ?? []), ...besideRecorded.rows, ...hour.rows, ...besideExchanged.rows],
    checks: [
      ...timeChecks(of),
      ...ratioChecks(of),
      optimumCheck(inside),
      ...besideRecorded.checks,
      ...hour.checks,
      ...besideExchanged.checks,
    ],
    plots: [plotOf(of)],
  };
}
