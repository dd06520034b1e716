import type { PolicySetName } from '../contracts/policy-config.ts';
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
] as const satisfies readonly PolicySetName[];
const schemes: readonly Scheme[] = ['none', ...policies, ...idealSchemes];
/** Gains closer than a point are taken as equal. */
const nearly = 0.01;

interface TraceGains {
  readonly format: TraceFormat;
  readonly stretch: number;
  readonly phases: number;
  readonly gains: ReadonlyMap<Scheme, readonly Gain[]>;
}

async function gainsOn(format: TraceFormat, { seeds, traces }: ExperimentInput): Promise<TraceGains> {
  const gains = new Map<Scheme, Gain[]>(schemes.map((scheme) => [scheme, []]));
  let [stretch, count] = [1, 0];
  for (const seed of seeds) {
    const found = tracePhases(format, traces.get(format) ?? [], {
      limits,
      rng: createRng(`${format}/${seed}`),
    });
    const comparison = await comparePhases(found.phases, policies);
    for (const scheme of schemes) gains.get(scheme)?.push(gainOf(comparison, scheme));
    stretch = found.stretch;
    count += found.phases.length;
  }
  return { format, stretch, phases: count, gains };
}

const percent = (value: number | undefined): string =>
  value === undefined ? '-' : `${(value * 100).toFixed(1)} %`;
const summary = ({ time, resources }: Gain): string =>
  `${percent(time)} time, ${percent(resources)} resources`;

/** The best single policy in time, and in resources; both need not be one. */
function bestOf(of: (scheme: Scheme) => Gain): {
  readonly time: PolicySetName;
  readonly resources: PolicySetName;
} {
  const singles = policies.filter((policy) => policy !== 'outrider');
  const best = (value: (gain: Gain) => number): PolicySetName =>
    singles.reduce<PolicySetName>(
      (first, each) => (value(of(each)) > value(of(first)) ? each : first),
      'mantri',
    );
  return { time: best(({ time }) => time), resources: best(({ resources }) => resources ?? -Infinity) };
}

function checksOf({ format, gains }: TraceGains): Check[] {
  const of = (scheme: Scheme): Gain => meanGain(gains.get(scheme) ?? []);
  const [mantri, late, hadoop, outrider] = [of('mantri'), of('late'), of('hadoop'), of('outrider')];
  const best = bestOf(of);
  const [fastest, leanest] = [of(best.time), of(best.resources)];
  return [
    claim(`${format}: Mantri against LATE`, {
      paper: 'faster, fewer resources',
      got: `${summary(mantri)} against ${summary(late)} less than none`,
      rule: 'both, by a point at worst',
      ok: mantri.time >= late.time - nearly && (mantri.resources ?? 0) >= (late.resources ?? 0) - nearly,
    }),
    claim(`${format}: LATE against Hadoop`, {
      paper: 'about as fast, fewer resources',
      got: `${summary(late)} against ${summary(hadoop)} less than none`,
      rule: 'time within 5 points, resources by a point at worst',
      ok: late.time >= hadoop.time - 0.05 && (late.resources ?? 0) >= (hadoop.resources ?? 0) - nearly,
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
    for (const [scheme, gains] of found.gains) {
      rows.push({
        trace: format,
        phases: found.phases,
        stretch: rounded(found.stretch),
        policy: scheme,
        ...gainCells(gains),
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
  defaultSeeds: 3,
  traces: formats,
  run,
};
