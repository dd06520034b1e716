import { describe, expect, it } from 'vitest';
import { ascending, median } from '../../../src/lib/quantiles.ts';
import { HADOOP_SLOWDOWN, SPARK_SLOWDOWN } from '../../../src/traces/generators/measured-slowdowns.ts';
import { recordedSlowdowns, slowdownTable } from '../../../src/traces/generators/recorded-slowdowns.ts';
import { readTrace } from '../../../src/traces/read-trace.ts';
import type { TraceFormat } from '../../../src/traces/trace-formats.ts';
import { summariseTrace } from '../../../src/traces/trace-summary.ts';
import { taskCount } from '../../../src/traces/trace-job.ts';
import type { TraceTask } from '../../../src/traces/trace-job.ts';
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
});
