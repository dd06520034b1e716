import type { PolicyConfigInput } from '../contracts/policy-config.ts';
import { type TimedJob, withWork } from '../traces/generators/work.ts';
import type { Experiment, ExperimentInput, Findings, Plot, Row } from './experiment.ts';
import { facebookRates, shareByPhases, stragglerShare } from './facebook-calibration.ts';
import {
  admissionChecks,
  budgetChecks,
  type CalibrationDays,
  calibrationChecks,
  clusterChecks,
  type Comparison,
  gainChecks,
  ratioChecks,
  type Sweeps,
  tailChecks,
  whatIfChecks,
} from './facebook-checks.ts';
import {
  binRows,
  gainOf,
  jobGainRows,
  ratioRows,
  readingRows,
  type Runs,
  runsOf,
  sweepRow,
} from './facebook-tables.ts';
import {
  machineSlots,
  paperMachines,
  type Run,
  runOf,
  scaledMachines,
  smallJobsOf,
  sweepMs,
  tellingJobs,
  type Treatment,
  type Window,
  windowMs,
  windowOf,
} from './facebook-window.ts';

const late: Treatment = { name: 'LATE', policy: 'late' };
const treatments: readonly Treatment[] = [
  late,
  { name: 'Mantri', policy: 'mantri' },
  { name: 'Dolly, else LATE', policy: 'dolly', config: { dolly: { otherwise: 'late' } } },
  { name: 'Dolly, else Mantri', policy: 'dolly', config: { dolly: { otherwise: 'mantri' } } },
];
const comparisons: readonly Comparison[] = [
  { base: 'LATE', other: 'Dolly, else LATE', small: 0.46, all: 0.42 },
  { base: 'Mantri', other: 'Dolly, else Mantri', small: 0.44, all: 0.4 },
];
/** β. The paper's sweep, and what is too little for anything. */
const budgets = [0.001, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12] as const;
/** β of the paper, and of all but the sweep. */
const usualBudget = 0.05;
/** Besides all or nothing. */
const admissions = ['partial', 'first-come', 'preemption'] as const;
/** Days on which LATE alone is held to the calibration: always the same ones. */
const calibrationDays = Array.from({ length: 10 }, (_, day) => `calibration/${day}`);

/** Every treatment in every window, with the luck of the window's seed. */
async function runAll(windows: ReadonlyMap<string, Window>, each: readonly Treatment[]): Promise<Runs> {
  const runs = new Map<string, Run[]>(each.map(({ name }) => [name, []]));
  for (const [seed, window] of windows)
    for (const treatment of each) runs.get(treatment.name)?.push(await runOf(window, treatment, seed));
  return runs;
}

/** A window for every seed, by seed. */
const windowsOf = (
  jobs: readonly TimedJob[],
  seeds: readonly string[],
  lengthMs: number,
): ReadonlyMap<string, Window> => new Map(seeds.map((seed) => [seed, windowOf(jobs, seed, lengthMs)]));

async function calibrated(jobs: readonly TimedJob[], share: number): Promise<CalibrationDays> {
  const days: Run[] = [];
  for (const day of calibrationDays) days.push(await runOf(tellingJobs(jobs), { ...late, share }, day));
  return { share, days };
}

const dolly = (name: string, config: PolicyConfigInput['dolly']): Treatment => ({
  name,
  policy: 'dolly',
  config: { dolly: config },
});
const ofBudget = (share: number): string => `budget ${share}`;

/** β, and what is done where the budget does not suffice. */
async function sweep(windows: ReadonlyMap<string, Window>, machines: number): Promise<Sweeps> {
  const each = [
    late,
    ...budgets.map((budgetShare) => dolly(ofBudget(budgetShare), { budgetShare })),
    ...admissions.map((admission) => dolly(admission, { admission })),
  ];
  const runs = await runAll(
    windows,
    each.map((treatment) => ({ ...treatment, machines })),
  );
  return {
    machines,
    late: runsOf(runs, 'LATE'),
    budgets: new Map(budgets.map((share) => [share, runsOf(runs, ofBudget(share))])),
    admissions: new Map([
      ['all-or-nothing', runsOf(runs, ofBudget(usualBudget))],
      ...admissions.map((name): [string, readonly Run[]] => [name, runsOf(runs, name)]),
    ]),
  };
}

/** The paper's cluster, and one on which the budget is as scarce as on the paper's. */
const clusters = [paperMachines, scaledMachines] as const;

const sweepRows = (swept: Sweeps): Row[] => [
  ...[...swept.budgets].map(([share, runs]) => sweepRow('budget', share, runs, swept.late)),
  ...[...swept.admissions].map(([name, runs]) => sweepRow('admission', name, runs, swept.late)),
];

const budgetPlot = (each: readonly Sweeps[]): Plot => ({
  name: 'budget',
  kind: 'lines',
  title: 'Sooner than with LATE, by cloning budget',
  xLabel: 'β',
  yLabel: 'share of completion time',
  series: each.flatMap((swept) =>
    (
      [
        ['small', 1],
        ['all', undefined],
      ] as const
    ).map(([name, bin]) => ({
      name: `${name} jobs, ${swept.machines} machines`,
      points: [...swept.budgets].map(([x, runs]) => ({ x, y: gainOf(swept.late, runs, bin) })),
    })),
  ),
});

async function run({ seeds, traces }: ExperimentInput): Promise<Findings> {
  const jobs = (traces.get('swim') ?? []).map((job) => withWork(job, facebookRates));
  const at = await calibrated(jobs, stragglerShare);
  const below = await calibrated(jobs, stragglerShare - 0.01);
  const windows = windowsOf(jobs, seeds, windowMs);
  const runs = await runAll(windows, treatments);
  const readings = await runAll(
    new Map([...windows].map(([seed, window]) => [seed, smallJobsOf(window)])),
    treatments.map((treatment) => ({ ...treatment, share: shareByPhases })),
  );
  const swept: Sweeps[] = [];
  for (const machines of clusters) swept.push(await sweep(windowsOf(jobs, seeds, sweepMs), machines));
  return {
    rows: [
      ...binRows(runs),
      ...jobGainRows(runs, comparisons),
      ...ratioRows(runs),
      ...readingRows(readings, shareByPhases),
      ...swept.flatMap(sweepRows),
    ],
    checks: [
      ...tailChecks(jobs),
      ...calibrationChecks(jobs, at, below),
      ...whatIfChecks(runsOf(runs, 'LATE')),
      ...comparisons.flatMap((comparison) => [
        ...gainChecks(runs, comparison),
        ...ratioChecks(runs, comparison),
      ]),
      ...clusterChecks(runs, machineSlots, clusters),
      ...swept.flatMap((each) => [...budgetChecks(each), ...admissionChecks(each)]),
    ],
    plots: [budgetPlot(swept)],
  };
}

/**
 * Cloning of small jobs on the Facebook sample of 2009, against LATE and Mantri: by size of job, by cloning budget,
 * and by what is done where the budget does not suffice. Jobs of more than 10,000 tasks, two of 5,894, are left out of
 * the runs and counted with their work.
 *
 * Source: Dolly §5.2 to §5.5, Fig. 7, 8, 9, 15, 16. The trace tells bytes; times and stragglers are as said at
 * `stragglerShare`.
 */
export const dollyFacebook: Experiment = {
  name: 'dolly-facebook',
  title: 'Dolly: cloning small jobs of Facebook',
  source: 'Dolly §5.2 to §5.5, Fig. 7, 8, 9, 15, 16',
  defaultSeeds: 10,
  traces: ['swim'],
  host: 'hadoop',
  run,
};
