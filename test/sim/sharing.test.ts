import { expect, it } from 'vitest';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { atOnce, scenarioOf } from './scenarios.ts';

const stage = (tasks: number, workMs: number) => ({ name: 'map', tasks, workMs });
const at = (atMs: number) => ({ arrivals: { kind: 'list' as const, atMs: [atMs] } });

const ends = (jobs: readonly JobOutcome[]): number[] => jobs.map(({ completedAtMs }) => completedAtMs);

it('gives a later job the slots that an earlier one no longer needs', async () => {
  const { jobs } = await simulate(
    scenarioOf({
      cluster: { nodes: [{ count: 4 }] },
      scheduler: atOnce,
      jobs: [
        { ...at(0), stages: [stage(6, 10_000)] },
        { ...at(1_000), stages: [stage(4, 5_000)] },
      ],
    }),
    { seed: '1' },
  );
  // The first has its second wave on two slots from 10 s; the other's two waves use the other two.
  expect(ends(jobs)).toEqual([20_000, 20_000]);
  expect(jobs[1]?.startedAtMs).toBe(10_000);
});

it('asks waiting jobs in the order in which they came', async () => {
  const { jobs } = await simulate(
    scenarioOf({
      cluster: { nodes: [{ count: 1 }] },
      scheduler: atOnce,
      jobs: [0, 1, 2, 3, 4].map((n) => ({ ...at(n * 100), stages: [stage(2, 1_000)] })),
    }),
    { seed: '1' },
  );
  expect(ends(jobs)).toEqual([2_000, 4_000, 6_000, 8_000, 10_000]);
});

it('learns of free slots with its next tick where nobody tells it', async () => {
  const endWith = async (looks: boolean): Promise<readonly number[]> =>
    ends(
      (
        await simulate(
          scenarioOf({
            cluster: { nodes: [{ count: 1 }] },
            scheduler: { tickMs: 1_000, looks },
            jobs: [{ ...at(0), stages: [stage(2, 1_500)] }],
          }),
          { seed: '1' },
        )
      ).jobs,
    );
  // 1.5 s of work, seen at 2 s, and again.
  expect(await endWith(false)).toEqual([3_500]);
  // Looked for each time that a quarter more has passed, and then every tenth: 63 ms are lost in all.
  expect(await endWith(true)).toEqual([3_063]);
});

it('keeps jobs of different policies apart', async () => {
  const mixed = scenarioOf({
    cluster: { nodes: [{ count: 6 }] },
    scheduler: atOnce,
    jobs: (['none', 'late', 'mantri'] as const).map((policy) => ({
      policy,
      stages: [{ ...stage(10, 20_000), slowdown: { kind: 'pareto', scale: 1, shape: 1.5, max: 20 } }],
    })),
  });
  const { jobs } = await simulate(mixed, { seed: '1' });
  expect(jobs.map(({ policy, state }) => [policy, state])).toEqual([
    ['none', 'succeeded'],
    ['late', 'succeeded'],
    ['mantri', 'succeeded'],
  ]);
  expect(jobs[0]?.attempts.every(({ reason }) => reason === 'first')).toBe(true);
});

it('gives a job the slots that are its own before a job of a hundred times its tasks has more', async () => {
  const run = async (own: Readonly<Record<string, number>>) =>
    ends(
      (
        await simulate(
          scenarioOf({
            cluster: { nodes: [{ count: 8 }] },
            scheduler: atOnce,
            jobs: [
              { ...at(0), stages: [stage(200, 1_000)] },
              { ...at(0), stages: [stage(200, 1_000)] },
              {
                ...at(500),
                ...own,
                stages: [stage(12, 1_000), { ...stage(12, 1_000), name: 'reduce', upstream: ['map'] }],
              },
            ],
          }),
          { seed: '1' },
        )
      ).jobs,
    )[2];
  // Two or three of eight slots are its share; six are its own, so that each stage takes two waves, after a first wait.
  expect(await run({})).toBeGreaterThan(9_000);
  expect(await run({ guaranteedSlots: 6 })).toBeLessThanOrEqual(5_000);
  expect(await run({ weight: 6 })).toBeLessThanOrEqual(5_000);
});

it.each([
  // The large job's forty tasks take ten waves on all four slots; the small ones wait until its last wave has ended.
  ['first-come' as const, { large: 100_000, small: [101_000, 101_000, 102_000] }],
  // Each has one slot as the first wave ends, at 10 s, for its two tasks of a second; then nine more on each of three.
  ['fair' as const, { large: 102_000, small: [12_000, 12_000, 12_000] }],
])('shares slots %s between a large job and small ones that come later', async (sharing, expected) => {
  const { jobs } = await simulate(
    scenarioOf({
      cluster: { nodes: [{ count: 4 }] },
      scheduler: { ...atOnce, sharing },
      jobs: [
        { ...at(0), stages: [stage(40, 10_000)] },
        ...[1, 2, 3].map((n) => ({ ...at(n * 1_000), stages: [stage(2, 1_000)] })),
      ],
    }),
    { seed: '1' },
  );
  const [large = 0, ...small] = ends(jobs);
  expect({ large, small }).toEqual(expected);
});
