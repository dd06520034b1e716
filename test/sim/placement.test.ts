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

// Processor sharing: what all slots would use together, over the cores that there are, is how much slower each is.
it.each([
  ['4 tasks on 2 cores, all of them twice as long', 4, [10_000, 10_000, 10_000, 10_000], 20_000],
  ['2 tasks on 2 cores, as if alone', 4, [10_000, 10_000], 10_000],
  ['4 tasks, of which 2 are alone once the others have ended', 4, [2_000, 2_000, 6_000, 6_000], 8_000],
  ['3 tasks on 2 cores, half as long again', 4, [10_000, 10_000, 10_000], 15_000],
])('shares cores among %s', async (_, slots, workMs, expectedMs) => {
  const job = await runOne({
    cluster: { nodes: [{ count: slots }], cores: 2 },
    scheduler: atOnce,
    jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: workMs.length, workMs }] }],
  });
  expect(job.completedAtMs).toBe(expectedMs);
});

// 1/4 + 3 cores wanted on 2: until the three end, after 8 s × 3.25 / 2 = 13 s, the slow one has done 2 s of its 8 s.
it('leaves others the cores that a slow node does not use', async () => {
  const job = await runOne({
    cluster: { nodes: [{ count: 1, speed: 0.25 }, { count: 3 }], placement: 'in-order', cores: 2 },
    scheduler: atOnce,
    jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 4, workMs: 8_000 }] }],
  });
  expect(job.attempts.map(({ leftAtMs }) => leftAtMs).toSorted((a, b) => a - b)).toEqual([
    13_000, 13_000, 13_000, 37_000,
  ]);
});

// 2 + 3 s on each node, then 3 s; the slow one takes four times as long, and for its first as for all of it.
it('does more work for the first attempt of a stage in an environment', async () => {
  const job = await runOne({
    cluster: { nodes: [{ count: 1, speed: 0.25 }, { count: 1 }], placement: 'in-order' },
    scheduler: atOnce,
    jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 4, workMs: 3_000, firstWorkMs: 2_000 }] }],
  });
  expect(job.attempts.map(({ leftAtMs }) => leftAtMs).toSorted((a, b) => a - b)).toEqual([
    5_000, 8_000, 11_000, 20_000,
  ]);
});

it('gives others what a spell keeps a node from using', async () => {
  const job = await runOne({
    cluster: {
      nodes: [{ count: 1, spells: { everyMs: 4_000, lastsMs: 1_000_000, slowdown: 2 } }, { count: 1 }],
      placement: 'in-order',
      cores: 1,
    },
    scheduler: atOnce,
    jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 2, workMs: 6_000 }] }],
  });
  // Each at 1/2 for 4 s; then at 1/3 and 2/3: the 4 s that the fast one has left take it 6 s, in which the slow one does 2
  // of its own 4. It does the others at 1/2: it uses no more of a core that it has alone.
  expect(job.attempts.map(({ leftAtMs }) => leftAtMs).toSorted((a, b) => a - b)).toEqual([10_000, 14_000]);
});

it('runs no more at once than jobs may, however many nodes there are', async () => {
  const job = await runOne({
    cluster: { nodes: [{ count: 8 }] },
    scheduler: { ...atOnce, totalSlots: 2 },
    jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 6, workMs: 5_000 }] }],
  });
  expect(job.completedAtMs).toBe(15_000);
});
