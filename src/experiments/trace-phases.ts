import { median } from '../lib/quantiles.ts';
import type { Rng } from '../lib/rng.ts';
import { attemptDurations } from '../traces/generators/attempt-durations.ts';
import { HADOOP_SLOWDOWN } from '../traces/generators/measured-slowdowns.ts';
import { drawProgress } from '../traces/generators/progress-shapes.ts';
import { inputsOf, redrawsOf } from '../traces/generators/redraw.ts';
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
/** Of tasks of a stage of which the trace tells no input. */
const evenBytes = 64e6;
/** Rules with a minimum age of a minute have nothing to do on shorter tasks: a trace of such is stretched to it. */
const typicalMs = 60_000;

/** The first attempt as recorded, later ones drawn from its stage. */
function recordedAttempts(tasks: readonly TimedTask[], rng: Rng): number[][] {
  const redraw = redrawsOf(tasks);
  return tasks.map((task, index) => {
    const own = rng.fork(String(index));
    return [task.workMs, ...Array.from({ length: attemptsPerTask - 1 }, () => redraw(index, own))];
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

/**
 * Stages of a trace as phases: times as recorded, or work by bytes with measured slowdowns of Hadoop's attempts where
 * a trace has no stragglers of its own; all times stretched alike so that the median task takes a minute at least. Each
 * gets through its input by a shape of its own.
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
    // As they are, empty ones too: a policy has to bear them.
    inputBytes: inputsOf(tasks, evenBytes),
    progress: drawProgress(rng.fork('shapes').fork(String(index))),
  }));
  return { phases, stretch };
}
