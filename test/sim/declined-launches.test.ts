import { expect, it } from 'vitest';
import { attemptIdOf } from '../../src/contracts/ids.ts';
import { clusterBench } from './cluster-bench.ts';

const [first, second, third] = [0, 1, 2].map((number) => attemptIdOf('map', 0, number));

it('is declined by a worker on a node that its launch says to avoid, which stays busy for a while', async () => {
  if (first === undefined || second === undefined || third === undefined) throw new Error('no ids');
  const { launchAt, run } = clusterBench({
    cluster: { placement: 'warmest', choosesNodes: false, nodes: [{ count: 2, elastic: true }], startMs: 50 },
    jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 1, workMs: 10_000 }] }],
  });
  const avoid = { nodes: ['node-0-1'], holdMs: 2_000 };
  launchAt(0, first, { avoid });
  // While that node is busy the next launch goes elsewhere; after that it would have come back.
  launchAt(1_000, second, { avoid });
  launchAt(2_060, third, { avoid });
  const outcomeOf = await run();
  expect(outcomeOf(first)).toMatchObject({
    atMs: 2_050,
    ending: 'declined',
    record: { state: 'lost', failure: { cause: 'declined' } },
  });
  expect(outcomeOf(second)).toMatchObject({ atMs: 11_050, ending: 'won', record: { node: 'node-1-1' } });
  expect(outcomeOf(third)).toMatchObject({ ending: 'declined' });
});
