import { describe, expect, it } from 'vitest';
import { attemptIdOf } from '../../src/contracts/ids.ts';
import type { PolicyConfigInput } from '../../src/contracts/policy-config.ts';
import { completionMsOf, slotTimeOf } from '../../src/sim/metrics.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import type { ScenarioInput } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { clusterBench } from './cluster-bench.ts';
import { atOnce, everythingFails, runOne, scenarioOf } from './scenarios.ts';

/** r: it takes 10 s at B, 1 MB/s. */
const outputBytes = 10e6;
const nodeLinks = { upBytesPerS: 1e6 };
const quiet = { everyMs: 3_600_000, tenths: false };

type StageInput = ScenarioInput['jobs'][number]['stages'][number];

/** Nodes of one slot each, and of each the same up link; the first free node is taken. */
const onNodes = (count: number, ...stages: StageInput[]): ScenarioInput => ({
  cluster: { nodes: [{ count }], placement: 'in-order', nodeLinks },
  scheduler: atOnce,
  reports: quiet,
  jobs: [{ policy: 'none', stages }],
});

const map = (more: Partial<StageInput> = {}): StageInput => ({
  name: 'map',
  tasks: 1,
  workMs: 1_000,
  outputBytes,
  ...more,
});
/** Takes no time but for reading. */
const reduce = (more: Partial<StageInput> = {}): StageInput => ({
  name: 'reduce',
  tasks: 1,
  upstream: ['map'],
  workMs: 0,
  network: true,
  inputBytes: outputBytes,
  ...more,
});

const original = attemptIdOf('map', 0, 0);
const clone = attemptIdOf('map', 0, 1);
const readers = [attemptIdOf('reduce', 0, 0), attemptIdOf('reduce', 0, 1)] as const;
const ownCopy = { map: { 0: 1 } };

describe('two clones that read one upstream output', () => {
  /** Seconds until each reader is done, since the first began; the second began `waitS` later. */
  async function readS(waitS: number, copies?: typeof ownCopy): Promise<number[]> {
    const { launchAt, run } = clusterBench(onNodes(4, map(), reduce()));
    launchAt(0, original, { node: 0 });
    launchAt(0, clone, { node: 1, keepOutput: true });
    launchAt(2_000, readers[0], { node: 2 });
    launchAt(2_000 + waitS * 1_000, readers[1], { node: 3, ...(copies === undefined ? {} : { copies }) });
    const outcomeOf = await run();
    return readers.map((reader) => outcomeOf(reader).atMs / 1_000 - 2);
  }

  // Ground truth §4.4: r = 10, B = 1, α = 0.5.
  it.each([
    { waitS: 0, shared: [20, 20], own: [10, 10] },
    { waitS: 4, shared: [16, 20], own: [10, 14] },
    { waitS: 8, shared: [12, 20], own: [10, 18] },
    { waitS: 10, shared: [10, 20], own: [10, 20] },
  ])(
    'take the closed form after ω = $waitS s, from one copy and from two',
    async ({ waitS, shared, own }) => {
      expect(await readS(waitS)).toEqual(shared);
      expect(await readS(waitS, ownCopy)).toEqual(own);
    },
  );

  it('say how many bytes they fetched and for how long, whatever they did besides', async () => {
    const { launchAt, run } = clusterBench(
      onNodes(4, map({ network: true, inputBytes: 1 }), reduce({ attemptsMs: [[3_000, 100_000]] })),
    );
    launchAt(0, original, { node: 0 });
    launchAt(2_000, readers[0], { node: 1 });
    launchAt(7_000, readers[1], { node: 2 });
    const outcomeOf = await run();
    // 5 MB alone in 5 s, the rest at half the rate in 10 s; then 3 s of work.
    expect(outcomeOf(readers[0])).toMatchObject({
      ending: 'won',
      atMs: 20_000,
      record: {
        progress: { bytesRead: 10e6, fetched: { bytes: 10e6, ms: 15_000 }, phaseMs: { compute: 3_000 } },
      },
    });
    expect(outcomeOf(original).record?.progress).not.toHaveProperty('fetched');
  });

  it('have fetched what has arrived by then where they end before', async () => {
    const reports = { everyMs: 4_000, tenths: false };
    const { launchAt, cancelAt, run } = clusterBench({ ...onNodes(4, map(), reduce()), reports });
    launchAt(0, original, { node: 0 });
    launchAt(2_000, readers[0], { node: 1 });
    cancelAt(3_000, readers[0]);
    expect((await run())(readers[0])).toMatchObject({
      ending: 'cancelled',
      record: { state: 'cancelled', progress: { phase: 'read', fetched: { bytes: 4e6, ms: 4_000 } } },
    });
  });
});

