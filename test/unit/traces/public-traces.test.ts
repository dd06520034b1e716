import { describe, expect, it } from 'vitest';
import { ascending, median } from '../../../src/lib/quantiles.ts';
import {
  HADOOP_LUCK,
  HADOOP_SLOWDOWN,
  SPARK_SLOWDOWN,
} from '../../../src/traces/generators/measured-slowdowns.ts';
import { recordedSlowdowns, slowdownTable } from '../../../src/traces/generators/recorded-slowdowns.ts';
import { normalShare } from '../../../src/sim/node-luck.ts';
import { readTrace } from '../../../src/traces/read-trace.ts';
import type { TraceFormat } from '../../../src/traces/trace-formats.ts';
import { summariseTrace } from '../../../src/traces/trace-summary.ts';
import { taskCount } from '../../../src/traces/trace-job.ts';
import type { TraceJob, TraceTask } from '../../../src/traces/trace-job.ts';
import { hasTraces, jobsOf, traceData } from './trace-files.ts';

if (!hasTraces)
  console.warn('Public traces are not on this machine (set OUTRIDER_TRACES): their tests are skipped.');

async function countsOf(format: TraceFormat, name: string) {
  const counts = { jobs: 0, stages: 0, tasks: 0, edges: 0, upTo10: 0 };
  for await (const job of readTrace(format, traceData(name))) {
    const tasks = taskCount(job);
    counts.jobs++;
    counts.stages += job.stages.length;
    counts.tasks += tasks;
    counts.edges += job.stages.reduce((sum, stage) => sum + stage.upstream.length, 0);
    if (tasks <= 10) counts.upTo10++;
  }
  return counts;
}

// Counts as the READMEs of the traces state them, or as awk counts them.
describe.skipIf(!hasTraces)('public traces', () => {
  it.each<[TraceFormat, string, { jobs: number; tasks?: number; stages?: number; edges?: number }]>([
    ['swim', 'swim-facebook', { jobs: 5894 }],
    ['coflow', 'coflow-facebook', { jobs: 526, stages: 1052, edges: 526 }],
    ['tpch', 'tpch-spark', { jobs: 88, stages: 808 }],
    ['alibaba', 'alibaba2018-dag', { jobs: 28_957, stages: 107_035, tasks: 11_685_050, edges: 83_395 }],
    ['alibaba2017', 'alibaba2017-batch', { jobs: 12_951, stages: 80_553, tasks: 11_909_321 }],
    ['rumen', 'hadoop-rumen', { jobs: 19, stages: 35, tasks: 11_829 }],
    ['spark', 'spark-bdb', { jobs: 13, stages: 29, tasks: 14_443 }],
    ['hawk', 'hawk-traces/YH1_sub.tr.gz', { jobs: 2910, tasks: 122_878 }],
    ['hawk', 'hawk-traces/YH2_sub.tr.gz', { jobs: 3363, tasks: 137_029 }],
    ['hawk', 'hawk-traces/GOOG_subtrace.tr.gz', { jobs: 10_000, tasks: 312_558 }],
  ])('%s: %s has all its jobs', async (format, name, counts) => {
    expect(await countsOf(format, name)).toMatchObject(counts);
  });

  it('has the share of small jobs that is known of each', async () => {
    const share = async (format: TraceFormat, name: string) => {
      const { jobs, upTo10 } = await countsOf(format, name);
      return Math.round((1000 * upTo10) / jobs) / 10;
    };
    expect(await share('swim', 'swim-facebook')).toBe(90.7);
    expect(await share('alibaba', 'alibaba2018-dag')).toBe(61);
    expect(await share('alibaba2017', 'alibaba2017-batch')).toBe(20.8);
    expect(await share('hawk', 'hawk-traces/GOOG_subtrace.tr.gz')).toBe(80.9);
  });

  it('has most bytes of Facebook 2009 in a tenth of its jobs', async () => {
    const summary = await summariseTrace(readTrace('swim', traceData('swim-facebook')));
    expect(summary.smallest90.bytes).toBeCloseTo(0.043187, 6); // By awk, over input, shuffle and output.
    expect(summary.smallest90.tasks).toBeCloseTo(0.023, 3);
  });

  it('has every byte and rack pair of the Facebook shuffles', async () => {
    const totals = { pairs: 0, receivedMib: 0, sentMib: 0 };
    for (const { stages } of await jobsOf('coflow', traceData('coflow-facebook'))) {
      const [maps = [], reduces = []] = stages.map((stage) => stage.tasks);
      totals.pairs += maps.length * reduces.length;
      for (const task of reduces) totals.receivedMib += (task.inputBytes ?? 0) / 1024 ** 2;
      for (const task of maps) totals.sentMib += (task.outputBytes ?? 0) / 1024 ** 2;
    }
    expect(totals.pairs).toBe(706_397);
    expect(totals.receivedMib).toBe(35_533_534);
    expect(totals.sentMib).toBeCloseTo(35_533_534, 3);
  });

  it('has every attempt of the Hadoop jobs', async () => {
    const tasks = (await jobsOf('rumen', traceData('hadoop-rumen'))).flatMap((job) =>
      job.stages.map((stage) => stage.tasks),
    );
    const outcomes = (stage: readonly TraceTask[]) =>
      stage.flatMap((task) => (task.attempts ?? []).map(({ outcome }) => outcome));
    const all = tasks.flatMap(outcomes);
    const count = (outcome: string) => all.filter((other) => other === outcome).length;
    expect([count('succeeded'), count('failed'), count('killed')]).toEqual([8404, 3496, 1096]);
  });

  it('finds the stragglers of the Hadoop attempts: 2.8 % over 1.5, the slowest of a phase at twice its median', async () => {
    const slowdowns = (await jobsOf('rumen', traceData('hadoop-rumen'))).flatMap((job) =>
      job.stages.map((stage) => recordedSlowdowns({ ...job, stages: [stage] })),
    );
    const all = slowdowns.flat();
    expect((100 * all.filter((value) => value > 1.5).length) / all.length).toBeCloseTo(2.8, 1);
    const slowest = slowdowns.flatMap((stage) => ascending(stage).at(-1) ?? []);
    expect(median(slowest)).toBeCloseTo(2, 1);
  });

  it.each([
    ['rumen', 'hadoop-rumen', HADOOP_SLOWDOWN],
    ['spark', 'spark-bdb', SPARK_SLOWDOWN],
  ] as const)('still gives the slowdowns that ship: %s', async (format, name, shipped) => {
    const jobs = await jobsOf(format, traceData(name));
    expect(slowdownTable(jobs.flatMap(recordedSlowdowns))).toEqual(shipped);
  });

  it('still gives what hosts have in common: attempts that start there within a minute, and further apart', async () => {
    const { within, beyond } = hostCorrelations(await jobsOf('rumen', traceData('hadoop-rumen')));
    expect(within).toBeCloseTo(HADOOP_LUCK.node + HADOOP_LUCK.spell, 2);
    expect(beyond).toBeCloseTo(HADOOP_LUCK.node, 2);
  });
});

