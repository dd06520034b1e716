import { expect, it } from 'vitest';
import { createRng } from '../../src/lib/rng.ts';
import {
  type Distribution,
  distributionSchema,
  sample,
  sampleAboveZero,
  sampleMs,
} from '../../src/sim/distribution.ts';
import { parseScenario } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';

const drawsOf = (distribution: Distribution, count = 40_000): number[] => {
  const rng = createRng('draws');
  return Array.from({ length: count }, () => sample(distribution, rng));
};
const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;
const shareAbove = (values: readonly number[], limit: number): number =>
  values.filter((value) => value > limit).length / values.length;

it.each<[string, Distribution, number]>([
  ['a number', 7, 7],
  ['uniform', { kind: 'uniform', min: 2, max: 6 }, 4],
  ['uniform-sum', { kind: 'uniform-sum', count: 100, min: 0, max: 2 }, 100],
  ['exponential', { kind: 'exponential', mean: 5 }, 5],
  ['normal', { kind: 'normal', mean: 50, sd: 5 }, 50],
  ['lognormal', { kind: 'lognormal', median: 10, sigma: 0.5 }, 11.3315], // 10 exp(1/8)
  ['pareto', { kind: 'pareto', scale: 1, shape: 3 }, 1.5],
  ['empirical', { kind: 'empirical', values: [1, 2, 9] }, 4],
  [
    'quantiles',
    {
      kind: 'quantiles',
      points: [
        [0, 0],
        [0.5, 10],
        [1, 10],
      ],
    },
    7.5,
  ],
  ['mixture', { kind: 'mixture', probability: 0.25, outlier: 20, usual: 4 }, 8],
])('draws from %s with its mean', (_, distribution, mean) => {
  expect(meanOf(drawsOf(distribution)) / mean).toBeCloseTo(1, 1.5);
});

it('has the spread of a sum of uniform draws', () => {
  const draws = drawsOf({ kind: 'uniform-sum', count: 100, min: 0, max: 1.4 });
  const mean = meanOf(draws);
  // 70 s of sleep in a hundred pieces: standard deviation 1.4 × √(100 / 12).
  expect(Math.sqrt(meanOf(draws.map((value) => (value - mean) ** 2)))).toBeCloseTo(4.04, 1);
});

it('has the tail of a Pareto distribution, up to the cap', () => {
  const draws = drawsOf({ kind: 'pareto', scale: 2, shape: 1.5, max: 50 });
  expect(Math.min(...draws)).toBeGreaterThanOrEqual(2);
  expect(Math.max(...draws)).toBe(50);
  expect(shareAbove(draws, 8)).toBeCloseTo(0.125, 2); // (2 / 8)^1.5
  expect(shareAbove(draws, 32)).toBeCloseTo(1 / 64, 2);
});

it('draws again what is cut at 0 of what has to be above 0, and else the same', () => {
  const half = { kind: 'normal', mean: 1, sd: 100 } as const;
  const rng = createRng('speeds');
  const speeds = Array.from({ length: 1_000 }, () => sampleAboveZero(half, rng));
  expect(Math.min(...speeds)).toBeGreaterThan(0);
  const usual = { kind: 'normal', mean: 1, sd: 0.1 } as const;
  const [one, other] = [createRng('same'), createRng('same')];
  for (let draw = 0; draw < 100; draw++) expect(sampleAboveZero(usual, one)).toBe(sample(usual, other));
});

it('has no node stand still whose speed is drawn from a normal distribution', async () => {
  const outcome = await simulate(
    parseScenario({
      cluster: { nodes: [{ count: 100, speed: { kind: 'normal', mean: 1, sd: 1 } }], placement: 'in-order' },
      jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 100, workMs: 1_000 }] }],
    }),
    { seed: 'normal' },
  );
  expect(outcome.jobs.map(({ state }) => state)).toEqual(['succeeded']);
});

it('is never negative, and whole where it is a time', () => {
  const rng = createRng('times');
  const times = Array.from({ length: 1_000 }, () => sampleMs({ kind: 'normal', mean: 1, sd: 3 }, rng));
  expect(times.every((ms) => Number.isInteger(ms) && ms >= 0)).toBe(true);
});

it.each([
  -1,
  { kind: 'exponential', mean: 0 },
  { kind: 'empirical', values: [] },
  { kind: 'weibull' },
  { kind: 'uniform', min: 1 },
  { kind: 'uniform', min: 9, max: 3 },
  { kind: 'uniform-sum', count: 2, min: 9, max: 3 },
  { kind: 'mixture', probability: 0.5, outlier: { kind: 'uniform', min: 9, max: 3 }, usual: 1 },
  ...[
    [
      [0, 1],
      [0.5, 2],
    ],
    [
      [0.5, 1],
      [1, 2],
    ],
    [
      [0, 1],
      [0.8, 2],
      [0.4, 3],
      [1, 4],
    ],
    [
      [0, 3],
      [1, 2],
    ],
  ].map((points) => ({ kind: 'quantiles', points })),
])('refuses %j', (data) => {
  expect(distributionSchema.safeParse(data).success).toBe(false);
});
