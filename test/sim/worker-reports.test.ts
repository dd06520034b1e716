import { expect, it } from 'vitest';
import { hostOf, hostProfileNames, localHost } from '../../src/sim/host-profiles.ts';
import { parseScenario, type ScenarioInput } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';

const progress: [number, number][] = [
  [0, 0],
  [0.5, 0.5],
  [0.500001, 1],
  [1, 1],
];

const oneTask = (
  workMs: number,
  stage: Partial<ScenarioInput['jobs'][number]['stages'][number]> = {},
): ScenarioInput => ({
  cluster: { nodes: [{ count: 1 }] },
  reports: { cadence: 'worker', everyMs: 10_000 },
  jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 1, workMs, ...stage }] }],
});

async function timesOf(scenario: ScenarioInput, ...kinds: string[]): Promise<number[]> {
  const { trace } = await simulate(parseScenario(scenario), { seed: '1', trace: true });
  return trace.flatMap((line) => {
    const [at, kind = ''] = line.split(' ');
    return kinds.includes(kind) ? [Number(at)] : [];
  });
}

it('has workers report at growing intervals, ten seconds at most, however long the work', async () => {
  const times = await timesOf(oneTask(60_000), 'report');
  const [first = 0, second = 0] = times;
  expect(first).toBeGreaterThanOrEqual(750);
  expect(first).toBeLessThan(1_500);
  expect(second).toBe(4 * first);
  const later = times.slice(2).map((at, place) => at - (times[place + 1] ?? 0));
  expect(later.every((gap) => gap === 10_000)).toBe(true);
  expect(times).toHaveLength(7);
});

it('tells at once, and once, where progress is not as it was foretold', async () => {
  // At 30 s half of it is read, and a moment later all.
  const [news, ...others] = await timesOf(oneTask(60_000, { progress }), 'news');
  expect(others).toEqual([]);
  expect(news).toBeGreaterThan(30_000);
  expect(news).toBeLessThanOrEqual(31_000);
  expect(await timesOf(oneTask(60_000), 'news')).toEqual([]);
});

it('says nothing out of turn of a task without input', async () => {
  expect(await timesOf(oneTask(60_000, { progress, inputBytes: 0 }), 'news')).toEqual([]);
});

it('has a worker learn that it was told to stop within a quarter of its age', async () => {
  // Clones from the start: one ends after 8 s and the other is told to stop.
  const scenario: ScenarioInput = {
    cluster: { nodes: [{ count: 2 }] },
    scheduler: { tickMs: 100 },
    reports: { cadence: 'worker', everyMs: 10_000 },
    jobs: [
      {
        policy: 'dolly',
        policyConfig: {
          dolly: { budgetShare: 1, utilizationCeiling: 1, mostClones: 2, priorStragglerProbability: 0.9 },
        },
        stages: [{ name: 'map', tasks: 1, workMs: 8_000, attemptsMs: [[8_000, 60_000]] }],
      },
    ],
  };
  const { jobs } = await simulate(parseScenario(scenario), { seed: '1' });
  const [won, other] = jobs[0]?.attempts ?? [];
  expect(won).toMatchObject({ ending: 'won', leftAtMs: 8_000 });
  expect(other?.ending).toBe('cancelled');
  expect(other?.leftAtMs).toBeGreaterThan(8_000);
  expect(other?.leftAtMs).toBeLessThanOrEqual(10_100);
});

it.each(hostProfileNames)('runs jobs on the host %s', async (name) => {
  const { wrapUpMs, worker, ...host } = hostOf(name, 4, 10_000);
  const stages = [{ name: 'map', tasks: 8, workMs: 10_000, wrapUpMs }];
  const { jobs, coldStarts } = await simulate(
    parseScenario({ ...host, jobs: [{ policy: 'none', worker, stages }] }),
    { seed: '1' },
  );
  const [job] = jobs;
  expect(job?.state).toBe('succeeded');
  // Two waves, and what Lambda and its stand-in take to begin, to write, and to show how much of it there is; and what
  // Fargate takes to begin, twice.
  const mostMs = { lambda: 26_000, local: 26_000, hadoop: 20_001, fargate: 146_000 };
  expect(job?.completedAtMs).toBeGreaterThanOrEqual(name === 'fargate' ? 80_000 : 20_000);
  expect(job?.completedAtMs).toBeLessThan(mostMs[name]);
  expect(coldStarts).toBe(name === 'lambda' ? 4 : 0);
});

it('lets nobody choose among the environments of Lambda', async () => {
  const { cluster, scheduler } = hostOf('lambda', 4, 1_000);
  expect(
    parseScenario({
      cluster,
      scheduler,
      jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 1, workMs: 1 }] }],
    }),
  ).toMatchObject({
    cluster: { choosesNodes: false, nodes: [{ elastic: true, slots: 1 }] },
    scheduler: { cancel: 'cooperative', wakeOnEnd: false },
  });
});

// Four tasks on two cores take twice as long as on four, and so does each wave of them.
it('has the slots of the local host share its cores', async () => {
  const secondsOn = async (cores: number): Promise<number> => {
    const { cluster, scheduler, reports } = localHost(4, cores);
    const stages = [{ name: 'map', tasks: 8, workMs: 10_000 }];
    const { jobs } = await simulate(
      parseScenario({
        cluster: { ...cluster, startMs: 0 },
        scheduler: { ...scheduler, wakeOnEnd: true },
        reports,
        jobs: [{ policy: 'none', stages }],
      }),
      { seed: '1' },
    );
    return (jobs[0]?.completedAtMs ?? 0) / 1_000;
  };
  expect(await secondsOn(4)).toBe(20);
  expect(await secondsOn(2)).toBe(40);
});
