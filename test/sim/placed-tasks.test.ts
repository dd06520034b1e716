import { describe, expect, it } from 'vitest';
import type { PolicyName } from '../../src/contracts/policy-names.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import { parseScenario, type ScenarioInput } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { someOf } from '../support/draws.ts';
import { atOnce, everythingFails, runOne, scenarioOf } from './scenarios.ts';

const mega = 1_000_000;

/** Three zones of ten nodes each, which send and take 1 MB/s in all. Nodes go round the zones, the first is taken first. */
const cluster = (count = 30): ScenarioInput['cluster'] => ({
  nodes: [{ count }],
  placement: 'in-order',
  zones: ['a', 'b', 'c'].map((name) => ({ name, upBytesPerS: mega, downBytesPerS: mega })),
  keepsOutputs: true,
});

/** Map tasks of 1 s on nodes 0, 1, 2, and so in zones a, b, c; then ten reduce tasks, which read 1 MB each and work for 1 s, or as long as is said. */
const reduceOf = (
  policy: PolicyName,
  outputs: readonly number[],
  { nodes, workMs = 1_000 }: { readonly nodes?: number; readonly workMs?: number } = {},
): ScenarioInput => ({
  cluster: cluster(nodes),
  scheduler: atOnce,
  jobs: [
    {
      policy,
      worker: { kind: 'fargate', size: 'medium' },
      stages: [
        {
          ...{ name: 'map', tasks: outputs.length, workMs: 1_000 },
          outputBytes: outputs.map((share) => share * mega),
        },
        {
          ...{ name: 'reduce', tasks: 10, upstream: ['map'], network: true, workMs },
          inputBytes: mega,
        },
      ],
    },
  ],
});

/** First attempts of reduce tasks in each zone. */
const zonesOf = ({ attempts }: JobOutcome): number[] =>
  [0, 1, 2].map(
    (zone) => attempts.filter((each) => each.stage === 1 && each.number === 0 && each.zone === zone).length,
  );

/** The network's events are at whole milliseconds, at or after the moment itself. */
function expectEnd({ completedAtMs }: JobOutcome, exactMs: number): void {
  expect(completedAtMs).toBeGreaterThanOrEqual(exactMs);
  expect(completedAtMs).toBeLessThanOrEqual(exactMs + 2);
}

describe('reduce tasks whose input lies unevenly in three zones', () => {
  // Four, three and three tasks: of zone a's 6 MB 3.6 leave it for the six tasks elsewhere.
  it('are spread without placement, and wait for the link of the zone that holds most', async () => {
    const job = await runOne(reduceOf('none', [6, 2, 2]));
    expect(zonesOf(job)).toEqual([4, 3, 3]);
    expectEnd(job, 1_000 + 3_600 + 1_000);
  });

  // Of the divisions with six tasks in zone a the first: 6 MB x 4/10 leave that, 6 x 0.4 MB enter it, 3 x 0.8 MB zone b.
  // Five would have 3 MB leave zone a, seven 2.8 MB enter it.
  it('are placed under mantri, and end sooner', async () => {
    const job = await runOne(reduceOf('mantri', [6, 2, 2]));
    expect(zonesOf(job)).toEqual([6, 3, 1]);
    expectEnd(job, 1_000 + 2_400 + 1_000);
  });

  // Its copies of zone b's tasks, which seem to lag after two seconds, read over the same links, in vain: that costs half a second
  // of the 1.2 that are gained, and where tasks work for 1 s all of it. Without placement the two end at 7.6 and 6.8 s.
  it('are placed alike under outrider, and end sooner than without placement', async () => {
    const uneven = await runOne(reduceOf('outrider', [6, 2, 2], { workMs: 3_000 }));
    expect(zonesOf(uneven)).toEqual([6, 3, 1]);
    expect(uneven.completedAtMs).toBeLessThan(7_000);
    const heavy = await runOne(reduceOf('outrider', [8, 1, 1]));
    expect(heavy.completedAtMs).toBeLessThan(4_000);
  });

  it('read nothing over any link where all lies in one zone', async () => {
    const job = await runOne(reduceOf('mantri', [10]));
    expect(zonesOf(job)).toEqual([10, 0, 0]);
    expectEnd(job, 2_000);
  });

  it('run elsewhere where the zone has no room, at once', async () => {
    const job = await runOne(reduceOf('mantri', [10], { nodes: 12 }));
    expect(zonesOf(job)).toEqual([4, 3, 3]);
    const first = job.attempts.filter(({ stage, number }) => stage === 1 && number === 0);
    expect(first.map(({ takenAtMs }) => takenAtMs)).toEqual(first.map(() => 1_000));
  });
});

