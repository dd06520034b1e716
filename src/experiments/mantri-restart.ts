import { createRng, type Rng } from '../lib/rng.ts';
import { type Distribution, sample } from '../sim/distribution.ts';
import { claim, within } from './checks.ts';
import {
  type Check,
  type Experiment,
  type ExperimentInput,
  type Findings,
  intervalOf,
  intervalText,
  type Plot,
  type Row,
} from './experiment.ts';
import {
  comparePhases,
  type Compared,
  type Gain,
  gainCells,
  gainOf,
  idealSchemes,
  meanGain,
  type Phase,
  type Scheme,
} from './phase-comparison.ts';

const phasesPerSeed = 25;
/** Attempts of a task that are drawn; no scheme starts more. */
const attemptsPerTask = 7;
const policies = [
  'mantri',
  'hadoop',
  'late',
  'early-late',
  'dryad',
  'mapreduce',
  'outrider',
] as const satisfies readonly Compared[];

/** Tasks over slots: the median is the paper's, its tail (sd 12.37) is cut for the sake of time. */
const wavesOf: Distribution = { kind: 'lognormal', median: 2.11, sigma: 0.7 };
const medianTaskMs: Distribution = { kind: 'lognormal', median: 90_000, sigma: 0.5 };
/** Coefficient of variation of input: median 0.34, 90th percentile 3.1. */
const inputSpread: Distribution = { kind: 'lognormal', median: 0.34, sigma: 1.725 };
/** Share of outliers: a quarter of phases have over 15 %. */
const outlierShare: Distribution = { kind: 'exponential', mean: 0.108 };
/** A task that its data explains takes 0.8 to 1.2 times what its input foretells. */
const usual: Distribution = { kind: 'uniform', min: 0.8, max: 1.2 };

/** 80 % of outliers take 1.5 to 2.5 times as long, a tenth over 10 times. */
function outlier(rng: Rng): number {
  const u = rng.next();
  if (u < 0.8) return 1.5 + rng.next();
  return u < 0.9 ? 2.5 + 7.5 * rng.next() : 10 + 5 * rng.next();
}

/** Whether tasks of a phase differ in their input as in Bing's phases, or not at all. */
type Input = 'skewed' | 'even';

/** A phase as of Bing's clusters; every attempt draws its own slowdown from the phase's. */
function bingPhase(name: string, rng: Rng, input: Input): Phase {
  const slots = 5 + Math.floor(rng.next() * 16);
  const waves = Math.min(8, Math.max(0.5, sample(wavesOf, rng)));
  const tasks = Math.max(3, Math.round(slots * waves));
  const medianMs = Math.max(20_000, sample(medianTaskMs, rng));
  const spread = Math.min(3, sample(inputSpread, rng));
  const sizes: Distribution = { kind: 'lognormal', median: 1, sigma: Math.sqrt(Math.log(1 + spread ** 2)) };
  const outliers = Math.min(0.5, sample(outlierShare, rng));
  const drawn = Array.from({ length: tasks }, () => Math.min(20, Math.max(0.05, sample(sizes, rng))));
  const relative = input === 'skewed' ? drawn : drawn.map(() => 1);
  const attempt = (size: number): number =>
    Math.max(1, Math.round(medianMs * size * (rng.next() < outliers ? outlier(rng) : sample(usual, rng))));
  return {
    name,
    slots,
    inputBytes: relative.map((size) => Math.round(size * 64e6)),
    attemptsMs: relative.map((size) => Array.from({ length: attemptsPerTask }, () => attempt(size))),
  };
}

type Gains = ReadonlyMap<Scheme, readonly Gain[]>;

async function gainsOver(seeds: readonly string[], input: Input, among: readonly Compared[]): Promise<Gains> {
  const schemes: readonly Scheme[] = ['none', ...among, ...idealSchemes];
  const gains = new Map<Scheme, Gain[]>(schemes.map((scheme) => [scheme, []]));
  for (const seed of seeds) {
    const rng = createRng(`mantri-restart/${seed}`);
    const phases = Array.from({ length: phasesPerSeed }, (_, index) =>
      bingPhase(`phase-${index}`, rng.fork(`${index}`), input),
    );
    const comparison = await comparePhases(phases, among);
    for (const scheme of schemes) gains.get(scheme)?.push(gainOf(comparison, scheme));
  }
  return gains;
}

const percentiles = ['p25', 'p50', 'p75', 'p90'] as const;
const percent = (value: number | undefined): string =>
  value === undefined ? '-' : `${(value * 100).toFixed(1)} %`;