describe('an output of which another copy is already there', () => {
  it('stays as a replica where its launch says so, and ends well', async () => {
    const { launchAt, run } = clusterBench(onNodes(4, map({ attemptsMs: [[1_000, 3_000]] }), reduce()));
    launchAt(0, original, { node: 0 });
    launchAt(0, clone, { node: 1, keepOutput: true });
    expect((await run())(clone)).toMatchObject({ ending: 'kept', atMs: 3_000, record: { state: 'done' } });
  });

  it('goes where it does not', async () => {
    const { launchAt, run } = clusterBench(onNodes(4, map({ attemptsMs: [[1_000, 3_000]] }), reduce()));
    launchAt(0, original, { node: 0 });
    launchAt(0, clone, { node: 1 });
    launchAt(4_000, readers[0], { node: 2, copies: ownCopy });
    await expect(run()).rejects.toThrow(/not there/);
  });

  it('is read by those alone that are told to', async () => {
    // Two map tasks; of the first alone there is a replica, on node 2.
    const { launchAt, run } = clusterBench(onNodes(6, map({ tasks: 2 }), reduce({ inputBytes: 20e6 })));
    launchAt(0, original, { node: 0 });
    launchAt(0, attemptIdOf('map', 1, 0), { node: 1 });
    launchAt(2_000, clone, { node: 2, keepOutput: true });
    launchAt(10_000, readers[0], { node: 4 });
    launchAt(10_000, readers[1], { node: 5, copies: ownCopy });
    const outcomeOf = await run();
    // Both read 10 MB of either task. They share the second task's link, at half the rate, and no other.
    expect(readers.map((reader) => outcomeOf(reader).atMs)).toEqual([30_000, 30_000]);
  });
});

/** When each attempt of a stage left, by task. */
const endsOf = (job: JobOutcome, stage: number): number[] =>
  job.attempts
    .filter((each) => each.stage === stage)
    .toSorted((a, b) => a.task - b.task)
    .map(({ leftAtMs }) => leftAtMs);

describe('nodes with links of their own', () => {
  it.each([2, 5, 20])(
    'share the up link of the one that is read: %i readers, one of them on it',
    async (tasks) => {
      const job = await runOne(onNodes(20, map(), reduce({ tasks })));
      const others = Array.from({ length: tasks - 1 }, () => 1_000 + (tasks - 1) * 10_000);
      expect(endsOf(job, 1)).toEqual([1_000, ...others]);
    },
  );

  it('pass no link where they read what they have made, however slow one flow may be', async () => {
    const scenario = onNodes(1, map(), reduce());
    const job = await runOne({ ...scenario, cluster: { ...scenario.cluster, flowBytesPerS: 1 } });
    expect(endsOf(job, 1)).toEqual([1_000]);
  });

  it('share their own down link among those that they read', async () => {
    const scenario = onNodes(3, map({ tasks: 3 }), reduce({ inputBytes: 30e6 }));
    const of = (downBytesPerS?: number) =>
      runOne({
        ...scenario,
        cluster: {
          ...scenario.cluster,
          nodeLinks: { ...nodeLinks, ...(downBytesPerS === undefined ? {} : { downBytesPerS }) },
        },
      });
    // A third of the 30 MB lies here; the other two come at 1 MB/s each, or at that together.
    expect(endsOf(await of(), 1)).toEqual([11_000]);
    expect(endsOf(await of(1e6), 1)).toEqual([21_000]);
  });

  it('send sources from one of them', async () => {
    const source = { name: 'map', tasks: 1, workMs: 0, network: true, inputBytes: 10e6 };
    const ends = new Set<number>();
    for (const seed of ['1', '2', '3', '4', '5', '6', '7', '8']) {
      for (const end of endsOf(await runOne(onNodes(2, source), seed), 0)) ends.add(end);
    }
    expect([...ends].toSorted((a, b) => a - b)).toEqual([0, 10_000]);
  });
});

