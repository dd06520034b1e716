import type { PolicyConfigInput } from '../contracts/policy-config.ts';
import type { PolicyName } from '../contracts/policy-names.ts';
import { jobBin } from '../core/policy/dolly/delay-assignment.ts';
import { ascending, quantile } from '../lib/quantiles.ts';
import { createRng } from '../lib/rng.ts';
import { completionMsOf, slotMsOf, slotTimeOf } from '../sim/metrics.ts';
import type { JobOutcome } from '../sim/outcome.ts';
import { parseScenario, type Scenario } from '../sim/scenario.ts';
import { simulate } from '../sim/simulate.ts';
import type { TimedJob } from '../traces/generators/work.ts';
import { taskCount } from '../traces/trace-job.ts';
import {
  leastTelling,
  meanSlowdown,
  slowdownOf,
  smallTasks,
  stragglerShare,
} from './facebook-calibration.ts';

/** The paper's machines, and how many of them. */
export const machineSlots = 12;
export const paperMachines = 150;
const hourMs = 3_600_000;
/**
 * As many machines as make small jobs never use more than 2 % of the cluster, as the paper finds of Facebook's (§2.2):
 * under LATE they use 10 to 13 slots at most, by how often copies straggle (2 % of 54 machines). On the paper's 150, of
 * which the trace knows nothing, they use 0.7 %, so that a budget is scarce at smaller shares than the paper's.
 */
export const scaledMachines = 54;
/** Of the day, what one seed replays. */
export const windowMs = 8 * hourMs;
/** Of a window, its first part: what each setting of a sweep replays. */
export const sweepMs = 2 * hourMs;
/** No more fit into a stage of ours: two jobs of the day, of 40,000 and 56,000 tasks, are left out. */
const mostTasks = 10_000;

/** How the jobs of a window are treated. */
export interface Treatment {
  readonly name: string;
  readonly policy: PolicyName;
  readonly config?: PolicyConfigInput;
  /** Of the cluster; the paper's unless told. */
  readonly machines?: number;
  /** p: how often copies straggle; `stragglerShare` unless told. */
  readonly share?: number;
}

function scenarioOf({ jobs, fromMs }: Window, treatment: Treatment): Scenario {
  const { policy, config, machines = paperMachines, share = stragglerShare } = treatment;
  const slowdown = slowdownOf(share);
  return parseScenario({
    name: 'dolly-facebook',
    cluster: { nodes: [{ count: machines, slots: machineSlots }] },
    scheduler: { tickMs: 5_000, wakeOnEnd: true, wakeAfterMs: 50, cancel: 'immediate' },
    reports: { everyMs: 30_000, tenths: true },
    jobs: jobs.map((job) => ({
      policy,
      arrivals: { kind: 'list', atMs: [(job.submittedAtMs ?? 0) - fromMs] },
      // p is known from the hour before, and so is ω: none, since reading takes no time here (min(r/B, ω) is 0). Who
      // reads which copy is the subject of `dolly-assignment`.
      policyConfig: {
        ...config,
        dolly: { priorStragglerProbability: share, priorWaitMs: 0, ...config?.dolly },
      },
      stages: job.stages.map(({ tasks, upstream }, stage) => ({
        name: `s${stage}`,
        tasks: tasks.length,
        upstream: upstream.map((place) => `s${place}`),
        slowdown,
        workMs: tasks.map(({ workMs }) => workMs),
        inputBytes: tasks.map(({ inputBytes }) => inputBytes ?? 0),
      })),
    })),
  });
}

/** How far behind its median task the slowest of a phase was; phases of three tasks or more. */
export interface PhaseRatio {
  readonly ratio: number;
  readonly tasks: number;
  /** Copies of each task from the start, the original included: 1 where it was not cloned. */
  readonly copies: number;
}

/** What became of a job. */
export interface JobNote {
  /** Its place in its window. */
  readonly index: number;
  /** 1 to 5, by number of tasks. */
  readonly bin: number;
  readonly ms: number;
  /** What it would have taken had no task been slower than the median of its phase. */
  readonly whatIfMs: number;
  readonly isCloned: boolean;
  /** Slot time of clones, in milliseconds. */
  readonly cloneMs: number;
  /** Empty for jobs of more than ten tasks. */
  readonly phases: readonly PhaseRatio[];
}

/** What a treatment made of a window, or of several. */
export interface Run {
  /** In the order of their arrivals. */
  readonly jobs: readonly JobNote[];
  /** Of all jobs, those left out included. */
  readonly slotSeconds: number;
  /** Share of the cluster's slot time. */
  readonly utilization: number;
  readonly slots: number;
  /** The most slots that jobs of at most ten tasks had at one time, all together. */
  readonly smallPeakSlots: number;
}

/** The most attempts that had a slot at one time. One that leaves makes room for one that comes at the same time. */
function peakOf(jobs: readonly JobOutcome[]): number {
  const changes = jobs
    .flatMap(({ attempts }) => attempts)
    .flatMap(({ takenAtMs, leftAtMs }) => [
      { atMs: takenAtMs, by: 1 },
      { atMs: leftAtMs, by: -1 },
    ])
    .toSorted((a, b) => a.atMs - b.atMs || a.by - b.by);
  let used = 0;
  let peak = 0;
  for (const { by } of changes) {
    used += by;
    peak = Math.max(peak, used);
  }
  return peak;
}