interface Scored {
  readonly atMs: number;
  readonly score: number;
}

/** The standard normal number that a share of all lies below, by halving. */
function normalAt(share: number): number {
  let [low, high] = [-6, 6];
  for (let step = 0; step < 40; step++) {
    const middle = (low + high) / 2;
    if (normalShare(middle) < share) low = middle;
    else high = middle;
  }
  return low;
}

/** Successful attempts by host: how slow each was for its stage, as the normal score of its rank among all. */
function scoresByHost(jobs: readonly TraceJob[]): Map<string, Scored[]> {
  const all = jobs.flatMap(({ stages }) =>
    stages.flatMap(({ tasks }) => {
      const ended = tasks.flatMap(
        ({ attempts }) => attempts?.find(({ outcome }) => outcome === 'succeeded') ?? [],
      );
      const middleMs = median(ended.flatMap(({ durationMs }) => durationMs ?? [])) ?? 0;
      if (ended.length < 5 || middleMs === 0) return [];
      return ended.map(({ node = '', startedAtMs = 0, durationMs = 0 }) => ({
        node,
        atMs: startedAtMs,
        slowdown: durationMs / middleMs,
      }));
    }),
  );
  all.sort((a, b) => a.slowdown - b.slowdown);
  const byHost = new Map<string, Scored[]>();
  for (const [rank, { node, atMs }] of all.entries()) {
    const there = byHost.get(node) ?? [];
    byHost.set(node, there);
    there.push({ atMs, score: normalAt((rank + 0.5) / all.length) });
  }
  return byHost;
}

/** By how much scores of one host correlate, over its pairs of attempts. */
function hostCorrelations(jobs: readonly TraceJob[]): { readonly within: number; readonly beyond: number } {
  const sums = [0, 1].map(() => ({ joint: 0, square: 0 }));
  for (const there of scoresByHost(jobs).values()) {
    for (const [place, a] of there.entries()) {
      for (const b of there.slice(0, place)) {
        const sum = sums[Math.abs(a.atMs - b.atMs) < HADOOP_LUCK.spellMs ? 0 : 1];
        if (sum === undefined) continue;
        sum.joint += a.score * b.score;
        sum.square += (a.score ** 2 + b.score ** 2) / 2;
      }
    }
  }
  const [within, beyond] = sums.map(({ joint, square }) => joint / square);
  return { within: within ?? 0, beyond: beyond ?? 0 };
}
