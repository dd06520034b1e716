import { describe, expect, it } from 'vitest';
import { createRng } from '../../src/lib/rng.ts';
import { nodeLuck, normalShare, sampleOn } from '../../src/sim/node-luck.ts';
import { parseScenario } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';

const shares = { node: 0.2, spell: 0.3, spellMs: 60_000 };

it('knows the normal distribution as tables print it', () => {
  for (const [score, share] of [
    [-2, 0.02275],
    [-0.5, 0.308538],
    [0, 0.5],
    [1, 0.841345],
    [1.96, 0.975002],
    [3, 0.99865],
  ] as const)
    expect(normalShare(score)).toBeCloseTo(share, 5);
});

describe("a node's luck", () => {
  const uniform = {
    kind: 'quantiles' as const,
    points: [
      [0, 0],
      [1, 1],
    ] as [number, number][],
  };
  /** Pairs of attempts on many nodes, so far apart in time. */
  const pairs = (apartMs: number): [number, number][] =>
    Array.from({ length: 20_000 }, (_, node) => {
      const rng = createRng(`node-${node}`);
      const draw = (now: number, attempt: string): number =>
        sampleOn(uniform, nodeLuck(shares, rng, 0, now), createRng(`${node}/${attempt}`));
      return [draw(1_000, 'a'), draw(1_000 + apartMs, 'b')];
    });
  const correlation = (all: readonly (readonly [number, number])[]): number => {
    const mean = (of: (pair: readonly [number, number]) => number): number =>
      all.reduce((sum, pair) => sum + of(pair), 0) / all.length;
    const [a, b] = [mean(([x]) => x), mean(([, y]) => y)];
    const spread = Math.sqrt(mean(([x]) => (x - a) ** 2) * mean(([, y]) => (y - b) ** 2));
    return mean(([x, y]) => (x - a) * (y - b)) / spread;
  };
  // Ranks of normals that correlate by r correlate by 6 / π · asin(r / 2).
  const ofRanks = (r: number): number => (6 / Math.PI) * Math.asin(r / 2);

  it('leaves the distribution as it is, over all nodes', () => {
    const drawn = pairs(0)
      .map(([a]) => a)
      .sort((a, b) => a - b);
    for (const share of [0.01, 0.25, 0.5, 0.9, 0.99])
      expect(Math.abs((drawn[Math.floor(share * drawn.length)] ?? 0) - share)).toBeLessThan(0.015);
  });

  it('is shared by attempts of one spell, less by those of two, and not by two lives', () => {
    expect(Math.abs(correlation(pairs(0)) - ofRanks(0.5))).toBeLessThan(0.025);
    expect(Math.abs(correlation(pairs(600_000)) - ofRanks(0.2))).toBeLessThan(0.025);
    const rng = createRng('node');
    expect(nodeLuck(shares, rng, 0, 0).score).not.toBe(nodeLuck(shares, rng, 1, 0).score);
  });
});

it('makes all attempts on a node slow alike where all luck is the node’s', async () => {
  const scenario = parseScenario({
    cluster: { nodes: [{ count: 40, slots: 2, luck: { node: 1, spell: 0, spellMs: 60_000 } }] },
    scheduler: { wakeOnEnd: true },
    jobs: [
      {
        policy: 'none',
        stages: [
          {
            name: 'map',
            tasks: 80,
            workMs: 10_000,
            slowdown: {
              kind: 'quantiles',
              points: [
                [0, 1],
                [1, 5],
              ],
            },
          },
        ],
      },
    ],
  });
  const { jobs } = await simulate(scenario, { seed: '1' });
  const byNode = new Map<string, Set<number>>();
  for (const { node, claimedAtMs = 0, leftAtMs } of jobs[0]?.attempts ?? [])
    byNode.set(node, (byNode.get(node) ?? new Set()).add(leftAtMs - claimedAtMs));
  expect(byNode.size).toBe(40);
  expect([...byNode.values()].map(({ size }) => size)).toEqual(Array.from({ length: 40 }, () => 1));
  expect(new Set([...byNode.values()].flatMap((times) => [...times])).size).toBeGreaterThan(30);
});

it('refuses shares of more than all', () => {
  const nodes = [{ count: 1, luck: { node: 0.8, spell: 0.3, spellMs: 60_000 } }];
  const jobs = [{ policy: 'none', stages: [{ name: 'map', tasks: 1, workMs: 1 }] }];
  expect(() => parseScenario({ cluster: { nodes }, jobs })).toThrow(/luck/);
});
