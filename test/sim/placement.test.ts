import { expect, it } from 'vitest';
import { atOnce, runOne } from './scenarios.ts';

it('spreads attempts over nodes before any node gets a second', async () => {
  const job = await runOne({
    cluster: { placement: 'spread', nodes: [{ count: 4, slots: 2 }] },
    scheduler: atOnce,
    jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 6, workMs: 5_000 }] }],
  });
  const perNode = ['node-0', 'node-1', 'node-2', 'node-3'].map(
    (name) => job.attempts.filter(({ node }) => node === name).length,
  );
  expect(perNode.toSorted((a, b) => a - b)).toEqual([1, 1, 2, 2]);
});

// Alone 10 s; beside another on the same host, at a contention of 1, both at half speed.
it.each([
  ['on hosts of their own', 1, 10_000],
  ['on one host', 2, 20_000],
])('slows nodes %s by what else their host runs', async (_, perHost, expectedMs) => {
  const job = await runOne({
    cluster: { placement: 'spread', contention: 1, nodes: [{ count: 2, perHost }] },
    scheduler: atOnce,
    jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 2, workMs: 10_000 }] }],
  });
  expect(job.completedAtMs).toBe(expectedMs);
});

it('speeds a node up when its neighbour falls idle', async () => {
  const job = await runOne({
    cluster: { placement: 'spread', nodes: [{ count: 2, perHost: 2, contention: 1 }] },
    scheduler: atOnce,
    jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 2, workMs: [4_000, 10_000] }] }],
  });
  // Both at half speed for 8 s; then 6 s of work are left for one alone.
  expect(job.completedAtMs).toBe(14_000);
});

it.each([
  ['largest-first', 9_000],
  ['by-index', 12_000],
] as const)('launches %s where the scenario says so', async (launchOrder, expectedMs) => {
  const worksMs = [3_000, 3_000, 3_000, 9_000];
  const job = await runOne({
    cluster: { nodes: [{ count: 2 }] },
    scheduler: atOnce,
    jobs: [{ launchOrder, stages: [{ name: 'map', tasks: 4, workMs: worksMs, inputBytes: worksMs }] }],
  });
  expect(job.completedAtMs).toBe(expectedMs);
});
