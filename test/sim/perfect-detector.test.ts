import { expect, it } from 'vitest';
import { createRng } from '../../src/lib/rng.ts';
import { copyCountsOf, slotTimeOf } from '../../src/sim/metrics.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import { expectedMsOf } from '../../src/sim/perfect-detector.ts';
import { parseScenario, type ScenarioInput } from '../../src/sim/scenario.ts';
import { buildJobs, type SimStage } from '../../src/sim/sim-job.ts';
import { simulate } from '../../src/sim/simulate.ts';

type StageInput = ScenarioInput['jobs'][number]['stages'][number];

const scenarioOf = (stage: Partial<StageInput>, slots: number): ScenarioInput => ({
  cluster: { nodes: [{ count: slots }] },
  scheduler: { wakeOnEnd: true, cancel: 'immediate', tickMs: 100 },
  jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 4, workMs: 10_000, ...stage }] }],
});

async function run(stage: Partial<StageInput>, slots: number, perfect = true): Promise<JobOutcome> {
  const { jobs } = await simulate(parseScenario(scenarioOf(stage, slots)), { seed: '1', perfect });
  const [job] = jobs;
  if (job === undefined) throw new Error('no job');
  return job;
}

const usual = [10_000, 10_000];

it('copies a straggler as soon as it runs, and nothing else', async () => {
  const job = await run({ attemptsMs: [[100_000, 10_000], usual, usual, usual] }, 5);
  expect(copyCountsOf(job)).toMatchObject({ started: 1, won: 1 });
  expect(job.completedAtMs).toBeLessThanOrEqual(10_200);
  // The straggler is stopped when its copy runs: nobody needs to wait to know.
  expect(slotTimeOf(job).usedMs).toBeLessThanOrEqual(40_500);
});

it('stops a copy that turns out worse, and takes no more than a task may have', async () => {
  const unlucky = [100_000, 200_000];
  const job = await run({ attemptsMs: [unlucky, usual, usual, usual], expectedMs: [10_000] }, 5);
  expect(job.completedAtMs).toBe(100_000);
  expect(copyCountsOf(job)).toMatchObject({ started: 6, won: 0 });
  expect(slotTimeOf(job).usedMs).toBeLessThanOrEqual(131_000);
});

it('copies nothing where a new attempt may not be expected to end sooner', async () => {
  const job = await run({ attemptsMs: [[100_000, 10_000], usual, usual, usual], expectedMs: [100_000] }, 5);
  expect(copyCountsOf(job)).toMatchObject({ started: 0 });
});

it('leaves policies alone where it is not asked for', async () => {
  const job = await run({ attemptsMs: [[100_000, 10_000], usual, usual, usual] }, 5, false);
  expect(job.completedAtMs).toBe(100_000);
});

it.each<[string, Partial<StageInput>, number[]]>([
  ['as the scenario says', { expectedMs: [1, 2] }, [1, 2, 1, 2]],
  [
    'as later attempts take in the mean',
    {
      attemptsMs: [
        [90, 10, 20],
        [90, 30],
      ],
    },
    [20, 20, 20, 20],
  ],
  ['work times the slowdown', { slowdown: 3 }, [30_000, 30_000, 30_000, 30_000]],
])('expects of a new attempt what is said: %s', (_, stage, expected) => {
  const scenario = parseScenario(scenarioOf(stage, 4));
  const [built] = buildJobs(scenario, '1', createRng('x'))[0]?.stages ?? [];
  expect(expectedMsOf(built as SimStage)).toEqual(expected);
});

it('expects the mean of a slowdown that is drawn', () => {
  const scenario = parseScenario(scenarioOf({ slowdown: { kind: 'uniform', min: 1, max: 3 } }, 4));
  const [built] = buildJobs(scenario, '1', createRng('x'))[0]?.stages ?? [];
  for (const ms of expectedMsOf(built as SimStage)) expect(ms / 10_000).toBeCloseTo(2, 1);
});
