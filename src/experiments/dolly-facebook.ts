import type { PolicyConfigInput } from '../contracts/policy-config.ts';
import { ascending, mean, quantile } from '../lib/quantiles.ts';
import { HADOOP_2009_RATES, type TimedJob, withWork } from '../traces/generators/work.ts';
import type { TraceJob } from '../traces/trace-job.ts';
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
  calibration,
  heavyTail,
  type Run,
  runOf,
  slots,
  tellingJobs,
  type Treatment,
  windowMs,
  windowOf,
} from './facebook-window.ts';

const treatments: readonly Treatment[] = [
  { name: 'LATE', policy: 'late' },
  { name: 'Mantri', policy: 'mantri' },
  { name: 'Dolly, else LATE', policy: 'dolly', config: { dolly: { otherwise: 'late' } } },
  { name: 'Dolly, else Mantri', policy: 'dolly', config: { dolly: { otherwise: 'mantri' } } },
];
const budgets = [0.001, 0.005, 0.02, 0.03, 0.05, 0.08, 0.12] as const;
const admissions = ['partial', 'first-come'] as const;

/** (baseline − Dolly) / baseline. Source: Dolly §5; 0 of nothing. */
const sooner = (baseline: number | undefined, other: number | undefined): number =>
  baseline === undefined || other === undefined || baseline === 0 ? 0 : (baseline - other) / baseline;

const meanOf = (runs: readonly Run[], pick: (run: Run) => number | undefined): number =>
  mean(runs.flatMap((run) => pick(run) ?? [])) ?? 0;
const at = (values: readonly number[], share: number): number => quantile(ascending(values), share) ?? 0;
const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;

/** Runs of one treatment over all windows, by name of the treatment. */
type Runs = ReadonlyMap<string, readonly Run[]>;
const of = (runs: Runs, name: string): readonly Run[] => runs.get(name) ?? [];

function binRows(runs: Runs): Row[] {
  const bin = (name: string, index: number): number => meanOf(of(runs, name), ({ binS }) => binS[index]);
  return treatments.flatMap(({ name }) =>
    [1, 2, 3, 4].map((place): Row => {
      const mine = of(runs, name);
      return {
        table: 'bins',
        policy: name,
        slots,
        utilization: rounded(meanOf(mine, ({ utilization }) => utilization)),
        bin: place,
        jobs: mine.reduce((sum, { binJobs }) => sum + (binJobs[place - 1] ?? 0), 0),
        cloned: mine.reduce((sum, { cloned }) => sum + (cloned[place - 1] ?? 0), 0),
        meanS: rounded(bin(name, place - 1)),
        soonerThanLate: rounded(sooner(bin('LATE', place - 1), bin(name, place - 1))),
        soonerThanMantri: rounded(sooner(bin('Mantri', place - 1), bin(name, place - 1))),
      };
    }),
  );
}

function sweepRow(table: string, setting: string | number, run: Run, late: Run): Row {
  return {
    table,
    setting,
    slots,
    utilization: rounded(run.utilization),
    jobs: run.binJobs.reduce((sum, jobs) => sum + jobs, 0),
    cloned: run.cloned.reduce((sum, jobs) => sum + jobs, 0),
    bin1SoonerThanLate: rounded(sooner(late.binS[0], run.binS[0])),
    bin2SoonerThanLate: rounded(sooner(late.binS[1], run.binS[1])),
    allSoonerThanLate: rounded(sooner(late.allS, run.allS)),
  };
}

function tailChecks(jobs: readonly TimedJob[]): Check[] {
  const { smallShare, smallestWork } = heavyTail(jobs);
  return [
    claim('jobs of at most ten tasks, in the trace itself', {
      paper: '82 %',
      got: percent(smallShare),
      rule: 'most jobs',
      ok: smallShare > 0.6,
      kind: 'side',
    }),
    claim('work of the smallest 90 % of the jobs', {
      paper: '6 %',
      got: percent(smallestWork),
      rule: 'at most 11 %, as at Bing',
      ok: smallestWork <= 0.11,
      kind: 'side',
    }),
  ];
}

function gainChecks(runs: Runs): Check[] {
  const bin1 = (name: string): number => meanOf(of(runs, name), ({ binS }) => binS[0]);
  const slotsOf = (name: string): number =>
    of(runs, name).reduce((sum, { slotSeconds }) => sum + slotSeconds, 0);
  const pairs = [
    ['LATE', 'Dolly, else LATE', 0.46],
    ['Mantri', 'Dolly, else Mantri', 0.44],
  ] as const;
  const near = 0.1;
  return pairs.flatMap(([base, dolly, paper]) => {
    const gain = sooner(bin1(base), bin1(dolly));
    const more = slotsOf(base) === 0 ? 0 : slotsOf(dolly) / slotsOf(base) - 1;
    return [
      claim(`small jobs: sooner than with ${base}`, {
        paper: percent(paper),
        got: percent(gain),
        rule: 'within 10 points',
        ok: Math.abs(gain - paper) <= near,
        kind: 'value',
      }),
      claim(`small jobs: sooner than with ${base}, at the least`, {
        paper: '34 %',
        got: percent(gain),
        rule: 'at least that',
        ok: gain >= 0.34,
      }),
      claim(`slot time over ${base}'s`, {
        paper: 'under 5 % more',
        got: percent(more),
        rule: 'at most 5 %',
        ok: more <= 0.05,
      }),
    ];
  });
}

/** How far the slowest task of small jobs is behind: by name of the treatment, a ratio for each job and seed. */
type Ratios = ReadonlyMap<string, readonly number[]>;

const ratioRows = (ratios: Ratios): Row[] =>
  [...ratios].map(([policy, values]) => ({
    table: 'slowest over median',
    policy,
    slots,
    jobs: values.length,
    p50: rounded(at(values, 0.5)),
    p95: rounded(at(values, 0.95)),
  }));