describe('a job with placed tasks where everything fails', () => {
  const [group] = everythingFails.jobs;
  const stages = group?.stages ?? [];
  const scenario = scenarioOf({
    ...everythingFails,
    cluster: { ...everythingFails.cluster, keepsOutputs: true },
    jobs: [{ ...group, policy: 'outrider', worker: { kind: 'fargate', size: 'medium' }, stages }],
  });

  it.each(someOf(['1', '2', '3', '4']))('keeps every rule, and goes alike again, seed %s', async (seed) => {
    const [one, other] = [await simulate(scenario, { seed }), await simulate(scenario, { seed })];
    expect(one).toEqual(other);
    expect(one.jobs).toHaveLength(4);
    for (const { state, error } of one.jobs)
      if (state !== 'succeeded') expect(error).toMatch(/failed 4 times/);
  });
});

describe('a cluster whose outputs stay with their workers', () => {
  it('has all stages on Fargate', () => {
    expect(() =>
      parseScenario({ cluster: cluster(), jobs: [{ stages: [{ name: 'map', tasks: 1, workMs: 1 }] }] }),
    ).toThrow('cluster.keepsOutputs must be left out where not all stages of all jobs are on Fargate');
  });
});

/** Thirty tasks of 20 s on nodes of three zones, of which the first is six times slower. */
const inSlowZone = (policy: PolicyName, locationFactor: boolean): ScenarioInput => ({
  cluster: {
    nodes: [
      { count: 20, zone: 'a', speed: 1 / 6 },
      { count: 20, zone: 'b' },
      { count: 20, zone: 'c' },
    ],
    zones: [{ name: 'a' }, { name: 'b' }, { name: 'c' }],
    keepsOutputs: true,
  },
  scheduler: { tickMs: 500 },
  jobs: [
    {
      policy,
      policyConfig: { mantri: { locationFactor } },
      worker: { kind: 'fargate', size: 'medium' },
      stages: [{ name: 'work', tasks: 30, workMs: 20_000, inputBytes: mega }],
    },
  ],
});

/** The job of a scenario with the location factor, and without. */
const onAndOff = async (
  scenario: typeof inSlowZone,
  policy: PolicyName,
  seed: string,
): Promise<readonly [JobOutcome, JobOutcome]> => [
  await runOne(scenario(policy, true), seed),
  await runOne(scenario(policy, false), seed),
];

/** Attempts in each zone, first ones and others. */
const byZone = ({ attempts }: JobOutcome): { readonly first: number[]; readonly copies: number[] } => {
  const count = (wanted: typeof attempts): number[] =>
    [0, 1, 2].map((zone) => wanted.filter((each) => each.zone === zone).length);
  return {
    first: count(attempts.filter(({ number }) => number === 0)),
    copies: count(attempts.filter(({ number }) => number > 0)),
  };
};

describe.each(['mantri', 'outrider'] as const)(
  'a zone six times slower than two others, under %s',
  (policy) => {
    it('gets no copies of its nine tasks, which end a few seconds after the others', async () => {
      const job = await runOne(inSlowZone(policy, true));
      const { first, copies } = byZone(job);
      expect(first).toEqual([9, 10, 11]);
      expect(copies).toEqual([0, 4, 5]);
      expect(job.completedAtMs).toBe(23_000);
    });

    it.each(['1', '2', '3', '4', '5'])(
      'lets them end sooner than copies in any zone do, seed %s',
      async (seed) => {
        const [on, off] = await onAndOff(inSlowZone, policy, seed);
        expect(byZone(on).copies[0]).toBe(0);
        expect(byZone(off).copies[0]).toBeGreaterThan(0);
        expect(on.completedAtMs).toBeLessThan(off.completedAtMs);
        expect(on.attempts.length).toBeLessThan(off.attempts.length);
      },
    );
  },
);

