import { parseScenario, type Scenario, type ScenarioInput } from '../../src/sim/scenario.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import { simulate } from '../../src/sim/simulate.ts';

/** A scheduler that is told at once: what closed forms and worked examples assume. */
export const atOnce = { tickMs: 1_000, wakeOnEnd: true, cancel: 'immediate' } as const;

/** Some of the many things that a scenario says; the rest are its defaults. */
export const scenarioOf = (input: ScenarioInput): Scenario => parseScenario(input);

/** A job of one stage that arrives, as `second`, when what went before it has long ended. */
export const laterJob = (map: { readonly tasks: number; readonly workMs: number }) =>
  ({
    name: 'second',
    policy: 'none',
    arrivals: { kind: 'list', atMs: [600_000] },
    stages: [{ name: 'map', ...map }],
  }) satisfies ScenarioInput['jobs'][number];

/** The only job of a scenario, after a run with seed 1. */
export async function runOne(input: ScenarioInput, seed = '1'): Promise<JobOutcome> {
  const { jobs } = await simulate(scenarioOf(input), { seed });
  const job = jobs[0];
  if (job === undefined || jobs.length > 1) throw new Error('the scenario has not exactly one job');
  return job;
}

/** A small serverless cluster in which everything goes wrong for an hour. */
export const everythingFails: ScenarioInput = {
  name: 'everything-fails',
  cluster: {
    nodes: [
      {
        count: 40,
        elastic: true,
        speed: { kind: 'lognormal', median: 1, sigma: 0.3 },
        spells: {
          everyMs: { kind: 'exponential', mean: 60_000 },
          lastsMs: { kind: 'exponential', mean: 20_000 },
          slowdown: 4,
        },
      },
    ],
    placement: 'warmest',
    contention: 0.2,
    flowBytesPerS: 50e6,
    zones: [
      { name: 'a', upBytesPerS: 200e6, downBytesPerS: 200e6 },
      { name: 'b', upBytesPerS: 100e6, downBytesPerS: 300e6 },
      { name: 'c' },
    ],
    cold: {
      startMs: { kind: 'uniform', min: 200, max: 2_000 },
      environments: 10,
      perMs: 1_000,
      keepWarmMs: 20_000,
    },
    throttle: { launchesPerS: 20, burst: 10 },
  },
  reports: { everyMs: 2_000, loss: 0.1, delayMs: { kind: 'exponential', mean: 300 } },
  faults: {
    attemptFailure: 0.03,
    lostLaunch: 0.03,
    doubleLaunch: 0.1,
    lostAttempt: 0.03,
    lostOutput: 0.05,
    untilMs: 3_600_000,
    crashes: {
      everyMs: { kind: 'exponential', mean: 200_000 },
      repairMs: { kind: 'exponential', mean: 20_000 },
    },
  },
  scheduler: { claimLeaseMs: 20_000 },
  jobs: [
    {
      arrivals: { kind: 'poisson', jobs: 4, meanMs: 20_000 },
      policy: 'none',
      deadlineMs: 300_000,
      stages: [
        {
          name: 'map',
          tasks: 60,
          workMs: { kind: 'lognormal', median: 8_000, sigma: 0.6 },
          network: true,
          inputBytes: 64e6,
          outputBytes: 20e6,
          wrapUpMs: 300,
        },
        {
          name: 'side',
          tasks: 5,
          workMs: 4_000,
          slowdown: { kind: 'pareto', scale: 1, shape: 1.4, max: 30 },
        },
        {
          name: 'reduce',
          tasks: 20,
          upstream: ['map', 'side'],
          workMs: 6_000,
          network: true,
          inputBytes: { kind: 'uniform', min: 10e6, max: 90e6 },
        },
      ],
    },
  ],
};