/** By progress rate, so by time over work. */
function phasesOf({ tasks, stages, attempts }: JobOutcome, work: TimedJob['stages']): PhaseRatio[] {
  if (tasks > smallTasks) return [];
  return stages.flatMap(({ taskMs }, place) => {
    const slowness = taskMs.map((time, task) => time / Math.max(1, work[place]?.tasks[task]?.workMs ?? 1));
    const sorted = ascending(slowness);
    const middle = quantile(sorted, 0.5) ?? 0;
    if (sorted.length < leastTelling || middle === 0) return [];
    const clones = attempts.filter(({ stage, reason }) => stage === place && reason === 'clone').length;
    return [
      { ratio: (sorted.at(-1) ?? 0) / middle, tasks: sorted.length, copies: 1 + clones / sorted.length },
    ];
  });
}

/**
 * Time that a job would not have taken had each task that was slower than the median of its phase, by the work that it
 * did, got on like that one: phase by phase, by what its slowest task then takes.
 *
 * Source: Dolly §2.1.1, "a crude analysis".
 */
export function savedByMedianMs(
  { stages }: Pick<JobOutcome, 'stages'>,
  work: Pick<TimedJob, 'stages'>['stages'],
): number {
  return stages.reduce((sum, { taskMs }, place) => {
    const workOf = (task: number): number => Math.max(1, work[place]?.tasks[task]?.workMs ?? 1);
    const middle = quantile(ascending(taskMs.map((time, task) => time / workOf(task))), 0.5) ?? 0;
    const longest = taskMs.reduce((most, time) => Math.max(most, time), 0);
    const evenly = taskMs.reduce(
      (most, time, task) => Math.max(most, Math.min(time, middle * workOf(task))),
      0,
    );
    return sum + longest - evenly;
  }, 0);
}

function noteOf(outcome: JobOutcome, jobs: readonly TimedJob[]): JobNote {
  const clones = outcome.attempts.filter(({ reason }) => reason === 'clone');
  return {
    index: outcome.index,
    bin: jobBin(outcome.tasks),
    ms: completionMsOf(outcome),
    whatIfMs: Math.max(
      0,
      completionMsOf(outcome) - savedByMedianMs(outcome, jobs[outcome.index]?.stages ?? []),
    ),
    isCloned: clones.length > 0,
    cloneMs: clones.reduce((sum, clone) => sum + slotMsOf(clone), 0),
    phases: phasesOf(outcome, jobs[outcome.index]?.stages ?? []),
  };
}

/** Runs the jobs of a window. */
export async function runOf(window: Window, treatment: Treatment, seed: string): Promise<Run> {
  const result = await simulate(scenarioOf(window, treatment), { seed });
  const usedMs = result.jobs.reduce((sum, job) => sum + slotTimeOf(job).usedMs, 0);
  return {
    jobs: result.jobs.map((job) => noteOf(job, window.jobs)),
    slotSeconds: usedMs / 1_000 + window.leftOutSeconds,
    utilization: usedMs / (result.totalSlots * Math.max(1, result.endedAtMs)),
    slots: result.totalSlots,
    smallPeakSlots: peakOf(result.jobs.filter(({ tasks }) => tasks <= smallTasks)),
  };
}

/** Some hours of the trace. */
export interface Window {
  /** By time of arrival. */
  readonly jobs: readonly TimedJob[];
  readonly fromMs: number;
  /** Slot time that the larger jobs of these hours would take, whatever is done for the others. */
  readonly leftOutSeconds: number;
}

/** Work of all tasks of a job, in milliseconds. */
const workOf = ({ stages }: TimedJob): number =>
  stages.reduce((sum, { tasks }) => tasks.reduce((part, { workMs }) => part + workMs, sum), 0);

/** Jobs of the trace that arrive within `lengthMs` from a time that the seed names, and that time. */
export function windowOf(jobs: readonly TimedJob[], seed: string, lengthMs: number): Window {
  const lastMs = Math.max(0, ...jobs.map(({ submittedAtMs }) => submittedAtMs ?? 0));
  const fromMs = Math.floor(createRng(`window/${seed}`).next() * Math.max(0, lastMs - windowMs));
  const isInside = ({ submittedAtMs = 0 }: TimedJob): boolean =>
    submittedAtMs >= fromMs && submittedAtMs < fromMs + lengthMs;
  const inside = jobs.filter(isInside).toSorted((a, b) => (a.submittedAtMs ?? 0) - (b.submittedAtMs ?? 0));
  const leftOut = inside.filter((job) => taskCount(job) > mostTasks);
  return {
    fromMs,
    jobs: inside.filter((job) => taskCount(job) <= mostTasks),
    leftOutSeconds: (leftOut.reduce((sum, job) => sum + workOf(job), 0) * meanSlowdown) / 1_000,
  };
}

/** The jobs of at most ten tasks of a window, without those that were left out of it. */
export const smallJobsOf = ({ jobs, fromMs }: Window): Window => ({
  fromMs,
  jobs: jobs.filter((job) => taskCount(job) <= smallTasks),
  leftOutSeconds: 0,
});

/** The small jobs of the whole trace with a phase in which a straggler can show. */
export const tellingJobs = (jobs: readonly TimedJob[]): Window => ({
  fromMs: 0,
  jobs: jobs.filter(
    (job) => taskCount(job) <= smallTasks && job.stages.some(({ tasks }) => tasks.length >= leastTelling),
  ),
  leftOutSeconds: 0,
});

/** Share of jobs with at most ten tasks, and the work of the smallest nine tenths of the jobs, of the whole trace. */
export function heavyTail(jobs: readonly TimedJob[]): {
  readonly smallShare: number;
  readonly smallestWork: number;
} {
  const works = ascending(jobs.map(workOf));
  const total = works.reduce((sum, work) => sum + work, 0);
  const smallest = works.slice(0, Math.floor(works.length * 0.9)).reduce((sum, work) => sum + work, 0);
  return {
    smallShare: jobs.filter((job) => taskCount(job) <= smallTasks).length / Math.max(1, jobs.length),
    smallestWork: total === 0 ? 0 : smallest / total,
  };
}