/** Four waves of thirty tasks of 20 s each, in zones that have room for all of them. */
const inWaves = (policy: PolicyName, locationFactor: boolean): ScenarioInput => {
  const scenario = inSlowZone(policy, locationFactor);
  const nodes = scenario.cluster.nodes.map((group) => ({ ...group, count: 60 }));
  const jobs = scenario.jobs.map((job) => ({
    ...job,
    stages: job.stages.map((stage) => ({ ...stage, tasks: 120 })),
  }));
  return {
    ...scenario,
    cluster: { ...scenario.cluster, nodes },
    scheduler: { ...scenario.scheduler, totalSlots: 30 },
    jobs,
  };
};

/** First attempts in the slow zone of tasks that had to wait for others. */
const lateInSlowZone = ({ attempts }: JobOutcome): number =>
  attempts.filter(({ number, zone, takenAtMs }) => number === 0 && zone === 0 && takenAtMs > 0).length;

describe.each(['mantri', 'outrider'] as const)(
  'a stage of four waves beside a slow zone, under %s',
  (policy) => {
    it.each(['1', '2', '3'])(
      'begins no task there once that is known, and ends sooner, seed %s',
      async (seed) => {
        const [on, off] = await onAndOff(inWaves, policy, seed);
        expect(lateInSlowZone(on)).toBe(0);
        expect(lateInSlowZone(off)).toBeGreaterThan(10);
        expect(on.completedAtMs).toBeLessThan(off.completedAtMs);
      },
    );

    it('begins tasks in all zones alike where none is slow', async () => {
      const scenario = inWaves(policy, true);
      const nodes = scenario.cluster.nodes.map((group) => ({ ...group, speed: 1 }));
      const at = async (locationFactor: boolean): Promise<JobOutcome> =>
        runOne({ ...inWaves(policy, locationFactor), cluster: { ...scenario.cluster, nodes } });
      expect(await at(true)).toEqual(await at(false));
    });
  },
);

/** Two stages of thirty tasks of 20 s each beside a zone six times slower, whose intermediate data is in storage without zones. */
const inStages = (policy: PolicyName, locationFactor: boolean): ScenarioInput => {
  const scenario = inSlowZone(policy, locationFactor);
  const { nodes, zones } = scenario.cluster;
  const stages = [
    { name: 'work', tasks: 30, workMs: 20_000, outputBytes: 1_000 },
    { name: 'then', tasks: 30, upstream: ['work'], workMs: 20_000 },
  ];
  return {
    ...scenario,
    // So many that few of the slow ones have shown that they are.
    cluster: { zones, nodes: nodes.map((group) => ({ ...group, count: 200 })) },
    jobs: scenario.jobs.map((job) => ({ ...job, stages })),
  };
};

/** Tasks of the second stage that began in the slow zone. */
const secondInSlowZone = ({ attempts }: JobOutcome): number =>
  attempts.filter(({ stage, number, zone }) => stage === 1 && number === 0 && zone === 0).length;

describe.each(['mantri', 'outrider'] as const)('a stage after one beside a slow zone, under %s', (policy) => {
  // Seeds by which more than five of thirty places that are drawn without it lie there.
  it.each(['2', '3', '4', '5', '6'])('begins no task there, and ends sooner, seed %s', async (seed) => {
    const [on, off] = await onAndOff(inStages, policy, seed);
    expect(secondInSlowZone(on)).toBe(0);
    expect(secondInSlowZone(off)).toBeGreaterThan(5);
    expect(on.completedAtMs).toBeLessThan(off.completedAtMs);
  });
});

/** A job of one stage beside a slow zone, and one as much later. */
const oneAfterAnother = (policy: PolicyName, locationFactor: boolean, laterMs: number): ScenarioInput => {
  const scenario = inSlowZone(policy, locationFactor);
  const { nodes, zones } = scenario.cluster;
  const [job] = scenario.jobs;
  return {
    ...scenario,
    cluster: { zones, nodes: nodes.map((group) => ({ ...group, count: 200 })) },
    jobs: [0, laterMs].map((atMs) => ({
      ...job,
      stages: job?.stages ?? [],
      arrivals: { kind: 'list' as const, atMs: [atMs] },
    })),
  };
};

