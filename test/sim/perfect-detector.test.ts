import { expect, it } from 'vitest';
import { createRng } from '../../src/lib/rng.ts';
import { copyCountsOf, slotTimeOf } from '../../src/sim/metrics.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import { hostOf } from '../../src/sim/host-profiles.ts';
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

async function onLambda(stage: Partial<StageInput>, slots: number): Promise<JobOutcome> {
  const { worker, wrapUpMs, ...host } = hostOf('lambda', slots, 200);
  const scenario = parseScenario({
    ...host,
    jobs: [{ policy: 'none', worker, stages: [{ name: 'map', tasks: 4, workMs: 200, wrapUpMs, ...stage }] }],
  });
  const [job] = (await simulate(scenario, { seed: '1', perfect: true })).jobs;
  if (job === undefined) throw new Error('no job');
  return job;
}

it.each([
  ['in one wave', 40, 60],
  ['in waves', 60, 20],
])(
  'copies none of equal tasks that take as long to start and to write as to do: %s',
  async (_, tasks, slots) => {
    expect(copyCountsOf(await onLambda({ tasks }, slots))).toMatchObject({ started: 0 });
  },
);

it('expects of a new attempt that it writes its output, too', () => {
  const scenario = parseScenario(scenarioOf({ expectedMs: [1, 2], wrapUpMs: 300 }, 4));
  const [built] = buildJobs(scenario, '1', createRng('x'))[0]?.stages ?? [];
  expect(expectedMsOf(built as SimStage)).toEqual([301, 302, 301, 302]);
});

// When one has worked for 20 s and written for 10, the other has 20 s of work left, and 10 to write; a new one takes 15, and its start.
it.each([
  [10_000, 3],
  [16_000, 2],
])('counts what a new attempt takes to start: %d ms, %d attempts', async (startMs, attempts) => {
  const [slow, ordinary] = [[50_000, 5_000], [20_000]];
  const stage = {
    tasks: 2,
    workMs: 5_000,
    attemptsMs: [slow, ordinary],
    expectedMs: [5_000],
    wrapUpMs: 10_000,
  };
  const { cluster, ...rest } = scenarioOf(stage, 2);
  const scenario = parseScenario({ ...rest, cluster: { ...cluster, startMs } });
  const [job] = (await simulate(scenario, { seed: '1', perfect: true })).jobs;
  expect(job?.attempts).toHaveLength(attempts);
});
