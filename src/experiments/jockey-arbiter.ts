import type { PolicyConfigInput } from '../contracts/policy-config.ts';
import { softDeadline, utilityAt } from '../core/policy/jockey/utility.ts';
import { mean } from '../lib/quantiles.ts';
import { createRng, type Rng } from '../lib/rng.ts';
import type { JobOutcome } from '../sim/outcome.ts';
import { parseScenario } from '../sim/scenario.ts';
import { simulate } from '../sim/simulate.ts';
import { jockeyJob, type SyntheticStage } from '../traces/generators/jockey-jobs.ts';
import { claim } from './checks.ts';
import { type Check, type Experiment, type ExperimentInput, type Findings, rounded } from './experiment.ts';
import {
  clusterOf,
  clusterSlots,
  drawNoise,
  stagesOf,
  train,
  trainingNoise,
  withTable,
} from './jockey-runs.ts';

/** Ways to divide slots: by what they bring, each job by its own control alone, and by fair shares without guarantees. */
const ways = {
  arbiter: { arbiter: true },
  'per-job control': { arbiter: false },
  'fair sharing': undefined,
} as const satisfies Record<string, PolicyConfigInput['jockey']>;
type Way = keyof typeof ways;
const wayNames = Object.keys(ways) as Way[];

const jobCount = 10;
/** All jobs together need so many times what the slots do until their deadlines. */
const load = 1.5;
const minuteMs = 60_000;
/** Jobs of few tasks: ten of them share the cluster. */
const names = ['A', 'B', 'E'] as const;

const workOf = (stages: readonly SyntheticStage[]): number =>
  stages.reduce((sum, { tasks, medianMs, sigma }) => sum + tasks * medianMs * Math.exp(sigma ** 2 / 2), 0);

interface Member {
  readonly stages: readonly SyntheticStage[];
  readonly deadlineMs: number;
  readonly forecast: Awaited<ReturnType<typeof train>>;
}

/** Ten jobs whose deadlines, tight and easy, ask for more than there is. */
async function membersOf(rng: Rng): Promise<Member[]> {
  const members: Member[] = [];
  const drawn = Array.from({ length: jobCount }, (_, index) =>
    jockeyJob(names[index % names.length] ?? 'A', rng.fork(`job ${index}`)),
  );
  const all = drawn.reduce((sum, stages) => sum + workOf(stages), 0);
  const typicalMs = all / clusterSlots / load;
  for (const [index, stages] of drawn.entries()) {
    const own = rng.fork(`member ${index}`);
    const learned = await train(stages, {
      name: `arbiter-${'abcdefghij'[index] ?? 'z'}`,
      ...{ runs: 1, rng: own.fork('training'), noisy: false },
    });
    members.push({
      stages,
      deadlineMs: Math.round(typicalMs * (0.5 + 1.5 * own.next())),
      forecast: withTable(learned, 'totalworkWithQ', own.fork('table')),
    });
  }
  return members;
}

async function jobsUnder(way: Way, members: readonly Member[], rng: Rng): Promise<readonly JobOutcome[]> {
  const setting = ways[way];
  const scenario = clusterOf(
    members.map(({ stages, deadlineMs, forecast }, index) => ({
      name: forecast.name,
      deadlineMs,
      policyConfig: { jockey: { admits: false, ...setting } },
      stages: stagesOf(stages, drawNoise(rng.fork(`noise ${index}`)).work, rng.fork(`times ${index}`)),
    })),
    trainingNoise,
  );
  const { jobs } = await simulate(parseScenario(scenario), {
    seed: String(rng.fork('seed').next()),
    ...(setting === undefined ? {} : { forecasts: members.map(({ forecast }) => forecast) }),
  });
  return jobs;
}

interface Told {
  readonly utility: number;
  readonly met: number;
  readonly starved: number;
}

function told(jobs: readonly JobOutcome[]): Told {
  let [utility, met, starved] = [0, 0, 0];
  for (const { completedAtMs, deadlineMs = 0, startedAtMs, state } of jobs) {
    const lateMs = Math.min(10 * minuteMs, deadlineMs / 6);
    utility += utilityAt(softDeadline(deadlineMs, lateMs), completedAtMs);
    if (completedAtMs <= deadlineMs) met += 1;
    if (state !== 'succeeded' || startedAtMs === undefined || startedAtMs > deadlineMs) starved += 1;
  }
  return { utility, met, starved };
}

function checksOf(found: ReadonlyMap<Way, readonly Told[]>): Check[] {
  const utility = (way: Way): number => mean((found.get(way) ?? []).map((each) => each.utility)) ?? 0;
  const starved = (found.get('arbiter') ?? []).reduce((sum, each) => sum + each.starved, 0);
  const text = wayNames.map((way) => `${way} ${utility(way).toFixed(1)}`).join(', ');
  return [
    claim('total utility', {
      ...{ paper: 'left to future work', got: text, rule: 'the arbiter has more than either other' },
      ok: utility('arbiter') > Math.max(utility('per-job control'), utility('fair sharing')),
    }),
    claim('starving', {
      paper: 'none',
      got: `${starved} jobs`,
      rule: 'each job under the arbiter begins before its deadline, and ends',
      ok: starved === 0,
    }),
  ];
}

async function run({ seeds }: ExperimentInput): Promise<Findings> {
  const found = new Map<Way, Told[]>(wayNames.map((way) => [way, []]));
  for (const seed of seeds) {
    const rng = createRng(`jockey-arbiter/${seed}`);
    const members = await membersOf(rng);
    for (const way of wayNames) found.get(way)?.push(told(await jobsUnder(way, members, rng.fork('judged'))));
  }
  const rows = [...found].map(([way, each]) => ({
    way,
    runs: each.length,
    meanUtility: rounded(mean(each.map(({ utility }) => utility)) ?? 0),
    meanMetOfTen: rounded(mean(each.map(({ met }) => met)) ?? 0),
    starved: each.reduce((sum, { starved }) => sum + starved, 0),
  }));
  return { rows, checks: checksOf(found) };
}

/**
 * Ten jobs with tight and easy deadlines on a cluster that has too few slots for all: what their ends are worth in all,
 * where slots of their own are divided by marginal utility, where each job's control asks for itself, and without any.
 *
 * Source: Jockey, §4.4, which leaves it to future work.
 */
export const jockeyArbiter: Experiment = {
  name: 'jockey-arbiter',
  title: 'slots divided among ten jobs with deadlines by what they bring',
  source: 'Jockey, §4.4 (future work)',
  defaultSeeds: 10,
  traces: [],
  run,
};
