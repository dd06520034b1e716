import { cloneCount } from '../core/policy/dolly/clone-count.ts';
import { clonesInTime, straggleWithCac, straggleWithCc } from './clone-groups.ts';
import { type CloneModel, jobLevelStraggle, taskLevelStraggle } from './straggle-probability.ts';
import { claim, derived, exactly, same } from './checks.ts';
import { type CloneCounts, type CloneScheme, cloneSchemes, runClonedJobs } from './cloned-jobs.ts';
import {
  type Check,
  type Experiment,
  type ExperimentInput,
  type Findings,
  type Plot,
  type Row,
} from './experiment.ts';

const risk = 0.05;
const sizes = [1, 2, 5, 10, 20, 50, 100, 500, 1_000] as const;
/** Clones by p and n at ε = 5 %, worked out from the paper's formula (ground truth §4.1). */
const counts: readonly (readonly [number, readonly number[]])[] = [
  [0.01, [1, 1, 1, 2, 2, 2, 2, 2, 3]],
  [0.02, [1, 1, 2, 2, 2, 2, 2, 3, 3]],
  [0.05, [1, 2, 2, 2, 2, 3, 3, 4, 4]],
  [0.1, [2, 2, 2, 3, 3, 3, 4, 4, 5]],
  [0.2, [2, 3, 3, 4, 4, 5, 5, 6, 7]],
  [0.3, [3, 4, 4, 5, 5, 6, 7, 8, 9]],
];
const mostClones = 5;
/** Grid of simulated jobs, and how many of each scheme and seed. */
const grid = { p: [0.05, 0.1, 0.2], n: [1, 5, 10], c: [1, 2, 3] } as const;
const jobsPerSeed = 250;
/** Standard errors within which a frequency must lie, beyond which an honest formula falls once in 15,000 times. */
const errors = 4;

const sixDigits = (value: number): number => Math.round(value * 1e6) / 1e6;

const forms: Readonly<Record<CloneScheme, (model: CloneModel) => number>> = {
  job: jobLevelStraggle,
  task: taskLevelStraggle,
  CAC: straggleWithCac,
  CC: straggleWithCc,
};

/** A closed form beside the share of simulated jobs. */
interface Compared {
  readonly what: string;
  readonly formula: number;
  readonly seen: number;
  /** How far they are apart, in standard errors of the share, beyond one job. */
  readonly apart: number;
}

function comparison(what: string, formula: number, happened: number, jobs: number): Compared {
  const seen = happened / jobs;
  const error = Math.sqrt((formula * (1 - formula)) / jobs);
  const beyond = Math.max(0, Math.abs(seen - formula) - 1 / jobs);
  return { what, formula, seen, apart: beyond === 0 ? 0 : beyond / Math.max(error, 1e-12) };
}

/** All schemes of one model in the simulator, and of CAC for each d the share of jobs with d copies in time. */
async function simulated(model: CloneModel, seeds: readonly string[]): Promise<readonly Compared[]> {
  const compared: Compared[] = [];
  for (const scheme of cloneSchemes) {
    const runs: CloneCounts[] = [];
    for (const seed of seeds) runs.push(await runClonedJobs(scheme, model, jobsPerSeed, seed));
    const sum = (pick: (run: CloneCounts) => number): number => runs.reduce((all, run) => all + pick(run), 0);
    const jobs = sum((run) => run.jobs);
    compared.push(
      comparison(
        scheme,
        forms[scheme](model),
        sum(({ straggled }) => straggled),
        jobs,
      ),
    );
    for (const place of runs[0]?.inTime.keys() ?? []) {
      const happened = sum(({ inTime }) => inTime[place] ?? 0);
      compared.push(comparison(`Ψ${place + 1}`, clonesInTime(model, place + 1), happened, jobs));
    }
  }
  return compared;
}

const rowOf = (model: CloneModel, compared: readonly Compared[]): Row => ({
  p: model.stragglerProbability,
  n: model.tasks,
  c: model.clones,
  ...Object.fromEntries(
    compared.flatMap(({ what, formula, seen }) => [
      [what, sixDigits(formula)],
      [`${what}Simulated`, sixDigits(seen)],
    ]),
  ),
});

const at = (stragglerProbability: number, tasks: number, clones: number): CloneModel => ({
  stragglerProbability,
  tasks,
  clones,
});

