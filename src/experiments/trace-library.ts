import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { collectJobs } from '../traces/collect-jobs.ts';
import { readTrace } from '../traces/read-trace.ts';
import type { TraceFormat } from '../traces/trace-formats.ts';
import type { TraceJob } from '../traces/trace-job.ts';

interface Shelf {
  /** In the folder of traces: a folder with one trace, or the trace itself. */
  readonly path: string;
  /** Enough for every experiment, and little enough to hold. */
  readonly maxJobs: number;
}

const shelves: Readonly<Record<TraceFormat, Shelf>> = {
  swim: { path: 'swim-facebook', maxJobs: 10_000 },
  coflow: { path: 'coflow-facebook', maxJobs: 1_000 },
  tpch: { path: 'tpch-spark', maxJobs: 1_000 },
  alibaba: { path: 'alibaba2018-dag', maxJobs: 1_000 },
  alibaba2017: { path: 'alibaba2017-batch', maxJobs: 1_000 },
  rumen: { path: 'hadoop-rumen', maxJobs: 1_000 },
  spark: { path: 'spark-bdb', maxJobs: 1_000 },
  hawk: { path: 'hawk-traces/GOOG_subtrace.tr.gz', maxJobs: 10_000 },
};

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch {
    return false;
  }
}

/** The formats of which the folder `data` holds no trace; all of them where there is no such folder. */
export async function missingTraces(
  data: string,
  formats: readonly TraceFormat[],
): Promise<readonly TraceFormat[]> {
  const missing: TraceFormat[] = [];
  for (const format of formats) if (!(await isThere(join(data, shelves[format].path)))) missing.push(format);
  return missing;
}

/** Reads the traces of the given formats from the folder `data`. Throws `InvalidInputError` where one is not there. */
export async function loadTraces(
  data: string,
  formats: readonly TraceFormat[],
): Promise<ReadonlyMap<TraceFormat, readonly TraceJob[]>> {
  const traces = new Map<TraceFormat, readonly TraceJob[]>();
  for (const format of formats) {
    const { path, maxJobs } = shelves[format];
    traces.set(format, await collectJobs(readTrace(format, join(data, path)), { maxJobs }));
  }
  return traces;
}
