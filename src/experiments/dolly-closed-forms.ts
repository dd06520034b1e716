import { cloneCount } from '../core/policy/dolly/clone-count.ts';
import { straggleWithCac, straggleWithCc } from '../core/policy/dolly/clone-groups.ts';
import {
  type CloneModel,
  jobLevelStraggle,
  taskLevelStraggle,
} from '../core/policy/dolly/straggle-probability.ts';
import { createRng, type Rng } from '../lib/rng.ts';
import { claim, exactly, same } from './checks.ts';
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
const jobsPerSeed = 5_000;
/** Standard errors within which a frequency must lie, beyond which an honest formula falls once in 15,000 times. */
const errors = 4;

const sixDigits = (value: number): number => Math.round(value * 1e6) / 1e6;

/** Copies of each task that do not straggle. */
const inTime = ({ tasks, clones, stragglerProbability }: CloneModel, rng: Rng): number[] =>
  Array.from({ length: tasks }, () => {
    let count = 0;
    for (let copy = 0; copy < clones; copy++) if (rng.next() >= stragglerProbability) count += 1;
    return count;
  });

/** Whether a job straggles, every copy drawn. */
const drawn: Readonly<Record<'job' | 'task' | 'CAC' | 'CC', (model: CloneModel, rng: Rng) => boolean>> = {
  job: ({ tasks, clones, stragglerProbability }, rng) => {
    const copies = Array.from({ length: clones }, () =>
      Array.from({ length: tasks }, () => rng.next() < stragglerProbability),
    );
    return copies.every((copy) => copy.includes(true));
  },
  task: (model, rng) => inTime(model, rng).includes(0),
  // Downstream copies of a task have sources up to the number that the least upstream task has in time.
  CAC: (model, rng) => {
    const least = Math.min(...inTime(model, rng));
    return least === 0 || inTime({ ...model, clones: least }, rng).includes(0);
  },
  CC: (model, rng) => inTime(model, rng).includes(0) || inTime(model, rng).includes(0),
};
const forms = {
  job: jobLevelStraggle,
  task: taskLevelStraggle,
  CAC: straggleWithCac,
  CC: straggleWithCc,
} as const;
const kinds = ['job', 'task', 'CAC', 'CC'] as const;

function frequency(kind: (typeof kinds)[number], model: CloneModel, seeds: readonly string[]): number {
  let straggled = 0;
  for (const seed of seeds) {
    const rng = createRng(`${seed}/${kind}/${JSON.stringify(model)}`);
    for (let job = 0; job < jobsPerSeed; job++) if (drawn[kind](model, rng)) straggled += 1;
  }
  return straggled / (seeds.length * jobsPerSeed);
}

/** Each closed form beside the share of drawn jobs that straggle. */
function compare(model: CloneModel, seeds: readonly string[]): { readonly row: Row; readonly worst: number } {
  const row: Record<string, number> = { p: model.stragglerProbability, n: model.tasks, c: model.clones };
  let worst = 0;
  for (const kind of kinds) {
    const formula = forms[kind](model);
    const seen = frequency(kind, model, seeds);
    const error = Math.sqrt((formula * (1 - formula)) / (seeds.length * jobsPerSeed));
    const off = Math.abs(seen - formula) - 1 / (seeds.length * jobsPerSeed);
    worst = Math.max(worst, error === 0 ? 0 : off / error);
    row[kind] = sixDigits(formula);
    row[`${kind}Drawn`] = sixDigits(seen);
  }
  return { row, worst };
}

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
      rule: `over ${least * 100} points`,
      ok: gap > least,
    });
  });
}

function plotOf(
  title: string,
  model: (clones: number) => CloneModel,
  shown: readonly (typeof kinds)[number][],
): Plot {
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

function run({ seeds }: ExperimentInput): Promise<Findings> {
  const models = [0.05, 0.08, 0.1].flatMap((p) =>
    [10, 20].flatMap((n) => Array.from({ length: mostClones }, (_, index) => at(p, n, index + 1))),
  );
  const compared = models.map((model) => compare(model, seeds));
  const worst = Math.max(...compared.map((each) => each.worst));
  return Promise.resolve({
    rows: compared.map(({ row }) => row),
    checks: [
      ...valueChecks(),
      ...gapChecks(),
      claim('closed forms against drawing every copy', {
        paper: 'equal',
        got: `${worst.toFixed(1)} standard errors at worst, of ${compared.length * kinds.length} comparisons`,
        rule: `within ${errors} standard errors`,
        ok: worst <= errors,
      }),
    ],
    plots: [
      plotOf('Job-level and task-level cloning', (clones) => at(0.05, 10, clones), ['job', 'task']),
      plotOf('Contention avoidance and contention', (clones) => at(0.08, 10, clones), ['CAC', 'CC']),
    ],
  });
}

/**
 * Dolly's closed forms: clone counts, cloning of jobs against tasks, straggling with and without contention.
 *
 * Source: Dolly §3.1, §3.2 and §4.2 (eqs. 1 to 3, Fig. 3 and 5). Eq. 2 as corrected in `straggleWithCac`.
 */
export const dollyClosedForms: Experiment = {
  name: 'dolly-closed-forms',
  title: 'Dolly: clone counts and straggling probabilities',
  source: 'Dolly §3.1, §3.2, §4.2, Fig. 3, 5',
  defaultSeeds: 2,
  traces: [],
  run,
};
