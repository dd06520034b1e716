import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { collectJobs } from '../traces/collect-jobs.ts';
import { readTrace, type TraceOptions } from '../traces/read-trace.ts';
import type { TraceJob } from '../traces/trace-job.ts';
import { tpchCounts, traceFormatOf, type TraceName, type TpchRunName } from './trace-names.ts';

interface Shelf {
  /** In the folder of traces: a folder with one trace, or the trace itself. */
  readonly path: string;
  /** Enough for every experiment, and little enough to hold. */
  readonly maxJobs: number;
  readonly options?: TraceOptions;
}

const tpchRuns = Object.fromEntries(
  tpchCounts.map((executors) => [
    `tpch-${executors}`,
    { path: 'tpch-spark', maxJobs: 1_000, options: { tpch: { executors } } },
  ]),
) as Readonly<Record<TpchRunName, Shelf>>;

const shelves: Readonly<Record<TraceName, Shelf>> = {
  swim: { path: 'swim-facebook', maxJobs: 10_000 },
  coflow: { path: 'coflow-facebook', maxJobs: 1_000 },
  tpch: { path: 'tpch-spark', maxJobs: 1_000 },
  ...tpchRuns,
  alibaba: { path: 'alibaba2018-dag', maxJobs: 1_000 },
  alibaba2017: { path: 'alibaba2017-batch', maxJobs: 1_000 },
  rumen: { path: 'hadoop-rumen', maxJobs: 1_000 },
  spark: { path: 'spark-bdb', maxJobs: 1_000 },
  hawk: { path: 'hawk-traces/GOOG_subtrace.tr.gz', maxJobs: 10_000 },
  yahoo1: { path: 'hawk-traces/YH1_sub.tr.gz', maxJobs: 10_000 },
  yahoo2: { path: 'hawk-traces/YH2_sub.tr.gz', maxJobs: 10_000 },
};

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch {
    return false;
  }
}

/** The traces that the folder `data` does not hold; all of them where there is no such folder. */
export async function missingTraces(
  data: string,
  names: readonly TraceName[],
): Promise<readonly TraceName[]> {
  const missing: TraceName[] = [];
  for (const name of names) if (!(await isThere(join(data, shelves[name].path)))) missing.push(name);
  return missing;
}

/** Reads the given traces from the folder `data`. Throws `InvalidInputError` where one is not there. */
export async function loadTraces(
  data: string,
  names: readonly TraceName[],
): Promise<ReadonlyMap<TraceName, readonly TraceJob[]>> {
  const traces = new Map<TraceName, readonly TraceJob[]>();
  for (const name of names) {
    const { path, maxJobs, options } = shelves[name];
    const jobs = readTrace(traceFormatOf(name), join(data, path), options);
    traces.set(name, await collectJobs(jobs, { maxJobs }));
  }
  return traces;
}
