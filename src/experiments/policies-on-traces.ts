import { mean } from '../lib/quantiles.ts';
import { createRng } from '../lib/rng.ts';
import type { TraceFormat } from '../traces/trace-formats.ts';
import { claim } from './checks.ts';
import {
  type Check,
  type Experiment,
  type ExperimentInput,
  type Findings,
  type Plot,
  type Row,
  rounded,
} from './experiment.ts';
import {
  comparePhases,
  type Compared,
  type Gain,
  gainCells,
  gainOf,
  idealSchemes,
  meanGain,
  type Scheme,
} from './phase-comparison.ts';
import { type PhaseLimits, tracePhases } from './trace-phases.ts';

const limits: PhaseLimits = { phases: 12, leastTasks: 10, mostTasks: 150 };
const formats = [
  'rumen',
  'spark',
  'tpch',
  'hawk',
  'swim',
  'alibaba',
] as const satisfies readonly TraceFormat[];
const policies = [
  'hadoop',
  'dryad',
  'mapreduce',
  'late',
  'early-late',
  'mantri',
  'dolly',
  'spark',
  'hadoop2',
  'flink',
  'cubed',
  'outrider',
] as const satisfies readonly Compared[];
const schemes: readonly Scheme[] = ['none', ...policies, ...idealSchemes];
/** Gains closer than a point are taken as equal. */
const nearly = 0.01;

interface TraceGains {
  readonly format: TraceFormat;
  /** Means over seeds and phases. */
  readonly stretch: number;
  readonly slots: number;
  readonly phases: number;
  readonly gains: ReadonlyMap<Scheme, readonly Gain[]>;
}

async function gainsOn(format: TraceFormat, { seeds, traces }: ExperimentInput): Promise<TraceGains> {
  const gains = new Map<Scheme, Gain[]>(schemes.map((scheme) => [scheme, []]));
  const stretches: number[] = [];
  const slots: number[] = [];
  for (const seed of seeds) {
    const found = tracePhases(format, traces.get(format) ?? [], {
      limits,
      rng: createRng(`${format}/${seed}`),
    });
    const comparison = await comparePhases(found.phases, policies);
    for (const scheme of schemes) gains.get(scheme)?.push(gainOf(comparison, scheme));
    stretches.push(found.stretch);
    slots.push(...found.phases.map((phase) => phase.slots));
  }
  return { format, stretch: mean(stretches) ?? 1, slots: mean(slots) ?? 0, phases: slots.length, gains };
}

const percent = (value: number | undefined): string =>
  value === undefined ? '-' : `${(value * 100).toFixed(1)} %`;
const summary = ({ time, resources }: Gain): string =>
  `${percent(time)} time, ${percent(resources)} resources`;

/** The best single policy in time, and in resources; both need not be one. */
function bestOf(of: (scheme: Scheme) => Gain): {
  readonly time: Compared;
  readonly resources: Compared;
} {
  const singles = policies.filter((policy) => policy !== 'outrider');
  const best = (value: (gain: Gain) => number): Compared =>
    singles.reduce<Compared>((first, each) => (value(of(each)) > value(of(first)) ? each : first), 'mantri');
  return { time: best(({ time }) => time), resources: best(({ resources }) => resources ?? -Infinity) };
}

/** LATE copies the slowest quarter of what runs, however even; native only what falls a fifth behind the mean. */
const whyNotLeaner = (late: Gain, hadoop: Gain): string =>
  `; not leaner here: tasks are even, of which LATE copies the slowest quarter (${late.copiesPerTask.toFixed(3)} copies a task) and native those a fifth behind the mean (${hadoop.copiesPerTask.toFixed(3)})`;

/** Mantri foretells by bytes over time. */
const whyMantriIsBehind = (mantri: Gain, late: Gain): string =>
  `; it takes progress to be even, and here a third of the phases read all in the first 30 % of their work and a third are slow at first: ${mantri.copiesPerTask.toFixed(2)} copies a task, LATE ${late.copiesPerTask.toFixed(2)}`;

