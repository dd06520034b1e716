import { expect, it } from 'vitest';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { scenarioOf } from './scenarios.ts';

/** Most backups of all jobs that ran at once. */
function mostBackups(jobs: readonly JobOutcome[]): number {
  const backups = jobs.flatMap(({ attempts }) => attempts.filter(({ reason }) => reason === 'backup'));
  return Math.max(
    0,
    ...backups.map(
      ({ takenAtMs: at }) =>
        backups.filter(({ takenAtMs, leftAtMs }) => takenAtMs <= at && at < leftAtMs).length,
    ),
  );
}

const straggling = () => ({
  policy: 'late' as const,
  stages: [
    {
      name: 'map',
      tasks: 20,
      workMs: 60_000,
      slowdown: { kind: 'pareto' as const, scale: 1, shape: 1.2, max: 15 },
    },
  ],
});

it.each([1, 2, 3])('bounds the backups of all jobs of LATE together, seed %i', async (seed) => {
  const { jobs } = await simulate(
    scenarioOf({
      cluster: { nodes: [{ count: 100, elastic: true }] },
      // One that was told to stop counts no more, so it must stop at once here.
      scheduler: { cancel: 'immediate' },
      jobs: Array.from({ length: 4 }, () => straggling()),
    }),
    { seed: String(seed) },
  );
  // A tenth of a hundred slots; four jobs with a cap each would run forty.
  expect(mostBackups(jobs)).toBeLessThanOrEqual(10);
  const withBackups = jobs.filter(({ attempts }) => attempts.some(({ reason }) => reason === 'backup'));
  expect(withBackups.length).toBeGreaterThan(1);
  expect(jobs.map(({ state }) => state)).toEqual(['succeeded', 'succeeded', 'succeeded', 'succeeded']);
});

it('lets one job run as many as all of them might', async () => {
  const run = async (slots: number) => {
    const { jobs } = await simulate(
      scenarioOf({
        cluster: { nodes: [{ count: slots, elastic: true }] },
        jobs: [straggling()],
      }),
      { seed: '1' },
    );
    return mostBackups(jobs);
  };
  expect(await run(30)).toBe(3);
  expect(await run(100)).toBeGreaterThan(3);
});
