import type { PolicyName } from '../contracts/policy-names.ts';
import { median } from '../lib/quantiles.ts';
import type { Rng } from '../lib/rng.ts';
import { longestInvocationMs, mostWorkMs } from '../core/model/time-limit.ts';
import { type Host, type HostProfileName, hostOf } from '../sim/host-profiles.ts';
import type { ScenarioInput } from '../sim/scenario.ts';
import { withPoissonArrivals } from '../traces/generators/arrivals.ts';
import { attemptDurations } from '../traces/generators/attempt-durations.ts';
import { HADOOP_LUCK, HADOOP_SLOWDOWN } from '../traces/generators/measured-slowdowns.ts';
import { drawProgress } from '../traces/generators/progress-shapes.ts';
import { inputsOf, usualTimes } from '../traces/generators/redraw.ts';
import { meanSlowdown } from '../traces/generators/slowdown.ts';
import {
  HADOOP_2009_RATES,
  SPARK_2014_RATES,
  type TimedJob,
  type TimedStage,
  withWork,
} from '../traces/generators/work.ts';
import { TRACE_CONTENTS, type TraceFormat } from '../traces/trace-formats.ts';
import type { TraceJob } from '../traces/trace-job.ts';

/** How a trace is replayed. */
export interface ReplayOptions {
  readonly format: TraceFormat;
  readonly policy: PolicyName;
  /** Settings of the policies; absent: the usual ones. */
  readonly policyConfig?: ScenarioInput['jobs'][number]['policyConfig'];
  /** Absent: as many as the load needs where the trace has arrivals, from 100 to 1,000; else 100. */
  readonly slots?: number | undefined;
  /** Share of the slots that the jobs' work keeps busy; absent: 0.7, or where slots are given as arrivals make it. */
  readonly load?: number | undefined;
  /** What it runs on; `lambda` where nothing is said. */
  readonly host?: HostProfileName | undefined;
  /** Whether attempts straggle; where not, each takes what is usual for its input. Absent: they do. */
  readonly stragglers?: boolean;
  readonly rng: Rng;
}

/** Attempts of a task whose times are drawn beside a recorded one; later ones take what the last of them does. */
const attemptsPerTask = 4;
/** Input of tasks of stages of which the trace tells none: policies then expect equal tasks. */
const unknownBytes = 64e6;

/** Of attempts of traces without stragglers. */
const hadoopMean = meanSlowdown(HADOOP_SLOWDOWN);

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

const timedJob = (job: TraceJob, format: TraceFormat): TimedJob =>
  withWork(job, format === 'spark' ? SPARK_2014_RATES : HADOOP_2009_RATES);

/** Share of the work of jobs that lies in tasks for which no invocation of Lambda has the time, as they are replayed; 0 without work. */
export function shareBeyondLambda(jobs: readonly TraceJob[], format: TraceFormat): number {
  const timed = jobs.map((job) => timedJob(job, format));
  const beyond = timed.map(({ stages, ...job }) => ({
    ...job,
    stages: stages.map(({ tasks, ...stage }) => ({
      ...stage,
      tasks: tasks.filter(({ workMs }) => workMs > mostWorkMs(longestInvocationMs)),
    })),
  }));
  const workMs = totalWorkMs(timed);
  return workMs === 0 ? 0 : totalWorkMs(beyond) / workMs;
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

/** Whether a format records what attempts took; else they are slowed as Hadoop's measured ones. */
const isRecorded = (format: TraceFormat): boolean => TRACE_CONTENTS[format].stragglers;

/** What attempts of a stage's tasks take in the mean, and those of which none is slow. */
function usualOf(
  { tasks }: TimedStage,
  format: TraceFormat,
): { readonly meanMs: number[]; readonly middleMs: number[] } {
  if (isRecorded(format)) return usualTimes(tasks);
  return {
    meanMs: tasks.map(({ workMs }) => workMs * hadoopMean),
    middleMs: tasks.map(({ workMs }) => workMs),
  };
}

const wholeMs = (values: readonly number[]): number[] => values.map((ms) => Math.max(1, Math.round(ms)));

type StageInput = ScenarioInput['jobs'][number]['stages'][number];

/**
 * What the attempts of each stage meet. Recorded times hold what nodes had a part in, and stay with their attempts; drawn
 * ones are shared out between attempts, nodes and their spells as they start.
 */
function slownessOf(job: TimedJob, { format, stragglers = true, rng }: ReplayOptions) {
  const durations = attemptDurations(job, { kind: 'recorded' }, rng.fork('attempts'));
  return (timed: TimedStage, stage: number): Pick<StageInput, 'attemptsMs' | 'slowdown'> => {
    if (!stragglers) return { attemptsMs: wholeMs(usualOf(timed, format).middleMs).map((ms) => [ms]) };
    if (!isRecorded(format)) return { slowdown: { kind: 'quantiles', points: HADOOP_SLOWDOWN.points } };
    return {
      attemptsMs: timed.tasks.map((_, task) =>
        Array.from({ length: attemptsPerTask }, (_, attempt) => durations({ stage, task, attempt })),
      ),
    };
  };
}

function jobScenario(
  job: TimedJob,
  atMs: number,
  { wrapUpMs, worker }: Pick<Host, 'wrapUpMs' | 'worker'>,
  options: ReplayOptions,
): ScenarioInput['jobs'][number] {
  const slowness = slownessOf(job, options);
  const shapes = options.rng.fork('shapes').fork(job.id);
  return {
    policy: options.policy,
    worker,
    ...(options.policyConfig === undefined ? {} : { policyConfig: options.policyConfig }),
    // Policies are to differ in what they do about stragglers, and not in what they start first.
    launchOrder: 'largest-first',
    arrivals: { kind: 'list', atMs: [Math.round(atMs)] },
    stages: job.stages.map((timed, stage) => {
      const { tasks, upstream } = timed;
      return {
        name: `s${stage}`,
        tasks: tasks.length,
        upstream: upstream.map((place) => `s${place}`),
        workMs: tasks.map(({ workMs }) => workMs),
        ...slowness(timed, stage),
        expectedMs: wholeMs(usualOf(timed, options.format).meanMs),
        inputBytes: inputsOf(tasks, unknownBytes),
        wrapUpMs,
        progress: drawProgress(shapes.fork(String(stage))),
      };
    }),
  };
}

/**
 * A scenario that replays jobs of a trace on a host. Each stage gets through its input by a shape of its own. Arrivals are the trace's, or else Poisson; times are the
 * trace's, or else by bytes; attempts of traces without stragglers are slowed as Hadoop's measured ones. Needs at
 * least one job.
 */
export function traceScenario(jobs: readonly TraceJob[], options: ReplayOptions): ScenarioInput {
  const { format } = options;
  const timed = jobs.map((job) => timedJob(job, format));
  const arranged = arrange(timed, options);
  const typicalMs =
    median(timed.flatMap(({ stages }) => stages.map(({ tasks }) => tasks[0]?.workMs ?? 0))) ?? 0;
  const { wrapUpMs, worker, cluster, ...host } = hostOf(options.host ?? 'lambda', arranged.slots, typicalMs);
  const luck = isRecorded(format) ? {} : { luck: HADOOP_LUCK };
  return {
    name: `trace-${format}`,
    ...host,
    cluster: { ...cluster, nodes: cluster.nodes.map((group) => ({ ...group, ...luck })) },
    jobs: arranged.jobs.map((job) => jobScenario(job, job.submittedAtMs, { wrapUpMs, worker }, options)),
  };
}
