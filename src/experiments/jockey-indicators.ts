import { completionTable, remainingMs } from '../core/forecast/completion-table.ts';
import type { JobProfile } from '../core/forecast/job-profile.ts';
import {
  type IndicatorBasis,
  progressIndicator,
  type ProgressIndicatorName,
  progressIndicatorNames,
} from '../core/forecast/progress-indicators.ts';
import { RunSimulator } from '../core/forecast/run-simulator.ts';
import { stageTotals } from '../core/forecast/stage-totals.ts';
import { ascending } from '../lib/quantiles.ts';
import { createRng, type Rng } from '../lib/rng.ts';
import {
  drawTimes,
  jockeyJob,
  jockeyJobNames,
  type SyntheticStage,
} from '../traces/generators/jockey-jobs.ts';
import { claim, within } from './checks.ts';
import {
  type Check,
  type Experiment,
  type ExperimentInput,
  type Findings,
  intervalFor,
  intervalText,
  rounded,
} from './experiment.ts';
import { spansOf } from './stage-spans.ts';

/** The paper's table: mean |T_t − T_(t+1)| and the longest time without change, as shares of the job's duration. */
const paper: Readonly<Record<ProgressIndicatorName, readonly [number, number]>> = {
  totalworkWithQ: [0.02, 0.085],
  totalwork: [0.023, 0.093],
  vertexfrac: [0.022, 0.101],
  cp: [0.03, 0.152],
  minstage: [0.033, 0.199],
  'minstage-inf': [0.039, 0.267],
};
/** The control loop's period. */
const minuteMs = 60_000;
/** The jobs' median allocation in the paper (Fig. 11): 52.9. */
const slots = 53;
/** How far a figure may be from the paper's, as a share of it: other graphs, and an allocation that stays. */
const tolerance = 0.5;
const tableRuns = 30;
const judgedRuns = 3;
/** Queueing times of the training run and of two later ones of job F: median and 90th percentile (Table 3), in ms. */
const trainedQueue = { medianMs: 5_800, p90Ms: 8_400 };
const laterQueue = { medianMs: 6_850, p90Ms: 11_500 };
/** By how much all of a run's tasks take longer or shorter: standard deviation of the logarithm (Table 1, the middle job). */
const runNoise = 0.28;

type Figure = 'deltaT' | 'constant';
type Figures = Readonly<Record<Figure, number>>;

/** A profile of one run whose task times are drawn anew, all `factor` times as long. */
function drawnProfile(
  stages: readonly SyntheticStage[],
  queue: { readonly medianMs: number; readonly p90Ms: number },
  { factor, rng }: { factor: number; rng: Rng },
): JobProfile {
  const queueTimes: SyntheticStage = {
    tasks: 500,
    medianMs: queue.medianMs,
    sigma: Math.log(queue.p90Ms / queue.medianMs) / 1.2815515655446004,
    mostMs: Infinity,
    inputs: [],
  };
  return {
    stages: stages.map((stage, index) => ({
      name: `stage-${index}`,
      tasks: stage.tasks,
      inputs: stage.inputs,
      runs: [
        {
          slots: 1,
          times: { cold: [], first: [], later: ascending(drawTimes(stage, rng).map((ms) => ms * factor)) },
        },
      ],
      queueMs: ascending(drawTimes(queueTimes, rng)),
      failureShare: 0,
    })),
  };
}

/** What the control loop would have seen of a run, minute by minute. */
function watch(
  truth: JobProfile,
  look: (fractions: readonly number[]) => { readonly progress: number; readonly leftMs: number },
  rng: Rng,
): Figures {
  const seen: { readonly progress: number; readonly endsAtMs: number }[] = [];
  const endMs = new RunSimulator(truth).run(slots, rng, {
    everyMs: minuteMs,
    visit: (atMs, finished) => {
      const { progress, leftMs } = look(
        truth.stages.map(({ tasks }, stage) => (finished[stage] ?? 0) / tasks),
      );
      seen.push({ progress, endsAtMs: atMs + leftMs });
    },
  });
  let moved = 0;
  let constant = 0;
  let longest = 0;
  for (const [at, { progress, endsAtMs }] of seen.entries()) {
    const before = seen[at - 1];
    if (before === undefined) continue;
    moved += Math.abs(endsAtMs - before.endsAtMs);
    constant = progress === before.progress ? constant + minuteMs : 0;
    longest = Math.max(longest, constant);
  }
  return { deltaT: moved / Math.max(1, seen.length - 1) / endMs, constant: longest / endMs };
}