describe('a task reads', () => {
  const of = async (maps: StageInput, reduces: StageInput, downBytesPerS?: number): Promise<number[]> => {
    const scenario = onNodes(4, maps, reduces);
    const links = { ...nodeLinks, ...(downBytesPerS === undefined ? {} : { downBytesPerS }) };
    return endsOf(await runOne({ ...scenario, cluster: { ...scenario.cluster, nodeLinks: links } }), 1);
  };

  // Task i of either stage runs on node i.
  it('only its own upstream task, one to one', async () => {
    const ends = await of(map({ tasks: 4 }), reduce({ tasks: 4, pattern: 'one-to-one' }));
    expect(ends).toEqual([1_000, 1_000, 1_000, 1_000]);
  });

  it('its group of upstream tasks, many to one', async () => {
    const ends = await of(map({ tasks: 4 }), reduce({ tasks: 2, pattern: 'many-to-one' }), 1e6);
    // The first of two reads nodes 0 (its own) and 1, the second nodes 2 and 3.
    expect(ends).toEqual([6_000, 11_000]);
  });

  it('all upstream tasks, all to all', async () => {
    const ends = await of(map({ tasks: 2 }), reduce({ tasks: 2 }));
    expect(ends).toEqual([6_000, 6_000]);
  });

  it('of each as much as it has of what is read together', async () => {
    const outputs = map({ tasks: 4, outputBytes: [30e6, 10e6, 10e6, 0] });
    const ends = await of(outputs, reduce({ tasks: 1, inputBytes: 50e6 }));
    // 30 MB lie here, the others send 10, 10 and nothing.
    expect(ends).toEqual([11_000]);
  });

  it('of each as much as of the others where none has any', async () => {
    const ends = await of(map({ tasks: 4, outputBytes: 0 }), reduce({ tasks: 1, inputBytes: 40e6 }));
    expect(ends).toEqual([11_000]);
  });
});