const four = (gain: Gain): string => percentiles.map((p) => (gain[p] * 100).toFixed(0)).join(', ');

/**
 * Why Mantri may be behind at low percentiles: seen in the runs where it is, phase by phase. Its rule knows no error of
 * its estimates, and Δ is 10 s at most.
 */
const whyBehind =
  'where it is behind, it has killed the largest task of a phase of unequal input at its first report, though that was an ordinary one: what a new copy takes is foretold from the rates of smaller tasks, which for a task of 20 times their input errs by minutes, and the rule asks for Δ, 10 s; such a phase ends with that task';

function timeChecks(of: (scheme: Scheme) => Gain): Check[] {
  const mantri = of('mantri');
  const beaten = (['hadoop', 'late', 'dryad', 'mapreduce'] as const).map((scheme) =>
    claim(`Mantri against ${scheme}, reduction at 25, 50, 75, 90 %`, {
      paper: 'better at every percentile',
      got: `${four(mantri)} against ${four(of(scheme))} %`,
      rule: `not less at any, more at the median; ${whyBehind}`,
      ok: percentiles.every((p) => mantri[p] >= of(scheme)[p] - 1e-9) && mantri.p50 > of(scheme).p50,
    }),
  );
  const idle = (['mapreduce', 'dryad'] as const).map((scheme) =>
    claim(`phases that ${scheme} does nothing for`, {
      paper: 'a large share',
      got: percent(of(scheme).unchanged),
      rule: 'a quarter or more',
      ok: of(scheme).unchanged >= 0.25,
    }),
  );
  return [...beaten, ...idle];
}

/** NoSkew evens out input too, which no restart can: so Mantri is behind it with skewed input, ahead with even. */
function idealChecks(of: (scheme: Scheme) => Gain, evenOf: (scheme: Scheme) => Gain): Check[] {
  const times = (gain: (scheme: Scheme) => Gain, ideal: Scheme): string =>
    `${percent(gain('mantri').time)} against ${percent(gain(ideal).time)}`;
  const chop = 'NoSkew + ChopTail';
  return [
    claim('Mantri against NoSkew, less time than none over all phases', {
      paper: 'about equal',
      got: `${times(of, 'NoSkew')} with skewed input, ${times(evenOf, 'NoSkew')} with even`,
      rule: 'equal lies between: behind where inputs are skewed, ahead where they are even',
      ok: of('mantri').time <= of('NoSkew').time && evenOf('mantri').time >= evenOf('NoSkew').time,
    }),
    claim('Mantri against NoSkew + ChopTail, likewise', {
      paper: 'slightly behind',
      got: `${times(of, chop)} with skewed input, ${times(evenOf, chop)} with even`,
      rule: 'behind in both, within 10 points where inputs are even',
      ok:
        of('mantri').time <= of(chop).time &&
        evenOf('mantri').time <= evenOf(chop).time &&
        evenOf('mantri').time >= evenOf(chop).time - 0.1,
    }),
  ];
}

function costChecks(of: (scheme: Scheme) => Gain): Check[] {
  const [mantri, hadoop, late, early] = [of('mantri'), of('hadoop'), of('late'), of('early-late')];
  const used = (gain: Gain): number => gain.resources ?? 0;
  return [
    claim("Mantri's resources", {
      paper: 'fewer than without copies',
      got: `${percent(mantri.resources)} less`,
      rule: 'fewer',
      ok: used(mantri) > 0,
    }),
    claim("Hadoop's resources", {
      paper: 'more than Mantri',
      got: `${percent(hadoop.resources)} less than none, Mantri ${percent(mantri.resources)}`,
      rule: 'more',
      ok: used(hadoop) < used(mantri),
    }),
    claim('LATE against Hadoop', {
      paper: 'about the same time, fewer resources',
      got: `${percent(late.time)} and ${percent(hadoop.time)} less time, ${percent(late.resources)} and ${percent(hadoop.resources)} fewer resources`,
      rule: 'time within 5 points, not more resources',
      ok: Math.abs(late.time - hadoop.time) <= 0.05 && used(late) >= used(hadoop) - 1e-9,
    }),
    claim('LATE without waiting for all tasks to start', {
      paper: 'worse than LATE: slower at low percentiles, more resources',
      got: `${four(early)} against ${four(late)} %, ${percent(early.resources)} against ${percent(late.resources)} fewer resources`,
      rule: 'less reduction at 25 %, or more resources',
      ok: early.p25 < late.p25 || used(early) < used(late),
    }),
    claim('share of copies that win', {
      paper: "Mantri's far more often than the others'",
      got: (['mantri', 'hadoop', 'late', 'dryad', 'mapreduce'] as const)
        .map((scheme) => `${scheme} ${percent(of(scheme).wonShare)}`)
        .join(', '),
      rule: 'Mantri first',
      ok: (['hadoop', 'late', 'dryad', 'mapreduce'] as const).every(
        (scheme) => (mantri.wonShare ?? 0) >= (of(scheme).wonShare ?? 0),
      ),
    }),
    claim('outrider against the best of the others', {
      paper: 'not in the paper',
      got: `${percent(of('outrider').time)} less time and ${percent(of('outrider').resources)} fewer resources; Mantri ${percent(mantri.time)} and ${percent(mantri.resources)}`,
      rule: 'not worse than Mantri in time and in resources, by a point',
      kind: 'side',
      ok: of('outrider').time >= mantri.time - 0.01 && used(of('outrider')) >= used(mantri) - 0.01,
    }),
  ];
}

