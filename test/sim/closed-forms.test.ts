import { expect, it } from 'vitest';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { atOnce, runOne, scenarioOf } from './scenarios.ts';

const stageOf = (tasks: number, workMs: number | number[]) => ({
  name: 'map',
  tasks,
  workMs,
  inputBytes: workMs,
});

it.each([
  [1, 1, 7_000],
  [10, 10, 7_000],
  [11, 10, 14_000],
  [23, 10, 21_000],
  [100, 7, 105_000],
])('runs %i equal tasks on %i slots in whole waves', async (tasks, slots, expectedMs) => {
  const job = await runOne({
    cluster: { nodes: [{ count: slots }] },
    scheduler: atOnce,
    jobs: [{ policy: 'none', stages: [stageOf(tasks, 7_000)] }],
  });
  expect(job.completedAtMs).toBe(expectedMs);
});

it('opens a stage when the last task of those before it is done', async () => {
  const job = await runOne({
    cluster: { nodes: [{ count: 2, slots: 2 }] },
    scheduler: atOnce,
    jobs: [
      {
        policy: 'none',
        stages: [
          { name: 'left', tasks: 4, workMs: 5_000 },
          { name: 'right', tasks: 3, workMs: 2_000 },
          { name: 'both', tasks: 5, upstream: ['left', 'right'], workMs: 3_000 },
        ],
      },
    ],
  });
  expect(job.stages.map(({ openedAtMs, doneAtMs }) => [openedAtMs, doneAtMs])).toEqual([
    [0, 5_000],
    [0, 7_000],
    [7_000, 13_000],
  ]);
});

// Longest first takes 4s - 1 on 2s-1, 2s-1, ..., s+1, s+1, s, s, s, where 3s is possible: 4/3 - 1/(3s) times as long.
it.each([
  [2, [3, 3, 2, 2, 2], 7],
  [3, [5, 5, 4, 4, 3, 3, 3], 11],
  [4, [7, 7, 6, 6, 5, 5, 4, 4, 4], 15],
])('meets the bound of longest-first on %i slots with equality', async (slots, lengths, expected) => {
  const worksMs = lengths.map((length) => length * 1_000);
  const job = await runOne({
    cluster: { nodes: [{ count: 1, slots }] },
    scheduler: atOnce,
    jobs: [{ policy: 'none', stages: [stageOf(lengths.length, worksMs)] }],
  });
  expect(job.completedAtMs).toBe(expected * 1_000);
});

it.each(['1', '2', '3', '4', '5'])(
  'stays between the bounds of any work-conserving schedule, seed %s',
  async (seed) => {
    const job = await runOne(
      {
        cluster: { nodes: [{ count: 8 }] },
        scheduler: atOnce,
        jobs: [
          {
            policy: 'none',
            stages: [
              { name: 'map', tasks: 60, workMs: { kind: 'pareto', scale: 1_000, shape: 1.3, max: 60_000 } },
            ],
          },
        ],
      },
      seed,
    );
    const times = job.stages[0]?.taskMs ?? [];
    const total = times.reduce((sum, ms) => sum + ms, 0);
    const longest = Math.max(...times);
    expect(times).toHaveLength(60);
    expect(job.completedAtMs).toBeGreaterThanOrEqual(Math.max(total / 8, longest));
    expect(job.completedAtMs).toBeLessThanOrEqual(total / 8 + longest);
  },
);

/** Waits of jobs that arrive at random and take a random time, after the first thousand. */
async function waitsMs(slots: number, meanBetweenMs: number): Promise<number[]> {
  const { jobs } = await simulate(
    scenarioOf({
      cluster: { nodes: [{ count: 1, slots }] },
      scheduler: { ...atOnce, tickMs: 3_600_000, leaseMs: 36_000_000 },
      reports: { everyMs: 3_600_000, tenths: false },
      jobs: [
        {
          arrivals: { kind: 'poisson', jobs: 20_000, meanMs: meanBetweenMs },
          policy: 'none',
          stages: [{ name: 'only', tasks: 1, workMs: { kind: 'exponential', mean: 10_000 } }],
        },
      ],
    }),
    { seed: '1' },
  );
  return jobs.slice(1_000).map((job: JobOutcome) => (job.startedAtMs ?? 0) - job.arrivedAtMs);
}

const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

it('has the waits of an M/M/1 queue at half load', async () => {
  const waits = await waitsMs(1, 20_000);
  // Half of the jobs wait, 10 s on average over all of them.
  expect(meanOf(waits) / 1_000).toBeGreaterThan(9.2);
  expect(meanOf(waits) / 1_000).toBeLessThan(10.8);
  expect(waits.filter((wait) => wait > 0).length / waits.length).toBeCloseTo(0.5, 1.3);
});

it('has the waits of an M/M/4 queue at a load of 0.8', async () => {
  const waits = await waitsMs(4, 3_125);
  // Erlang's C(4, 3.2) = 0.5964; the mean wait is C × 10 s / (4 - 3.2) = 7.455 s.
  expect(meanOf(waits) / 1_000).toBeGreaterThan(6.7);
  expect(meanOf(waits) / 1_000).toBeLessThan(8.2);
  expect(waits.filter((wait) => wait > 0).length / waits.length).toBeCloseTo(0.5964, 1.3);
});