/** Each indicator on runs of one job that its profile has not seen. */
function judge(stages: readonly SyntheticStage[], rng: Rng): ReadonlyMap<ProgressIndicatorName, Figures[]> {
  const profile = drawnProfile(stages, trainedQueue, { factor: 1, rng: rng.fork('training') });
  const tasks = stages.reduce((sum, stage) => sum + stage.tasks, 0);
  const basis: IndicatorBasis = {
    totals: stageTotals(profile, slots),
    tasks: stages.map((stage) => stage.tasks),
    spans: spansOf(profile, slots, rng.fork('spans')),
    unlimitedSpans: spansOf(profile, tasks, rng.fork('unlimited spans')),
  };
  return new Map(
    progressIndicatorNames.map((name) => {
      const indicator = progressIndicator(name, basis);
      const table = completionTable(profile, {
        indicator,
        slots: [slots],
        runs: tableRuns,
        rng: rng.fork('table'),
      });
      const look = (fractions: readonly number[]): { progress: number; leftMs: number } => {
        const progress = indicator(fractions);
        return { progress, leftMs: remainingMs(table, { progress, slots, statistic: 'worst' }) };
      };
      const runs = Array.from({ length: judgedRuns }, (_, run) => {
        const own = rng.fork(`run ${run}`);
        const factor = Math.exp(runNoise * (own.next() + own.next() + own.next() - 1.5) * 2);
        return watch(drawnProfile(stages, laterQueue, { factor, rng: own }), look, own.fork('run'));
      });
      return [name, runs];
    }),
  );
}

function checksOf(found: ReadonlyMap<ProgressIndicatorName, readonly Figures[]>): Check[] {
  const means = (figure: Figure): Map<ProgressIndicatorName, number> =>
    new Map(progressIndicatorNames.map((name) => [name, intervalFor(found, name, figure).mean]));
  const told = (of: ReadonlyMap<ProgressIndicatorName, number>): string =>
    [...of].map(([name, share]) => `${name} ${(share * 100).toFixed(1)} %`).join(', ');
  const check = (figure: Figure, place: 0 | 1, what: string): Check[] => {
    const got = means(figure);
    const by = (names: readonly ProgressIndicatorName[]): number[] => names.map((name) => got.get(name) ?? 0);
    const best = Math.min(...got.values());
    const stated = new Map(progressIndicatorNames.map((name) => [name, paper[name][place]]));
    return [
      claim(`${what}: the best`, {
        paper: told(stated),
        got: told(got),
        rule: 'totalworkWithQ is the least, or within a tenth of it',
        ok: (got.get('totalworkWithQ') ?? Infinity) <= best * 1.1,
      }),
      claim(`${what}: by tasks against by the slowest stage`, {
        paper: 'at most 2.3 % against at least 3 %; at most 10.1 % against at least 15.2 %',
        got: told(got),
        rule: 'each of the first three is below each of the last three',
        ok:
          Math.max(...by(['totalworkWithQ', 'totalwork', 'vertexfrac'])) <
          Math.min(...by(['cp', 'minstage', 'minstage-inf'])),
      }),
      ...progressIndicatorNames.map((name) =>
        within(
          `${what}: ${name}, in per cent`,
          rounded(paper[name][place] * 100),
          percentOf(intervalFor(found, name, figure)),
          {
            tolerance: paper[name][place] * 100 * tolerance,
            why: 'half of it: other graphs, and an allocation that stays',
            mostNoise: 0,
          },
        ),
      ),
    ];
  };
  return [
    ...check('deltaT', 0, 'mean change of the end foretold'),
    ...check('constant', 1, 'longest time without progress'),
  ];
}

/** The mean of a seed's runs: they share their jobs' graphs, profiles and tables, and so count as one. */
function meanOf(runs: readonly Figures[]): Figures {
  const mean = (figure: Figure): number =>
    runs.reduce((sum, each) => sum + each[figure], 0) / Math.max(1, runs.length);
  return { deltaT: mean('deltaT'), constant: mean('constant') };
}

async function run({ seeds }: ExperimentInput): Promise<Findings> {
  const found = new Map<ProgressIndicatorName, Figures[]>(progressIndicatorNames.map((name) => [name, []]));
  for (const seed of seeds) {
    const judged = jockeyJobNames.map((job) => {
      const rng = createRng(`jockey-indicators/${seed}/${job}`);
      return judge(jockeyJob(job, rng.fork('job')), rng);
    });
    for (const [name, means] of found)
      means.push(meanOf(judged.flatMap((figures) => figures.get(name) ?? [])));
  }
  const rows = progressIndicatorNames.map((name) => ({
    indicator: name,
    deltaT: intervalText(percentOf(intervalFor(found, name, 'deltaT'))),
    longestConstant: intervalText(percentOf(intervalFor(found, name, 'constant'))),
    paperDeltaT: rounded(paper[name][0] * 100),
    paperLongestConstant: rounded(paper[name][1] * 100),
  }));
  return Promise.resolve({ rows, checks: checksOf(found) });
}

const percentOf = ({ mean, low, high }: ReturnType<typeof intervalFor>): ReturnType<typeof intervalFor> => ({
  mean: mean * 100,
  low: low * 100,
  high: high * 100,
});

/**
 * How well progress indicators index what is left of a job: the seven jobs, each profiled by one run, and looked at each
 * minute in runs on the paper's median allocation whose work and queueing are others; all in per cent of the job's duration.
 *
 * Source: Jockey, §5.4 and Fig. 10.
 */
export const jockeyIndicators: Experiment = {
  name: 'jockey-indicators',
  title: 'progress indicators: how much the end foretold changes, and how long they stand still',
  source: 'Jockey, §5.4, Fig. 10',
  defaultSeeds: 10,
  traces: [],
  run,
};
