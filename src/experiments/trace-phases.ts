import { mean, median } from '../lib/quantiles.ts';
import type { Rng } from '../lib/rng.ts';
import { attemptDurations } from '../traces/generators/attempt-durations.ts';
import { HADOOP_SLOWDOWN } from '../traces/generators/measured-slowdowns.ts';
import {
  HADOOP_2009_RATES,
  SPARK_2014_RATES,
  type TimedJob,
  type TimedTask,
  withWork,
} from '../traces/generators/work.ts';
import { TRACE_CONTENTS, type TraceFormat } from '../traces/trace-formats.ts';
import type { TraceJob } from '../traces/trace-job.ts';
import type { Phase } from './phase-comparison.ts';

/** Which stages of a trace to take. */
export interface PhaseLimits {
  /** At most so many, drawn. */
  readonly phases: number;
  readonly leastTasks: number;
  readonly mostTasks: number;
}

/** Tasks over slots of a phase: the median of Mantri's cluster. */
const waves = 2.11;
const attemptsPerTask = 7;
const evenBytes = 64e6;
/** Rules with a minimum age of a minute have nothing to do on shorter tasks: a trace of such is stretched to it. */
const typicalMs = 60_000;

/** What a task of such an input takes, by least squares over its stage: never falling with size, never under a tenth of the mean. */
function regression(tasks: readonly TimedTask[]): (task: TimedTask) => number {
  const bytesOf = ({ inputBytes }: TimedTask): number => inputBytes ?? 0;
  const meanBytes = mean(tasks.map(bytesOf)) ?? 0;
  const meanMs = mean(tasks.map(({ workMs }) => workMs)) ?? 0;
  const spread = tasks.reduce((sum, task) => sum + (bytesOf(task) - meanBytes) ** 2, 0);
  const joint = tasks.reduce((sum, task) => sum + (bytesOf(task) - meanBytes) * (task.workMs - meanMs), 0);
  const slope = spread === 0 ? 0 : Math.max(0, joint / spread);
  return (task) => Math.max(meanMs / 10, meanMs + slope * (bytesOf(task) - meanBytes));
}

/**
 * The first attempt as recorded; a later one by what its input foretells times what a task drawn from the stage
 * took over its own. Without inputs that is a draw from the stage's times, as in Mantri's simulator; with them no
 * copy makes a large task small.
 */
function recordedAttempts(tasks: readonly TimedTask[], rng: Rng): number[][] {
  const foretold = regression(tasks);
  const residuals = tasks.map((task) => task.workMs / Math.max(1, foretold(task)));
  return tasks.map((task, index) => {
    const own = rng.fork(String(index));
    const later = Array.from(
      { length: attemptsPerTask - 1 },
      () => foretold(task) * (residuals[Math.floor(own.next() * residuals.length)] ?? 1),
    );
    return [task.workMs, ...later];
  });
}

function attemptsOf(job: TimedJob, stage: number, format: TraceFormat, rng: Rng): number[][] {
  const tasks = job.stages[stage]?.tasks ?? [];
  if (TRACE_CONTENTS[format].stragglers) return recordedAttempts(tasks, rng.fork(`${job.id}/${stage}`));
  const durations = attemptDurations(job, { kind: 'slowed', slowdown: HADOOP_SLOWDOWN }, rng);
  return tasks.map((_, task) =>
    Array.from({ length: attemptsPerTask }, (_, attempt) => durations({ stage, task, attempt })),
  );
}

/** A drawn part of a list, in its order. */
function drawn<T>(all: readonly T[], count: number, rng: Rng): readonly T[] {
  const ranked = all
    .map((value, index) => ({ value, index, key: rng.next() }))
    .sort((a, b) => a.key - b.key || a.index - b.index);
  return ranked
    .slice(0, count)
    .sort((a, b) => a.index - b.index)
    .map(({ value }) => value);
}

const hasBytes = (tasks: readonly TimedTask[]): boolean =>
  tasks.every(({ inputBytes }) => inputBytes !== undefined && inputBytes > 0);

/**
 * Stages of a trace as phases: times as recorded, or work by bytes with measured slowdowns of Hadoop's attempts where
 * a trace has no stragglers of its own; all times stretched alike so that the median task takes a minute at least.
 */
export function tracePhases(
  format: TraceFormat,
  jobs: readonly TraceJob[],
  options: { readonly limits: PhaseLimits; readonly rng: Rng },
): { readonly phases: readonly Phase[]; readonly stretch: number } {
  const { limits, rng } = options;
  const suits = (tasks: number): boolean => tasks >= limits.leastTasks && tasks <= limits.mostTasks;
  const places = jobs.flatMap((job) =>
    job.stages.flatMap((stage, place) => (suits(stage.tasks.length) ? [{ job, place }] : [])),
  );
  const chosen = drawn(places, limits.phases, rng.fork('choice')).map(({ job, place }) => {
    const timed = withWork(job, format === 'spark' ? SPARK_2014_RATES : HADOOP_2009_RATES);
    const tasks = timed.stages[place]?.tasks ?? [];
    return { tasks, attemptsMs: attemptsOf(timed, place, format, rng.fork('attempts')) };
  });
  const medianMs = median(chosen.flatMap(({ tasks }) => tasks.map(({ workMs }) => workMs))) ?? typicalMs;
  const stretch = Math.max(1, typicalMs / Math.max(1, medianMs));
  const phases = chosen.map(({ tasks, attemptsMs }, index): Phase => ({
    name: `${format}-${index}`,
    slots: Math.max(2, Math.round(tasks.length / waves)),
    attemptsMs: attemptsMs.map((attempts) => attempts.map((ms) => Math.max(1, Math.round(ms * stretch)))),
    inputBytes: hasBytes(tasks)
      ? tasks.map(({ inputBytes }) => inputBytes ?? evenBytes)
      : tasks.map(() => evenBytes),
  }));
  return { phases, stretch };
}
