import type { PolicySetName } from '../contracts/policy-config.ts';
import { median } from '../lib/quantiles.ts';
import type { Rng } from '../lib/rng.ts';
import type { ScenarioInput } from '../sim/scenario.ts';
import { withPoissonArrivals } from '../traces/generators/arrivals.ts';
import { attemptDurations, type AttemptModel } from '../traces/generators/attempt-durations.ts';
import { HADOOP_SLOWDOWN } from '../traces/generators/measured-slowdowns.ts';
import { inputsOf } from '../traces/generators/redraw.ts';
import { HADOOP_2009_RATES, SPARK_2014_RATES, type TimedJob, withWork } from '../traces/generators/work.ts';
import { TRACE_CONTENTS, type TraceFormat } from '../traces/trace-formats.ts';
import type { TraceJob } from '../traces/trace-job.ts';

/** How a trace is replayed. */
export interface ReplayOptions {
  readonly format: TraceFormat;
  readonly policy: PolicySetName;
  /** Absent: as many as the load needs where the trace has arrivals, from 100 to 1,000; else 100. */
  readonly slots?: number | undefined;
  /** Share of the slots that the jobs' work keeps busy; absent: 0.7, or where slots are given as arrivals make it. */
  readonly load?: number | undefined;
  readonly rng: Rng;
}

/** Attempts of a task whose times are drawn; later ones take what the last of them does. */
const attemptsPerTask = 4;
/** Input of tasks of stages of which the trace tells none: policies then expect equal tasks. */
const unknownBytes = 64e6;

const usualLoad = 0.7;
const usualSlots = 100;
/** Beyond this a replay of a burst of jobs is one wave, and slow to simulate. */
const mostSlots = 1_000;

type ArrivingJob = TimedJob & { readonly submittedAtMs: number };

function totalWorkMs(jobs: readonly TimedJob[]): number {
  let workMs = 0;
  for (const { stages } of jobs)
    for (const { tasks } of stages) for (const task of tasks) workMs += task.workMs;
  return workMs;
}

/** Slots, and jobs that arrive as recorded, or faster or slower by one factor, or at random where nothing is recorded. */
function arrange(
  jobs: readonly TimedJob[],
  { format, slots, load, rng }: ReplayOptions,
): { readonly slots: number; readonly jobs: readonly ArrivingJob[] } {
  const workMs = totalWorkMs(jobs);
  if (!TRACE_CONTENTS[format].arrivals) {
    const count = slots ?? usualSlots;
    const meanGapMs = Math.max(1, workMs / Math.max(1, jobs.length) / (count * (load ?? usualLoad)));
    return { slots: count, jobs: withPoissonArrivals(jobs, { meanGapMs, rng: rng.fork('arrivals') }) };
  }
  const recorded = jobs.map((job): ArrivingJob => ({ ...job, submittedAtMs: job.submittedAtMs ?? 0 }));
  const spanMs = recorded.reduce((last, { submittedAtMs }) => Math.max(last, submittedAtMs), 0);
  if (slots === undefined) {
    const needed = spanMs === 0 ? usualSlots : Math.ceil(workMs / spanMs / (load ?? usualLoad));
    return { slots: Math.min(mostSlots, Math.max(usualSlots, needed)), jobs: recorded };
  }
  const factor = load === undefined || spanMs === 0 ? 1 : workMs / (slots * load) / spanMs;
  return {
    slots,
    jobs: recorded.map((job) => ({ ...job, submittedAtMs: Math.round(job.submittedAtMs * factor) })),
  };
}

function jobScenario(
  job: TimedJob,
  atMs: number,
  model: AttemptModel,
  options: ReplayOptions,
): ScenarioInput['jobs'][number] {
  const durations = attemptDurations(job, model, options.rng.fork('attempts'));
  return {
    policy: options.policy,
    // Policies are to differ in what they do about stragglers, and not in what they start first.
    launchOrder: 'largest-first',
    arrivals: { kind: 'list', atMs: [Math.round(atMs)] },
    stages: job.stages.map(({ tasks, upstream }, stage) => ({
      name: `s${stage}`,
      tasks: tasks.length,
      upstream: upstream.map((place) => `s${place}`),
      workMs: tasks.map(({ workMs }) => workMs),
      attemptsMs: tasks.map((_, task) =>
        Array.from({ length: attemptsPerTask }, (_, attempt) => durations({ stage, task, attempt })),
      ),
      inputBytes: inputsOf(tasks, unknownBytes),
    })),
  };
}

/**
 * A scenario that replays jobs of a trace on equal slots. Arrivals are the trace's, or else Poisson; times are the
 * trace's, or else by bytes; attempts of traces without stragglers are slowed as Hadoop's measured ones. Needs at
 * least one job.
 */
export function traceScenario(jobs: readonly TraceJob[], options: ReplayOptions): ScenarioInput {
  const { format } = options;
  const timed = jobs.map((job) => withWork(job, format === 'spark' ? SPARK_2014_RATES : HADOOP_2009_RATES));
  const arranged = arrange(timed, options);
  // Finer ticks than a twentieth of a task decide nothing more, and cost as much each.
  const typicalMs =
    median(timed.flatMap(({ stages }) => stages.map(({ tasks }) => tasks[0]?.workMs ?? 0))) ?? 0;
  const tickMs = Math.round(Math.min(10_000, Math.max(1_000, typicalMs / 20)));
  const model: AttemptModel = TRACE_CONTENTS[format].stragglers
    ? { kind: 'recorded' }
    : { kind: 'slowed', slowdown: HADOOP_SLOWDOWN };
  return {
    name: `trace-${format}`,
    cluster: { nodes: [{ count: arranged.slots }] },
    scheduler: { tickMs, wakeOnEnd: true, cancel: 'immediate' },
    jobs: arranged.jobs.map((job) => jobScenario(job, job.submittedAtMs, model, options)),
  };
}
