import type { PolicyConfigInput } from '../contracts/policy-config.ts';
import { createRng, type Rng } from '../lib/rng.ts';
import { type Distribution, sample } from '../sim/distribution.ts';
import { parseScenario, type Scenario, type ScenarioInput } from '../sim/scenario.ts';

type Job = ScenarioInput['jobs'][number];
type Stage = Job['stages'][number];

/** How often outputs are lost. `jobs`: of each seed, so many that enough of them lose something. */
export interface LossRate {
  readonly jobs: number;
  /** Mean time between the starts of two spells on a flaky machine, in ms. */
  readonly flakyEveryMs: number;
}

/**
 * `as in the paper`: 99 % of its phases see no recomputes, and the spells are as frequent as makes it so here.
 * `far more often`: a flaky machine is in a spell a third of its time.
 */
export const lossRates = {
  'as in the paper': { jobs: 120, flakyEveryMs: 4_000_000 },
  'far more often': { jobs: 24, flakyEveryMs: 240_000 },
} as const satisfies Record<string, LossRate>;
export type LossRateName = keyof typeof lossRates;

export const lossMachines = 100;
/** Half of all recomputations are on 5 % of the machines: so these have as many spells as all others together. */
const flaky = 5;
/** Mantri §3: losses cluster by machine and in time; how long, and how many outputs go, the paper does not say. */
const lastsMs: Distribution = { kind: 'uniform', min: 60_000, max: 180_000 };
const share = 0.5;

/** The median workflow has 8 phases and 11 edges. */
const phases: Distribution = { kind: 'lognormal', median: 8, sigma: 0.35 };
const secondEdge = 4 / 7;
const tasksOf: Distribution = { kind: 'lognormal', median: 10, sigma: 0.6 };
const taskMs: Distribution = { kind: 'lognormal', median: 30_000, sigma: 0.4 };
const sourceBytes = 256e6;
/** Of what a phase reads, what it leaves for others. */
const selectivity: Distribution = { kind: 'lognormal', median: 0.4, sigma: 0.9 };

const between = (least: number, most: number, value: number): number =>
  Math.min(most, Math.max(least, value));

function stageOf(place: number, before: readonly { tasks: number; bytes: number }[], rng: Rng) {
  const other = place >= 2 && rng.next() < secondEdge ? Math.floor(rng.next() * (place - 1)) : undefined;
  const reads = place === 0 ? [] : [place - 1, ...(other === undefined ? [] : [other])];
  const tasks = Math.round(between(1, 40, sample(tasksOf, rng)));
  const bytes =
    place === 0 ? tasks * sourceBytes : reads.reduce((sum, each) => sum + (before[each]?.bytes ?? 0), 0);
  const leaves = bytes * between(0.001, 1, sample(selectivity, rng));
  const medianMs = sample(taskMs, rng);
  const stage: Stage = {
    name: `phase-${place}`,
    tasks,
    upstream: reads.map((each) => `phase-${each}`),
    workMs: Array.from({ length: tasks }, () => Math.round(medianMs * (0.8 + 0.4 * rng.next()))),
    inputBytes: Math.round(bytes / tasks),
    outputBytes: Math.round(leaves / tasks),
  };
  return { stage, tasks, bytes: leaves };
}

function jobOf(index: number, atMs: number, rng: Rng, mantri: PolicyConfigInput['mantri']): Job {
  const count = Math.round(between(3, 14, sample(phases, rng)));
  const built: ReturnType<typeof stageOf>[] = [];
  for (let place = 0; place < count; place++) built.push(stageOf(place, built, rng));
  return {
    name: `job-${index}`,
    arrivals: { kind: 'list', atMs: [atMs] },
    policy: 'mantri',
    policyConfig: { ...(mantri === undefined ? {} : { mantri }) },
    stages: built.map(({ stage }) => stage),
  };
}

/**
 * Workflows of the paper's shape on machines that lose outputs; the same jobs and the same spells whatever protects them.
 * `isSafe`: nothing is ever lost.
 */
export function lossScenario(
  seed: string,
  { jobs: count, flakyEveryMs }: LossRate,
  mantri: PolicyConfigInput['mantri'],
  isSafe: boolean,
): Scenario {
  const rng = createRng(`mantri-recompute/${seed}`);
  let atMs = 0;
  const jobs = Array.from({ length: count }, (_, index) => {
    const job = jobOf(index, Math.round(atMs), rng.fork(`${index}`), mantri);
    atMs += sample({ kind: 'exponential', mean: 120_000 }, rng);
    return job;
  });
  const spells = (everyMs: number): ScenarioInput['cluster']['nodes'][number]['losses'] => ({
    everyMs: { kind: 'exponential', mean: everyMs },
    lastsMs,
    share: isSafe ? 0 : share,
  });
  const others = lossMachines - flaky;
  return parseScenario({
    name: 'losses',
    cluster: {
      nodes: [
        { count: flaky, losses: spells(flakyEveryMs) },
        { count: others, losses: spells((flakyEveryMs * others) / flaky) },
      ],
    },
    scheduler: { tickMs: 1_000, wakeOnEnd: true, cancel: 'immediate' },
    jobs,
  });
}
