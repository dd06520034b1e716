import { expect, it } from 'vitest';
import { createRng } from '../../src/lib/rng.ts';
import { NodePool } from '../../src/sim/node-pool.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { laterJob, scenarioOf } from './scenarios.ts';

/** Where a job's attempts run beside an earlier one of so many tasks that has ended before. */
async function placesBeside(
  placement: 'random' | 'spread',
  { tasks, places }: { readonly tasks: number; readonly places?: string },
) {
  const scenario = scenarioOf({
    cluster: { nodes: [{ count: 40, slots: 2 }], placement },
    jobs: [
      { name: 'first', policy: 'none', stages: [{ name: 'map', tasks, workMs: 1_000 }] },
      laterJob({ tasks: 30, workMs: 5_000 }),
    ],
  });
  const { jobs } = await simulate(scenario, { seed: '1', ...(places === undefined ? {} : { places }) });
  const second = jobs.find(({ name }) => name === 'second');
  return Object.fromEntries(second?.attempts.map(({ attemptId, node }) => [attemptId, node]) ?? []);
}

it.each(['random', 'spread'] as const)(
  'attempts come to the same nodes whatever other jobs have taken before: %s',
  async (placement) => {
    const beside = await placesBeside(placement, { tasks: 4 });
    expect(Object.keys(beside)).toHaveLength(30);
    expect(new Set(Object.values(beside)).size).toBeGreaterThan(15);
    expect(await placesBeside(placement, { tasks: 5 })).toEqual(beside);
  },
);

it('draws other places, and nothing else, by another name', async () => {
  const usual = await placesBeside('random', { tasks: 4 });
  expect(await placesBeside('random', { tasks: 4, places: 'others' })).not.toEqual(usual);
});

const poolOf = (count: number): NodePool =>
  new NodePool(
    scenarioOf({
      cluster: { nodes: [{ count }] },
      jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 1, workMs: 1 }] }],
    }).cluster,
    createRng('nodes'),
  );

it('finds the last free node of many, and none where none is free', () => {
  const pool = poolOf(1_000);
  const taken = Array.from({ length: 1_000 }, (_, place) => {
    return pool.take({ luck: createRng(`attempt-${place}`) }, 0)?.node.index;
  });
  expect(new Set(taken).size).toBe(1_000);
  expect(pool.take({ luck: createRng('one more') }, 0)).toBeUndefined();
});

it('leaves all other attempts where they were when one node more is free', () => {
  const [few, more] = [poolOf(1_000), poolOf(1_000)];
  for (let place = 0; place < 990; place++) {
    const luck = createRng(`attempt-${place}`);
    few.take({ luck }, 0);
    more.take({ luck }, 0);
  }
  const [last] = few.nodes.filter(({ busy }) => busy > 0);
  if (last === undefined) throw new Error('all nodes are free');
  const back = more.nodes[last.index];
  if (back === undefined) throw new Error('the pools differ');
  more.release(back, Infinity);
  for (let place = 0; place < 10; place++) {
    // Each takes the node that it would have, or the one that is free besides, and then leaves it.
    const luck = createRng(`other-${place}`);
    const [without, beside] = [few.take({ luck }, 0)?.node, more.take({ luck }, 0)?.node];
    if (without === undefined || beside === undefined) throw new Error('no node is free');
    expect([without.index, last.index]).toContain(beside.index);
    few.release(without, Infinity);
    more.release(beside, Infinity);
  }
});

it('draws each node alike', () => {
  const counts = Array.from({ length: 10 }, () => 0);
  for (let draw = 0; draw < 10_000; draw++) {
    const node = poolOf(10).take({ luck: createRng(`attempt-${draw}`) }, 0)?.node.index ?? 0;
    counts[node] = (counts[node] ?? 0) + 1;
  }
  // A thousand each, and five standard deviations of 30.
  for (const count of counts) expect(Math.abs(count - 1_000)).toBeLessThan(150);
});