const meansOf =
  (gains: Gains) =>
  (scheme: Scheme): Gain =>
    meanGain(gains.get(scheme) ?? []);

function checksOf(gains: Gains, even: Gains): Check[] {
  const of = meansOf(gains);
  const percents = (from: Gains, p: 'p50' | 'p75'): readonly number[] =>
    (from.get('mantri') ?? []).map((gain) => gain[p] * 100);
  const value = (p: 'p50' | 'p75', paper: number, tolerance: number): Check =>
    within(
      `Mantri: reduction of phase completion at ${p.slice(1)} %`,
      paper,
      intervalOf(percents(gains, p)),
      {
        tolerance,
        why: `phases are generated from remembered shares; with even input it is ${intervalText(intervalOf(percents(even, p)))}`,
      },
    );
  const hadoop = (gains.get('hadoop') ?? []).map((gain) => gain.p50 * 100);
  const times = of('hadoop').p50 === 0 ? Infinity : of('mantri').p50 / of('hadoop').p50;
  return [
    value('p50', 21, 5),
    value('p75', 42, 8),
    within('Hadoop: reduction of phase completion at 50 %', 6.8, intervalOf(hadoop), {
      tolerance: 3,
      why: 'phases are generated from remembered shares',
    }),
    claim("Mantri's reduction at 50 % over Hadoop's", {
      paper: '3.1 times',
      got: `${times.toFixed(1)} times`,
      rule: 'from 2 to 4.5 times',
      kind: 'value',
      ok: times >= 2 && times <= 4.5,
    }),
    ...timeChecks(of),
    ...idealChecks(of, meansOf(even)),
    ...costChecks(of),
  ];
}

const paperMedian: Partial<Record<Scheme, number>> = { mantri: 21, hadoop: 6.8 };
const rowsOf = (input: Input, gains: Gains): Row[] =>
  [...gains].map(([scheme, each]) => ({
    input,
    scheme,
    paperP50: paperMedian[scheme] ?? null,
    ...gainCells(each),
  }));

async function run({ seeds }: ExperimentInput): Promise<Findings> {
  const gains = await gainsOver(seeds, 'skewed', policies);
  const even = await gainsOver(seeds, 'even', ['mantri', 'outrider']);
  const plot: Plot = {
    name: 'reduction',
    kind: 'lines',
    title: 'Reduction of phase completion against no copies',
    xLabel: 'percentile of phases',
    yLabel: 'reduction, %',
    series: [...gains]
      .filter(([scheme]) => scheme !== 'none')
      .map(([name, each]) => {
        const gain = meanGain(each);
        return {
          name,
          points: percentiles.map((p) => ({ x: Number(p.slice(1)), y: Math.round(gain[p] * 1_000) / 10 })),
        };
      }),
  };
  return {
    rows: [...rowsOf('skewed', gains), ...rowsOf('even', even)],
    checks: checksOf(gains, even),
    plots: [plot],
  };
}

/**
 * Mantri's restarts beside other schemes, on phases with Bing's waves, spread of input and outliers. The network and
 * recomputation are left out; progress is even, so that every estimator sees a slow attempt as slow at once.
 *
 * Source: Mantri §6.1, Fig. 13 to 15. Shares of outliers and spreads are the remembered ones of the ground truth,
 * §3.9, used for injection alone.
 */
export const mantriRestart: Experiment = {
  name: 'mantri-restart',
  title: 'Mantri: restarts against other schemes, phase by phase',
  source: 'Mantri §6.1, Fig. 13 to 15',
  defaultSeeds: 10,
  traces: [],
  host: 'hadoop',
  run,
};
