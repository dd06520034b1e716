import { expect, it } from 'vitest';
import { parseScenario, scenarioJsonSchema } from '../../src/sim/scenario.ts';

const smallest = {
  cluster: { nodes: [{ count: 1 }] },
  jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 1, workMs: 1 }] }],
};

it('needs no more than nodes and stages', () => {
  const { cluster, scheduler, reports, jobs } = parseScenario(smallest);
  expect(cluster.nodes).toMatchObject([{ count: 1, slots: 1, speed: 1, elastic: false }]);
  expect(cluster.zones).toEqual([{ name: 'zone-a' }]);
  expect(scheduler).toEqual({
    tickMs: 1_000,
    wakeOnEnd: false,
    looks: true,
    packs: true,
    wakeAfterMs: 0,
    leaseMs: 30_000,
    claimLeaseMs: 60_000,
    cancel: 'cooperative',
  });
  expect(reports).toEqual({ everyMs: 10_000, tenths: true, loss: 0, delayMs: 0 });
  expect(jobs[0]).toMatchObject({ policy: 'none', policyConfig: { late: { speculativeCap: 0.1 } } });
});

it('means the same after a way through JSON', () => {
  const scenario = parseScenario(smallest);
  expect(parseScenario(JSON.parse(JSON.stringify(scenario)))).toEqual(scenario);
});

const job = (...stages: object[]) => ({ ...smallest, jobs: [{ policy: 'none', stages }] });
const stage = (name: string, more: object = {}) => ({ name, tasks: 1, workMs: 1, ...more });

it.each([
  ['an unknown field', { ...smallest, nodes: 3 }, 'nodes'],
  [
    'a zone that is not there',
    { ...smallest, cluster: { nodes: [{ count: 1, zone: 'b' }], zones: [{ name: 'a' }] } },
    'cluster.nodes[0].zone',
  ],
  [
    'a stage that reads a later one',
    job(stage('map', { upstream: ['reduce'] }), stage('reduce')),
    'jobs[0].stages[0].upstream',
  ],
  [
    'a longer limit than Lambda has',
    { ...smallest, cluster: { nodes: [{ count: 1 }], lambdaMs: 900_001 } },
    'cluster.lambdaMs',
  ],
  ['two stages of one name', job(stage('map'), stage('map')), 'jobs[0].stages[1].name'],
  [
    'links of zones beside those of nodes',
    {
      ...smallest,
      cluster: {
        nodes: [{ count: 1 }],
        nodeLinks: {},
        zones: [{ name: 'a' }, { name: 'b', upBytesPerS: 1 }],
      },
    },
    'cluster.zones[1].upBytesPerS',
  ],
  [
    'one to one where there are more',
    job(stage('map', { tasks: 2 }), stage('reduce', { upstream: ['map'], pattern: 'one-to-one' })),
    'jobs[0].stages[1].pattern',
  ],
  [
    'many to one where there are fewer',
    job(stage('map'), stage('reduce', { tasks: 2, upstream: ['map'], pattern: 'many-to-one' })),
    'jobs[0].stages[1].pattern',
  ],
  [
    'two zones of one name',
    { ...smallest, cluster: { nodes: [{ count: 1 }], zones: [{ name: 'a' }, { name: 'b' }, { name: 'a' }] } },
    'cluster.zones[2].name',
  ],
  [
    'work of which the most is less than the least',
    job(stage('map', { workMs: { kind: 'uniform', min: 9, max: 3 } })),
    'jobs[0].stages[0].workMs.min',
  ],
  [
    'progress that takes work back',
    job(
      stage('map', {
        progress: [
          [0.5, 1],
          [0.2, 1],
        ],
      }),
    ),
    'jobs[0].stages[0].progress',
  ],
  [
    'progress that takes input back',
    job(
      stage('map', {
        progress: [
          [0, 0.5],
          [1, 0.2],
        ],
      }),
    ),
    'jobs[0].stages[0].progress',
  ],
  ['a probability above 1', { ...smallest, faults: { lostLaunch: 2 } }, 'faults.lostLaunch'],
  ['an unknown policy', { ...smallest, jobs: [{ ...smallest.jobs[0], policy: 'best' }] }, 'jobs[0].policy'],
])('refuses %s and names the field', (_, data, field) => {
  expect(() => parseScenario(data)).toThrow(
    expect.objectContaining({ name: 'InvalidInput', details: { field } }),
  );
});

it('has a JSON schema', () => {
  expect(scenarioJsonSchema()).toMatchObject({ type: 'object', required: ['cluster', 'jobs'] });
});