function valueChecks(): Check[] {
  const clonesFor = (p: number): string =>
    sizes.map((tasks) => cloneCount({ tasks, stragglerProbability: p, straggleRisk: risk })).join(' ');
  return [
    ...counts.map(([p, expected]) =>
      same(`clones at p = ${p}, n = ${sizes.join(', ')}`, expected.join(' '), clonesFor(p)),
    ),
    exactly(
      'job-level cloning at p = 0.05, n = 10, c = 3',
      0.06461,
      Math.round(jobLevelStraggle(at(0.05, 10, 3)) * 1e5) / 1e5,
    ),
    exactly(
      'task-level cloning at p = 0.05, n = 10, c = 3',
      0.00125,
      Math.round(taskLevelStraggle(at(0.05, 10, 3)) * 1e5) / 1e5,
    ),
    exactly('CAC at p = 0.1, n = 10, c = 3', 0.232844, sixDigits(straggleWithCac(at(0.1, 10, 3)))),
    exactly('CC at p = 0.1, n = 10, c = 3', 0.019811, sixDigits(straggleWithCc(at(0.1, 10, 3)))),
  ];
}

/** Fig. 5: with three clones CAC straggles more often than CC "by over 10 % and 30 %" for ten and twenty tasks. */
function gapChecks(): Check[] {
  return (
    [
      [10, 0.1],
      [20, 0.3],
    ] as const
  ).map(([tasks, least]) => {
    const gap = straggleWithCac(at(0.08, tasks, 3)) - straggleWithCc(at(0.08, tasks, 3));
    return claim(`CAC straggles more often than CC: n = ${tasks}, three clones`, {
      paper: `over ${least * 100} %`,
      got: `${(gap * 100).toFixed(1)} points at p = 0.08`,
      rule: `over ${least * 100} points; p is chosen, since the paper does not tell it`,
      kind: 'side',
      ok: gap > least,
    });
  });
}

function plotOf(title: string, model: (clones: number) => CloneModel, shown: readonly CloneScheme[]): Plot {
  const clones = Array.from({ length: mostClones }, (_, index) => index + 1);
  return {
    name: title.toLowerCase().replaceAll(/[^a-z]+/g, '-'),
    kind: 'lines',
    title,
    xLabel: 'clones',
    yLabel: 'probability that the job straggles',
    series: shown.map((name) => ({ name, points: clones.map((c) => ({ x: c, y: forms[name](model(c)) })) })),
  };
}

async function run({ seeds }: ExperimentInput): Promise<Findings> {
  const models = grid.p.flatMap((p) => grid.n.flatMap((n) => grid.c.map((c) => at(p, n, c))));
  const rows: Row[] = [];
  const all: Compared[] = [];
  for (const model of models) {
    const compared = await simulated(model, seeds);
    rows.push(rowOf(model, compared));
    all.push(...compared);
  }
  const worst = Math.max(...all.map(({ apart }) => apart));
  return {
    rows,
    checks: [
      ...valueChecks().map(derived),
      ...gapChecks(),
      claim('closed forms against simulated jobs: job-level, task-level, CAC, CC, Ψ', {
        paper: 'equal',
        got: `${worst.toFixed(1)} standard errors at worst, of ${all.length} comparisons of ${jobsPerSeed * seeds.length} jobs`,
        rule: `within ${errors} standard errors`,
        ok: worst <= errors,
      }),
    ],
    plots: [
      plotOf('Job-level and task-level cloning', (clones) => at(0.05, 10, clones), ['job', 'task']),
      plotOf('Contention avoidance and contention', (clones) => at(0.08, 10, clones), ['CAC', 'CC']),
    ],
  };
}

/**
 * Dolly's closed forms: clone counts, cloning of jobs against tasks, straggling with and without contention; each
 * against jobs that production's scheduler runs in the simulator.
 *
 * Source: Dolly §3.1, §3.2 and §4.2 (eqs. 1 to 3, Fig. 3 and 5). Eq. 2 as corrected in `straggleWithCac`.
 */
export const dollyClosedForms: Experiment = {
  name: 'dolly-closed-forms',
  title: 'Dolly: clone counts and straggling probabilities',
  source: 'Dolly §3.1, §3.2, §4.2, Fig. 3, 5',
  defaultSeeds: 10,
  traces: [],
  host: 'hadoop',
  run,
};
