import type { ScenarioInput } from '../sim/scenario.ts';

type Cluster = ScenarioInput['cluster'];
type Stages = ScenarioInput['jobs'][number]['stages'];

/** Writes of as many virtual machines as share a host, each in MB/s and its deviation. Source: LATE Table 4. */
const writers = { 1: [52.1, 13.7], 2: [20.9, 2.7], 4: [10.1, 1.1] } as const;
const aloneMBps = writers[1][0];
/** What its one disk gives two streams of a host in all, three (between) and four. */
const togetherMBps = [2 * writers[2][0], (2 * writers[2][0] + 4 * writers[4][0]) / 2, 4 * writers[4][0]];

/**
 * How much longer Hadoop keeps a disk busy with a byte than `dd` does. The paper tells of its jobs that they take about
 * five minutes, and so does this one without copies. Its Sort of 1 GB a machine on EC2 (408 s at 61.8 MB/s, about six
 * passes over the disk) gives 4.2; with that this job takes less than three minutes, and the rule of Hadoop, which waits
 * for a minute, copies nothing.
 */
const passesPerByte = 7.5;

/** Values above 0 with a mean, and a deviation relative to it. */
const spread = (
  mean: number,
  relative: number,
): { readonly kind: 'lognormal'; readonly median: number; readonly sigma: number } => ({
  kind: 'lognormal',
  median: mean / Math.sqrt(1 + relative ** 2),
  sigma: Math.sqrt(Math.log(1 + relative ** 2)),
});

const hosts = (machines: keyof typeof writers, count: number): Cluster['nodes'][number] => {
  const [meanMBps, deviation] = writers[machines];
  const bytesPerS = (aloneMBps * 1e6) / passesPerByte;
  return {
    count: machines * count,
    slots: 2,
    perHost: machines,
    disk: {
      bytesPerS: spread(bytesPerS, deviation / meanMBps),
      shares: togetherMBps.map((together) => together / aloneMBps),
    },
  };
};

/** Nine hosts of one disk each on a switched gigabit, with fifteen machines. Source: LATE §5.3, Table 5. */
export const testbed: Cluster = {
  placement: 'spread',
  nodes: [hosts(1, 5), hosts(2, 3), hosts(4, 1)],
  hosts: { upBytesPerS: 125e6, downBytesPerS: 125e6 },
};

const machines = 15;
/** As on EC2, nine reducers for ten slots. */
const reduces = 27;
const inputBytes = 64e6;
/** Of each attempt, what is no reading or writing: assumed to be little. */
const work = { workMs: 1_000, slowdown: { kind: 'lognormal', median: 1, sigma: 0.1 } } as const;

/**
 * Sort of 64 MB a machine, in blocks of two replicas: a map reads a block, from its own disk if it is there, and writes
 * as much to its own; a reducer reads a piece of what each map has written, off the disk where that lies and onto its
 * own (a third of its score), sorts (a third), and writes its part to its own disk and to another's (a third).
 */
export const testbedSort: Stages = [
  {
    ...{ name: 'map', tasks: machines, ...work, network: true },
    ...{ inputBytes, outputBytes: inputBytes, source: 'at-first-reader', readShare: 1 },
  },
  {
    ...{ name: 'reduce', upstream: ['map'], tasks: reduces, ...work, network: true },
    inputBytes: (machines * inputBytes) / reduces,
    outputBytes: (machines * inputBytes) / reduces,
    replicatesOutput: true,
    readShare: 1 / 3,
    progress: [
      [0, 0],
      [1, 0.5],
    ],
  },
];