/** Single policies that are ahead of a policy by more than a point, in time or in resources; `-` if none is. */
function aheadOf(policy: Scheme, of: (scheme: Scheme) => Gain): string {
  const own = of(policy);
  const ahead = policies.filter((each) => {
    const other = of(each);
    return (
      each !== 'outrider' &&
      (other.time > own.time + nearly || (other.resources ?? -Infinity) > (own.resources ?? 0) + nearly)
    );
  });
  return ahead.length === 0 ? '-' : ahead.join(' ');
}

function checksOf({ format, gains }: TraceGains): Check[] {
  const of = (scheme: Scheme): Gain => meanGain(gains.get(scheme) ?? []);
  const [mantri, late, hadoop, outrider] = [of('mantri'), of('late'), of('hadoop'), of('outrider')];
  const best = bestOf(of);
  const [fastest, leanest] = [of(best.time), of(best.resources)];
  const isLeaner = (late.resources ?? 0) > (hadoop.resources ?? 0);
  const isMantriAhead = mantri.time > late.time && (mantri.resources ?? 0) > (late.resources ?? 0);
  return [
    claim(`${format}: Mantri against LATE`, {
      paper: 'faster, fewer resources',
      got: `${summary(mantri)} against ${summary(late)} less than none`,
      rule: `both${isMantriAhead ? '' : whyMantriIsBehind(mantri, late)}`,
      ok: isMantriAhead,
    }),
    claim(`${format}: LATE against Hadoop`, {
      paper: 'about as fast, fewer resources',
      got: `${summary(late)} against ${summary(hadoop)} less than none`,
      rule: `fewer resources, time within a point: stragglers are drawn by attempt here, so that LATE's slow nodes, which make it faster in late-mixes, gain nothing${isLeaner ? '' : whyNotLeaner(late, hadoop)}`,
      ok: late.time >= hadoop.time - nearly && isLeaner,
    }),
    claim(`${format}: outrider against the best single policies`, {
      paper: 'not in the papers',
      kind: 'side',
      rule: 'not worse than the fastest in time, nor than the leanest in resources, by a point',
      got: `${summary(outrider)}; ${best.time} ${summary(fastest)}; ${best.resources} ${summary(leanest)}`,
      ok:
        outrider.time >= fastest.time - nearly &&
        (outrider.resources ?? 0) >= (leanest.resources ?? 0) - nearly,
    }),
  ];
}

async function run(input: ExperimentInput): Promise<Findings> {
  const rows: Row[] = [];
  const checks: Check[] = [];
  const series = policies.map((name) => ({ name, points: [] as { x: string; y: number }[] }));
  for (const format of formats) {
    const found = await gainsOn(format, input);
    const of = (scheme: Scheme): Gain => meanGain(found.gains.get(scheme) ?? []);
    for (const [scheme, gains] of found.gains) {
      rows.push({
        trace: format,
        phases: found.phases,
        slots: rounded(found.slots),
        stretch: rounded(found.stretch),
        policy: scheme,
        ...gainCells(gains),
        aheadOfOutrider: scheme === 'outrider' ? aheadOf(scheme, of) : null,
      });
    }
    checks.push(...checksOf(found));
    for (const each of series)
      each.points.push({
        x: format,
        y: Math.round(meanGain(found.gains.get(each.name) ?? []).time * 1_000) / 10,
      });
  }
  const plot: Plot = {
    name: 'time',
    kind: 'bars',
    title: 'Less time than without copies, all phases',
    xLabel: '',
    yLabel: 'reduction, %',
    series,
  };
  return { rows, checks, plots: [plot] };
}

/**
 * Every policy on phases of the public traces, with the distance to one who knows how long each attempt takes.
 *
 * Source: the scheme of Mantri §6.1 on public traces; the papers' own are not public.
 */
export const policiesOnTraces: Experiment = {
  name: 'policies-on-traces',
  title: 'every policy on phases of the public traces',
  source: 'as Mantri §6.1, on public traces',
  defaultSeeds: 10,
  traces: formats,
  host: 'hadoop',
  run,
};
