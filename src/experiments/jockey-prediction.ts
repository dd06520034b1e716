import { amdahlRemainingMs } from '../core/forecast/amdahl.ts';
import type { JobProfile } from '../core/forecast/job-profile.ts';
import { RunSimulator } from '../core/forecast/run-simulator.ts';
import { stageTotals } from '../core/forecast/stage-totals.ts';
import { mean } from '../lib/quantiles.ts';
import { createRng, type Rng } from '../lib/rng.ts';
import { completionMsOf } from '../sim/metrics.ts';
import { parseScenario } from '../sim/scenario.ts';
import { simulate } from '../sim/simulate.ts';
import type { TraceJob } from '../traces/trace-job.ts';
import { claim } from './checks.ts';
import { type Check, type Experiment, type ExperimentInput, type Findings, rounded } from './experiment.ts';
import { profileOfRuns, type RecordedRun } from './profile-of-trace.ts';
import { tpchCounts, type TraceName } from './trace-names.ts';

const countOfTpch = 20;
const counts: readonly number[] = [...tpchCounts, countOfTpch].toSorted((a, b) => a - b);
const nameOf = (count: number): TraceName =>
  count === countOfTpch ? 'tpch' : (`tpch-${count}` as TraceName);
/** Simulated runs of a prediction. */
const runsEach = 10;
/** Mean error that the paper states for its simulator, and for Amdahl's law (§5.3, Fig. 8). */
const paperSimulator = 0.098;
const paperAmdahl = 0.118;

/** Errors of one query's predictions for a count, as shares of the time it took. */
interface Errors {
  readonly count: number;
  readonly tookS: number;
  /** Profiled from all other counts. */
  readonly simulator: number;
  readonly amdahl: number;
  /** Profiled from one other count, the mean over those. */
  readonly fromOne: number;
  readonly amdahlFromOne: number;
}

/** How long a recorded run takes by itself on its slots: production's scheduler without copies, slots handed on at once. */
async function timeOf({ slots, job }: RecordedRun, seed: string): Promise<number> {
  const scenario = parseScenario({
    name: 'jockey-prediction',
    cluster: { nodes: [{ count: slots }], startMs: 0 },
    scheduler: { wakeOnEnd: true },
    jobs: [
      {
        policy: 'none',
        arrivals: { kind: 'list', atMs: [0] },
        stages: job.stages.map(({ tasks, upstream }, index) => ({
          name: `s${index}`,
          tasks: tasks.length,
          upstream: upstream.map((stage) => `s${stage}`),
          workMs: tasks.map(({ workMs = 0 }) => Math.max(1, Math.round(workMs))),
        })),
      },
    ],
  });
  const { jobs } = await simulate(scenario, { seed });
  return mean(jobs.map(completionMsOf)) ?? 0;
}

function predicted(profile: JobProfile, slots: number, rng: Rng): number {
  const simulator = new RunSimulator(profile);
  return mean(Array.from({ length: runsEach }, () => simulator.run(slots, rng))) ?? 0;
}

const byAmdahl = (profile: JobProfile, slots: number): number =>
  amdahlRemainingMs(
    stageTotals(profile, slots),
    profile.stages.map(() => 0),
    slots,
  );

async function errorsOf(runs: readonly RecordedRun[], seed: string): Promise<Errors[]> {
  const rng = createRng(`jockey-prediction/${seed}`);
  const found: Errors[] = [];
  for (const run of runs) {
    const took = await timeOf(run, seed);
    const errorOf = (ms: number): number => Math.abs(ms - took) / took;
    const others = runs.filter((other) => other !== run);
    const merged = profileOfRuns(others);
    const single = others.map((other) => profileOfRuns([other]));
    found.push({
      count: run.slots,
      tookS: took / 1_000,
      simulator: errorOf(predicted(merged, run.slots, rng)),
      amdahl: errorOf(byAmdahl(merged, run.slots)),
      fromOne: mean(single.map((profile) => errorOf(predicted(profile, run.slots, rng)))) ?? 0,
      amdahlFromOne: mean(single.map((profile) => errorOf(byAmdahl(profile, run.slots)))) ?? 0,
    });
  }
  return found;
}

type Figure = Exclude<keyof Errors, 'count'>;
const meanOf = (found: readonly Errors[], figure: Figure): number =>
  mean(found.map((errors) => errors[figure])) ?? 0;
const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;

function checksOf(found: readonly Errors[]): Check[] {
  const simulator = meanOf(found, 'simulator');
  const amdahl = meanOf(found, 'amdahl');
  const at = (count: number): readonly Errors[] => found.filter((errors) => errors.count === count);
  const few = counts.filter((count) => count <= 10).flatMap(at);
  const many = counts.filter((count) => count >= 60).flatMap(at);
  return [
    claim('mean error of the simulator, the count left out', {
      paper: percent(paperSimulator),
      got: percent(simulator),
      rule: `at most ${percent(paperSimulator)}`,
      ok: simulator <= paperSimulator,
    }),
    claim("the simulator against Amdahl's law", {
      paper: `${percent(paperSimulator)} against ${percent(paperAmdahl)}`,
      got: `${percent(simulator)} against ${percent(amdahl)}`,
      rule: 'the simulator is nearer',
      ok: simulator < amdahl,
    }),
    claim("Amdahl's law on few slots and on many", {
      paper: 'bad at low allocations, good at high ones',
      got: `${percent(meanOf(few, 'amdahl'))} on 2 to 10, ${percent(meanOf(many, 'amdahl'))} on 60 to 100`,
      rule: 'a larger error on few',
      kind: 'side',
      ok: meanOf(few, 'amdahl') > meanOf(many, 'amdahl'),
    }),
  ];
}

/** Each seed takes its share of the queries, so that all seeds together take each once. */
async function run({ seeds, traces }: ExperimentInput): Promise<Findings> {
  const found: Errors[] = [];
  const queries = traces.get('tpch') ?? [];
  for (const [place, seed] of seeds.entries()) {
    for (const { id } of queries.filter((_, index) => index % shares === place % shares)) {
      const runs = counts.flatMap((slots) => {
        const job = traces.get(nameOf(slots))?.find((other: TraceJob) => other.id === id);
        return job === undefined ? [] : [{ slots, job }];
      });
      found.push(...(await errorsOf(runs, seed)));
    }
  }
  const rows = counts.map((count) => {
    const own = found.filter((errors) => errors.count === count);
    const figure = (name: Figure): number => rounded(meanOf(own, name));
    return {
      slots: count,
      queries: own.length,
      meanS: figure('tookS'),
      simulatorError: figure('simulator'),
      amdahlError: figure('amdahl'),
      simulatorErrorFromOneCount: figure('fromOne'),
      amdahlErrorFromOneCount: figure('amdahlFromOne'),
    };
  });
  return { rows, checks: checksOf(found) };
}

/** Shares into which the queries are dealt. */
const shares = 8;

/**
 * How well a job's time on one number of slots is foretold from its runs on other numbers: TPC-H's queries, recorded at
 * nine executor counts, each count foretold from the eight others, by the simulator and by Amdahl's law; beside it from
 * each other count alone. What a run took is its tasks as recorded, by production's scheduler.
 *
 * Source: Jockey, §5.3 and Fig. 8 (its own jobs: 9.8 % and 11.8 %).
 */
export const jockeyPrediction: Experiment = {
  name: 'jockey-prediction',
  title: "how well times at one number of slots are foretold from others: simulator and Amdahl's law",
  source: 'Jockey, §5.3, Fig. 8',
  defaultSeeds: shares,
  traces: ['tpch', ...tpchCounts.map((count) => nameOf(count))],
  run,
};
