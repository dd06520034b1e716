import { describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../src/contracts/errors.ts';
import { completionMsOf } from '../../src/sim/metrics.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import { parseScenario, type ScenarioInput } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { atOnce, runOne } from './scenarios.ts';

const hadoop = { placement: 'in-order' } as const;

/** How long each attempt of a stage had its slot, in the order in which they left. */
const tookMs = ({ attempts }: JobOutcome, stage: number): number[] =>
  attempts.filter((each) => each.stage === stage).map(({ takenAtMs, leftAtMs }) => leftAtMs - takenAtMs);

describe('attempts that read from the disks of their hosts', () => {
  const oneHost = (tasks: number): ScenarioInput => ({
    cluster: {
      ...hadoop,
      hosts: {},
      nodes: [{ count: 2, perHost: 2, disk: { bytesPerS: 40e6, shares: [0.5] } }],
    },
    scheduler: atOnce,
    jobs: [{ policy: 'none', stages: [{ name: 'map', tasks, workMs: 0, inputBytes: 10e6, network: true }] }],
  });

  it('take as long as the disk does to read and to write', async () => {
    // Read and written on one disk: two streams of 20 MB/s together.
    expect(tookMs(await runOne(oneHost(1)), 0)).toEqual([1_000]);
  });

  it('slow each other down on a host, though on machines of their own', async () => {
    expect(tookMs(await runOne(oneHost(2)), 0)).toEqual([2_000, 2_000]);
  });

  it('read from where the outputs lie, and so off one slow disk wherever they run', async () => {
    const disk = (bytesPerS: number) => ({ count: 1, disk: { bytesPerS } });
    const job = await runOne({
      cluster: { ...hadoop, hosts: {}, nodes: [disk(1e6), disk(1_000e6)] },
      scheduler: atOnce,
      jobs: [
        {
          policy: 'none',
          stages: [
            { name: 'map', tasks: 1, workMs: 10_000, outputBytes: 4e6 },
            { name: 'reduce', tasks: 2, upstream: ['map'], workMs: 0, inputBytes: 4e6, network: true },
          ],
        },
      ],
    });
    // Node 0 made the output. Its own reader passes that disk twice, the other once: a third of 1 MB/s for each pass.
    expect(tookMs(job, 1)).toEqual([12_000, 12_000]);
  });

  it('have a copy of theirs take bandwidth from the original', async () => {
    const scenario = (policy: 'none' | 'hadoop'): ScenarioInput => ({
      cluster: {
        ...hadoop,
        hosts: {},
        nodes: [
          { count: 1, disk: { bytesPerS: 1e6 } },
          { count: 9, disk: { bytesPerS: 1_000e6 } },
        ],
      },
      scheduler: atOnce,
      jobs: [
        {
          policy,
          stages: [
            { name: 'load', tasks: 1, workMs: 1_000, outputBytes: 1 },
            {
              // One has a hundred times as much to read, all of it from the slow disk.
              ...{ name: 'map', tasks: 10, upstream: ['load'], workMs: 10_000, network: true },
              inputBytes: [100e6, ...Array.from({ length: 9 }, () => 1_000)],
            },
          ],
        },
      ],
    });
    const alone = await runOne(scenario('none'));
    const copied = await runOne(scenario('hadoop'));
    const copies = copied.attempts.filter(({ stage, number }) => stage === 1 && number > 0);
    expect(copies).toHaveLength(1);
    expect(completionMsOf(copied)).toBeGreaterThan(completionMsOf(alone) + 20_000);
  });

  it('write to a second host as well where outputs have two replicas', async () => {
    const stages = (replicatesOutput: boolean): ScenarioInput['jobs'][number]['stages'] => [
      { name: 'sort', tasks: 1, workMs: 1_000, outputBytes: 10e6, replicatesOutput },
    ];
    const cluster: ScenarioInput['cluster'] = {
      ...hadoop,
      hosts: { upBytesPerS: 5e6 },
      nodes: [{ count: 2, disk: { bytesPerS: 10e6 } }],
    };
    const took = async (replicates: boolean) =>
      tookMs(
        await runOne({ cluster, scheduler: atOnce, jobs: [{ policy: 'none', stages: stages(replicates) }] }),
        0,
      );
    expect(await took(false)).toEqual([1_000]);
    expect(await took(true)).toEqual([3_000]); // A second of work, and 10 MB at the 5 MB/s of the link.
  });

  it('find a source where its first reader was, or at its replica', async () => {
    const job = await runOne({
      cluster: { ...hadoop, hosts: { upBytesPerS: 1e6 }, nodes: [{ count: 2, disk: { bytesPerS: 10e6 } }] },
      scheduler: atOnce,
      jobs: [
        {
          policy: 'none',
          stages: [
            { name: 'map', tasks: 2, workMs: 0, inputBytes: 10e6, network: true, source: 'at-first-reader' },
          ],
        },
      ],
    });
    // Off the own disk and onto it again at 5 MB/s: no link of 1 MB/s is in the way.
    expect(tookMs(job, 0)).toEqual([2_000, 2_000]);
  });
});

describe('nodes whose speed does not last', () => {
  const scenario = parseScenario({
    cluster: {
      ...hadoop,
      nodes: [{ count: 1, speed: { kind: 'uniform', min: 0.1, max: 2 }, speedLastsMs: 10_000 }],
    },
    scheduler: atOnce,
    jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 40, workMs: 20_000 }] }],
  });

  it('are slow and fast by turns, the same for the same seed', async () => {
    const run = async (seed: string) => tookMs((await simulate(scenario, { seed })).jobs[0] as JobOutcome, 0);
    const first = await run('1');
    expect(new Set(first).size).toBeGreaterThan(20);
    expect(await run('1')).toEqual(first);
    expect(await run('2')).not.toEqual(first);
  });
});

describe('a cluster that says of disks what cannot be', () => {
  const refusal = (cluster: ScenarioInput['cluster']): string => {
    try {
      parseScenario({ cluster, jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 1, workMs: 1 }] }] });
    } catch (error) {
      if (error instanceof InvalidInputError) return error.message;
      throw error;
    }
    return 'none';
  };

  it('is refused', () => {
    const disk = { bytesPerS: 1 };
    expect(refusal({ nodes: [{ count: 1, disk }] })).toContain('cluster.nodes[0].disk must be left out');
    expect(refusal({ nodes: [{ count: 1 }], hosts: {}, nodeLinks: {} })).toContain(
      'cluster.nodeLinks must be left out',
    );
  });
});