/** First attempts that began in the slow zone, of each job. */
const firstInSlowZone = (jobs: readonly JobOutcome[]): number[] =>
  jobs.map(({ attempts }) => attempts.filter(({ number, zone }) => number === 0 && zone === 0).length);

describe.each(['mantri', 'outrider'] as const)('a job after one beside a slow zone, under %s', (policy) => {
  const minuteMs = 60_000;
  const run = async (locationFactor: boolean, laterMs: number, seed: string) =>
    (await simulate(scenarioOf(oneAfterAnother(policy, locationFactor, laterMs)), { seed })).jobs;

  it.each(['1', '2', '3', '4', '5'])('begins no task there, and ends sooner, seed %s', async (seed) => {
    const [on, off] = [await run(true, 5 * minuteMs, seed), await run(false, 5 * minuteMs, seed)];
    const [first = 0, second] = firstInSlowZone(on);
    expect(first).toBeGreaterThan(5);
    expect(second).toBe(0);
    expect(firstInSlowZone(off)[1]).toBeGreaterThan(5);
    const took = (jobs: readonly JobOutcome[]): number =>
      (jobs[1]?.completedAtMs ?? 0) - (jobs[1]?.arrivedAtMs ?? 0);
    expect(took(on)).toBeLessThan(took(off));
  });

  it('tries it again once the word of it is old', async () => {
    const [, second] = firstInSlowZone(await run(true, 20 * minuteMs, '1'));
    expect(second).toBeGreaterThan(5);
  });
});

/** Jobs of four tasks, which tell how often copies straggle, and of one by turns; beside a slow zone, or where zones are alike. */
const clonedJobs = (policy: PolicyName, slowZone: boolean): ScenarioInput => {
  const { cluster, scheduler } = inSlowZone(policy, true);
  const nodes = cluster.nodes.map((group) => ({ ...group, speed: slowZone ? (group.speed ?? 1) : 1 }));
  return {
    ...{ cluster: { ...cluster, nodes }, scheduler },
    jobs: Array.from({ length: 60 }, (_, place) => ({
      policy,
      policyConfig: { dolly: { budgetShare: 1, utilizationCeiling: 1, mostClones: 2, minAttempts: 20 } },
      worker: { kind: 'fargate', size: 'medium' } as const,
      arrivals: { kind: 'list' as const, atMs: [place * 200_000] },
      stages: [
        {
          ...{ name: 'map', tasks: place % 2 === 0 ? 4 : 1, workMs: 20_000 },
          slowdown: { kind: 'mixture' as const, probability: 0.2, outlier: 8, usual: 1 },
        },
      ],
    })),
  };
};

describe.each(['outrider', 'dolly'] as const)('a task and its clone under %s', (policy) => {
  it.each([true, false])('run in two zones, whether one is slow (%s) or none', async (slowZone) => {
    const { jobs } = await simulate(scenarioOf(clonedJobs(policy, slowZone)), { seed: '1' });
    const pairs = jobs.flatMap(({ attempts }) =>
      [...Map.groupBy(attempts, ({ task }) => task).values()].flatMap((ofTask) => {
        const pair = ofTask.filter(({ reason }) => reason === 'first' || reason === 'clone');
        return pair.length < 2 ? [] : [pair.map(({ zone }) => zone)];
      }),
    );
    expect(pairs.length).toBeGreaterThan(10);
    expect(pairs.filter((zones) => new Set(zones).size !== 2)).toEqual([]);
  });
});

describe('a zone where copies would run and that has no room', () => {
  it('has them run elsewhere', async () => {
    const scenario = inSlowZone('mantri', true);
    const nodes = [
      { count: 40, zone: 'a', speed: 1 / 6 },
      { count: 1, zone: 'b' },
      { count: 1, zone: 'c' },
    ];
    const job = await runOne({ ...scenario, cluster: { ...scenario.cluster, nodes } });
    expect(job.state).toBe('succeeded');
    // Whatever is not in the two nodes of b and c.
    expect(byZone(job).copies[0]).toBeGreaterThan(0);
  });
});