function ratioChecks(jobs: readonly TimedJob[], ratios: Ratios): Check[] {
  const { median, meanOfStraggling } = calibration(jobs);
  const of = (name: string): string =>
    `${at(ratios.get(name) ?? [], 0.5).toFixed(2)}, 95th percentile ${at(ratios.get(name) ?? [], 0.95).toFixed(2)}`;
  return [
    claim('calibration: slowest over median original of small jobs, at the median', {
      paper: '6 to 8',
      got: `${median.toFixed(1)}; of whole tasks ${of('LATE')} with LATE`,
      rule: '6 to 8',
      ok: median >= 6 && median <= 8,
      kind: 'side',
    }),
    claim('calibration: the same, mean of jobs that straggle', {
      paper: '8',
      got: meanOfStraggling.toFixed(1),
      rule: 'within 1',
      ok: Math.abs(meanOfStraggling - 8) <= 1,
      kind: 'side',
    }),
    ...treatments.slice(2).flatMap(({ name }) => [
      claim(`small jobs: slowest over median task, ${name}`, {
        paper: '1.06, 95th percentile 1.17',
        got: of(name),
        rule: 'median at most 1.1',
        ok: at(ratios.get(name) ?? [], 0.5) <= 1.1,
      }),
      claim(`the same, 95th percentile, ${name}`, {
        paper: '1.17',
        got: of(name),
        rule: 'at most 1.2; not so with ε = 5 % for each phase, since jobs of two phases straggle more often than that',
        ok: at(ratios.get(name) ?? [], 0.95) <= 1.2,
        kind: 'value',
      }),
    ]),
  ];
}

/** The sweeps of one window: β, and what is done where the budget does not suffice. */
async function sweeps(
  jobs: readonly TimedJob[],
  seed: string,
): Promise<{ readonly rows: Row[]; readonly checks: Check[]; readonly plot: Plot }> {
  const window = windowOf(jobs, seed, windowMs / 2);
  const run = (treatment: Treatment): Promise<Run> => runOf(window, treatment, seed);
  const dolly = (config: PolicyConfigInput['dolly']): Promise<Run> =>
    run({ name: 'Dolly', policy: 'dolly', config: { dolly: config } });
  const late = await run({ name: 'LATE', policy: 'late' });
  const rows: Row[] = [];
  const gains = new Map<number, number>();
  for (const budgetShare of budgets) {
    const result = await dolly({ budgetShare });
    gains.set(budgetShare, sooner(late.binS[0], result.binS[0]));
    rows.push(sweepRow('budget', budgetShare, result, late));
  }
  for (const admission of admissions)
    rows.push(sweepRow('admission', admission, await dolly({ admission }), late));
  const gain = (share: number): number => gains.get(share) ?? 0;
  return {
    rows,
    checks: [
      claim('small jobs: β beyond 5 %', {
        paper: 'flat',
        got: `${percent(gain(0.05))} at 5 %, ${percent(gain(0.12))} at 12 %`,
        rule: 'within 5 points',
        ok: Math.abs(gain(0.12) - gain(0.05)) <= 0.05,
      }),
      claim('small jobs: with hardly any budget', {
        paper: 'collapses under 2 %',
        got: `${percent(gain(0.001))} at 0.1 %, ${percent(gain(0.02))} at 2 %, ${percent(gain(0.05))} at 5 %`,
        rule: 'the gain at 0.1 % is under half of that at 5 %',
        ok: gain(0.001) < gain(0.05) / 2,
      }),
    ],
    plot: {
      name: 'budget',
      kind: 'lines',
      title: 'Small jobs: sooner than with LATE, by cloning budget',
      xLabel: 'β',
      yLabel: 'share of completion time',
      series: [{ name: 'Dolly', points: [...gains].map(([x, y]) => ({ x, y })) }],
    },
  };
}

async function run({ seeds, traces }: ExperimentInput): Promise<Findings> {
  const jobs = (traces.get('swim') ?? []).map((job: TraceJob) => withWork(job, HADOOP_2009_RATES));
  const runs = new Map<string, Run[]>();
  const ratios = new Map<string, readonly number[]>();
  for (const seed of seeds) {
    const window = windowOf(jobs, seed, windowMs);
    for (const treatment of treatments) {
      const before = runs.get(treatment.name) ?? [];
      runs.set(treatment.name, [...before, await runOf(window, treatment, seed)]);
      const telling = await runOf(tellingJobs(jobs), treatment, seed);
      ratios.set(treatment.name, [...(ratios.get(treatment.name) ?? []), ...telling.ratios]);
    }
  }
  const swept = await sweeps(jobs, seeds[0] ?? '');
  return {
    rows: [...binRows(runs), ...ratioRows(ratios), ...swept.rows],
    checks: [...tailChecks(jobs), ...gainChecks(runs), ...ratioChecks(jobs, ratios), ...swept.checks],
    plots: [swept.plot],
  };
}

/**
 * Cloning of small jobs on the Facebook sample of 2009, against LATE and Mantri: by size of job, by cloning budget,
 * and by what is done where the budget does not suffice.
 *
 * Source: Dolly §5.2 to §5.5, Fig. 7, 9, 15, 16. The trace tells bytes; times are by Hadoop's rates of 2009, and
 * stragglers are injected as said at their constants.
 */
export const dollyFacebook: Experiment = {
  name: 'dolly-facebook',
  title: 'Dolly: cloning small jobs of Facebook',
  source: 'Dolly §5.2 to §5.5, Fig. 7, 9, 15, 16',
  defaultSeeds: 1,
  traces: ['swim'],
  run,
};
