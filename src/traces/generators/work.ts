import { median } from '../../lib/quantiles.ts';
import type { TraceJob, TraceStage, TraceTask } from '../trace-job.ts';

/** A task with its work. */
export interface TimedTask extends TraceTask {
  readonly workMs: number;
}
/** A stage of which all tasks have their work. */
export interface TimedStage extends TraceStage {
  readonly tasks: readonly TimedTask[];
}
/** A job of which all tasks have their work. */
export interface TimedJob extends TraceJob {
  readonly stages: readonly TimedStage[];
}

/** What a task costs by its bytes. */
export interface WorkRates {
  /** Of every task, whatever its input. */
  readonly startupMs: number;
  readonly msPerInputMib: number;
  readonly msPerOutputMib: number;
  /** Work of a task of which nothing is known, in a stage of which nothing is known. */
  readonly unknownMs: number;
}

/**
 * Rates of a Hadoop cluster of 2009. Per MiB of input: the median over the 4,627 successful tasks of the Rumen
 * trace that read over 1 MB (a tenth of them below 750, a tenth above 4,880). Their output is in it.
 */
export const HADOOP_2009_RATES: WorkRates = {
  startupMs: 1_000,
  msPerInputMib: 880,
  msPerOutputMib: 0,
  unknownMs: 10_000,
};

/** As `HADOOP_2009_RATES`, for Spark in 2014: the median over 1,747 tasks of the Big Data Benchmark's logs. */
export const SPARK_2014_RATES: WorkRates = {
  startupMs: 50,
  msPerInputMib: 205,
  msPerOutputMib: 0,
  unknownMs: 1_000,
};

const MIB = 1024 * 1024;

/**
 * The job with work for every task: what the trace records; else by its bytes, if it has any; else the median of
 * the tasks of its stage that have work by either; else `unknownMs`. Never draws; whole milliseconds.
 */
export const withWork = (job: TraceJob, rates: WorkRates): TimedJob => ({
  ...job,
  stages: job.stages.map((stage) => timedStage(stage, rates)),
});

function timedStage(stage: TraceStage, rates: WorkRates): TimedStage {
  const known = stage.tasks.flatMap((task) => workOf(task, rates) ?? []);
  const missing = known.length < stage.tasks.length;
  const typicalMs = missing ? Math.round(median(known) ?? rates.unknownMs) : 0;
  // Readers share one object among alike tasks; so does this.
  const timed = new Map<TraceTask, TimedTask>();
  const timedTask = (task: TraceTask): TimedTask => {
    const before = timed.get(task);
    if (before !== undefined) return before;
    const after = { ...task, workMs: workOf(task, rates) ?? typicalMs };
    timed.set(task, after);
    return after;
  };
  return { ...stage, tasks: stage.tasks.map(timedTask) };
}

function workOf(task: TraceTask, rates: WorkRates): number | undefined {
  if (task.workMs !== undefined) return task.workMs;
  if (task.inputBytes === undefined && task.outputBytes === undefined) return undefined;
  const inputMib = (task.inputBytes ?? 0) / MIB;
  const outputMib = (task.outputBytes ?? 0) / MIB;
  return Math.round(rates.startupMs + inputMib * rates.msPerInputMib + outputMib * rates.msPerOutputMib);
}