describe('clones with a scheduler', () => {
  type Dolly = NonNullable<PolicyConfigInput['dolly']>;

  /** Two clones of each task; so many nodes that no reader meets what it reads on its own. */
  const cloned = (dolly: Dolly, ...stages: StageInput[]): ScenarioInput => ({
    cluster: { nodes: [{ count: 1_000 }], nodeLinks },
    scheduler: atOnce,
    reports: { everyMs: 1_000, tenths: false },
    jobs: [
      {
        policy: 'dolly',
        policyConfig: {
          dolly: {
            mostClones: 2,
            straggleRisk: 1e-9,
            budgetShare: 1,
            utilizationCeiling: 1,
            otherwise: 'none',
            ...dolly,
          },
        },
        stages,
      },
    ],
  });
  // The second copy of the output comes 4 s after the first; then 10 s to read it alone.
  const stages = [map({ attemptsMs: [[10_000, 14_000]] }), reduce()];

  // Ground truth §4.4: r/B; 2 r/B; and ω + (r - B ω) / (α B) of the first reader where the second waits in vain.
  it.each<{ what: string; dolly: Dolly; endMs: number; kept: number }>([
    { what: 'contention', dolly: { assignment: 'cc' }, endMs: 30_000, kept: 0 },
    { what: 'avoidance', dolly: { assignment: 'cac' }, endMs: 20_000, kept: 1 },
    { what: 'a long wait', dolly: { assignment: 'delay', assignmentWaitMs: 5_000 }, endMs: 20_000, kept: 1 },
    { what: 'a short one', dolly: { assignment: 'delay', assignmentWaitMs: 3_000 }, endMs: 27_000, kept: 0 },
  ])('end by the closed form with $what', async ({ dolly, endMs, kept }) => {
    const job = await runOne(cloned(dolly, ...stages));
    expect(job).toMatchObject({ state: 'succeeded', completedAtMs: endMs });
    expect(job.attempts.filter(({ ending }) => ending === 'kept')).toHaveLength(kept);
  });

  it('have wasted the slot time of copies that are kept', async () => {
    const job = await runOne(cloned({ assignment: 'cac' }, ...stages));
    // The copy that was kept, 14 s, and the reader of it, from 14 s to 20 s.
    expect(slotTimeOf(job)).toEqual({ usedMs: 10_000 + 14_000 + 10_000 + 6_000, wastedMs: 14_000 + 6_000 });
  });

  it('read only their own upstream task one to one, each its own copy of it', async () => {
    const tasks = 3;
    const attemptsMs = [[10_000], [10_000, 12_000], [10_000]];
    const job = await runOne(
      cloned({ assignment: 'cac' }, map({ tasks, attemptsMs }), reduce({ tasks, pattern: 'one-to-one' })),
    );
    // The clone of the second task alone waits for its copy; none of them shares a link.
    expect(job.completedAtMs).toBe(20_000);
    const clones = job.attempts.filter(({ stage, number }) => stage === 1 && number === 1);
    expect(clones.map(({ task, takenAtMs }) => [task, takenAtMs]).toSorted()).toEqual([
      [0, 10_000],
      [1, 12_000],
      [2, 10_000],
    ]);
  });

  it('wait all for one where all read all', async () => {
    const tasks = 3;
    const attemptsMs = [[10_000], [10_000, 12_000], [10_000]];
    const job = await runOne(cloned({ assignment: 'cac' }, map({ tasks, attemptsMs }), reduce({ tasks })));
    const clones = job.attempts.filter(({ stage, number }) => stage === 1 && number === 1);
    expect(clones.map(({ takenAtMs }) => takenAtMs)).toEqual([12_000, 12_000, 12_000]);
  });

  it('give the same run for the same seed, and another for another', async () => {
    const scenario = scenarioOf(
      cloned(
        { assignment: 'delay', assignmentWaitMs: 2_000 },
        map({ tasks: 6, workMs: { kind: 'lognormal', median: 8_000, sigma: 0.5 } }),
        reduce({ name: 'combine', tasks: 3, pattern: 'many-to-one', outputBytes: 5e6, workMs: 500 }),
        reduce({ name: 'sort', tasks: 3, upstream: ['combine'], pattern: 'one-to-one', outputBytes: 1 }),
        reduce({ tasks: 2, upstream: ['sort', 'map'] }),
      ),
    );
    const trace = async (seed: string): Promise<string> =>
      (await simulate(scenario, { seed, trace: true })).trace.join('\n');
    const first = await trace('1');
    expect(await trace('1')).toBe(first);
    expect(await trace('2')).not.toBe(first);
    expect(first).toContain(' kept ');
  });

  it.each(
    (['cc', 'cac', 'delay'] as const).flatMap((assignment) =>
      ['1', '2', '3'].map((seed) => ({ assignment, seed })),
    ),
  )('keep every rule though everything fails: $assignment, seed $seed', async ({ assignment, seed }) => {
    const cluster = { ...everythingFails.cluster, zones: [{ name: 'a' }, { name: 'b' }] };
    const dolly: Dolly = { assignment, assignmentWaitMs: 3_000, mostClones: 3, otherwise: 'late' };
    const { jobs } = cloned(
      dolly,
      map({ tasks: 8, workMs: { kind: 'lognormal', median: 6_000, sigma: 0.6 }, network: true }),
      reduce({
        name: 'sort',
        tasks: 8,
        pattern: 'one-to-one',
        outputBytes: { kind: 'uniform', min: 0, max: 9e6 },
      }),
      reduce({ name: 'sum', tasks: 3, upstream: ['sort'], pattern: 'many-to-one', workMs: 500 }),
      reduce({ tasks: 4, upstream: ['sum', 'map'], workMs: 1_000 }),
    );
    const result = await simulate(
      scenarioOf({
        ...everythingFails,
        cluster: { ...cluster, nodeLinks: { upBytesPerS: 20e6, downBytesPerS: 40e6 } },
        jobs: jobs.map((job) => ({ ...job, arrivals: { kind: 'poisson', jobs: 6, meanMs: 10_000 } })),
      }),
      { seed },
    );
    expect(result.jobs).toHaveLength(6);
    expect(result.jobs.flatMap(({ attempts }) => attempts).some(({ ending }) => ending === 'kept')).toBe(
      true,
    );
  });

  it('learn from earlier jobs how long to wait', async () => {
    const spread: StageInput = map({
      workMs: { kind: 'uniform', min: 8_000, max: 14_000 },
      slowdown: { kind: 'uniform', min: 1, max: 1.4 },
    });
    const completionsOf = async (dolly: Dolly): Promise<number[]> => {
      const { jobs, ...world } = cloned(dolly, spread, reduce());
      const arrivals = { kind: 'list' as const, atMs: Array.from({ length: 40 }, (_, job) => job * 60_000) };
      const scenario = scenarioOf({ ...world, jobs: jobs.map((job) => ({ ...job, arrivals })) });
      return (await simulate(scenario, { seed: '1' })).jobs.map(completionMsOf);
    };
    const [learnt, avoiding] = [
      await completionsOf({ assignment: 'delay', priorWaitMs: 1_000 }),
      await completionsOf({ assignment: 'cac' }),
    ];
    // A second copy comes within 6 s, and saves the original 10 s: to wait for it is always best here.
    expect(learnt.slice(0, 10)).not.toEqual(avoiding.slice(0, 10));
    expect(learnt.slice(-10)).toEqual(avoiding.slice(-10));
  });
});
