import { describe, expect, it } from 'vitest';
import type { ScenarioInput } from '../../src/sim/scenario.ts';
import { runOne } from './scenarios.ts';

type Steps = { fromMs: number; count: number }[];

const seeds = ['1', '2', '3', '4', '5', '6'];

/** A job of so many tasks on functions of which others leave so many environments, from a time on. */
async function run(
  environments: Steps,
  { tasks, workMs }: { readonly tasks: number; readonly workMs: number },
): Promise<{ readonly wasted: number; readonly endS: number }> {
  const cluster: ScenarioInput['cluster'] = {
    nodes: [{ count: 900, elastic: true }],
    placement: 'warmest',
    cold: { startMs: { kind: 'uniform', min: 300, max: 1_500 }, environments: 1_000, perMs: 10_000 },
    startMs: 50,
    queue: { environments, eventAgeMs: 900_000 },
  };
  let [made, unclaimed, endMs] = [0, 0, 0];
  for (const seed of seeds) {
    const job = await runOne(
      {
        cluster,
        scheduler: { claimLeaseMs: 900_000 },
        jobs: [{ policy: 'none', stages: [{ name: 'map', tasks, workMs }] }],
      },
      seed,
    );
    expect(job).toMatchObject({ state: 'succeeded', error: undefined });
    made += job.launches.made;
    unclaimed += job.launches.unclaimed;
    endMs += job.completedAtMs;
  }
  return { wasted: unclaimed / made, endS: endMs / seeds.length / 1_000 };
}

const falling = (count: number, fromMs: number, to: number): Steps => [
  { fromMs: 0, count },
  { fromMs, count: to },
  { fromMs: 300_000, count },
];
const swinging = (everyMs: number, counts: readonly number[]): Steps =>
  Array.from({ length: 40 }, (_, turn) => ({
    fromMs: turn * everyMs,
    count: counts[turn % counts.length] ?? 0,
  }));

/**
 * By a fifth at a time what was known fell far too slowly: of these a quarter to two fifths of all launches lay in Lambda's
 * queue until they were given up, while a few environments were free.
 */
describe('a job from which others take most of its environments at once', () => {
  it.each([
    ['30 become 1', falling(30, 20_000, 1), { tasks: 100, workMs: 10_000 }, 0.08, 358],
    ['30 become 1 under longer tasks', falling(30, 60_000, 1), { tasks: 100, workMs: 30_000 }, 0.06, 395],
    ['100 become 10', falling(100, 60_000, 10), { tasks: 600, workMs: 20_000 }, 0.05, 665],
    ['30 become 10', falling(30, 60_000, 10), { tasks: 200, workMs: 20_000 }, 0.05, 325],
    ['100 become none', falling(100, 30_000, 0), { tasks: 400, workMs: 10_000 }, 0.12, 376],
  ] as const)('wastes few launches and no time: %s', async (_, steps, job, most, beforeS) => {
    const { wasted, endS } = await run(steps, job);
    expect(wasted).toBeLessThanOrEqual(most);
    // What it took where known room fell by a fifth, and what luck may do.
    expect(endS).toBeLessThanOrEqual(1.08 * beforeS);
  });

  it.each([
    ['each half minute', swinging(30_000, [30, 5]), { tasks: 300, workMs: 5_000 }],
    ['each minute and a half', swinging(90_000, [30, 5]), { tasks: 300, workMs: 10_000 }],
    ['a step at a time', swinging(20_000, [50, 40, 30, 20, 10, 5]), { tasks: 500, workMs: 5_000 }],
  ] as const)('and give them back: %s', async (_, steps, job) => {
    expect((await run(steps, job)).wasted).toBeLessThanOrEqual(0.05);
  });
});
