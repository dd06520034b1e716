import type { PolicyConfigInput, PolicySetName } from '../contracts/policy-config.ts';
import { jobBin } from '../core/policy/dolly/delay-assignment.ts';
import { ascending, mean, quantile } from '../lib/quantiles.ts';
import { createRng } from '../lib/rng.ts';
import { sample } from '../sim/distribution.ts';
import { completionMsOf, slotTimeOf } from '../sim/metrics.ts';
import type { JobOutcome } from '../sim/outcome.ts';
import { parseScenario, type Scenario } from '../sim/scenario.ts';
import { simulate } from '../sim/simulate.ts';
import type { TimedJob } from '../traces/generators/work.ts';
import { taskCount } from '../traces/trace-job.ts';

/** The paper's cluster: 150 machines of 12 cores. */
const machines = { count: 150, slots: 12 } as const;
export const slots = machines.count * machines.slots;
const hourMs = 3_600_000;
/** Of the day, what one seed replays; sweeps replay half of it. */
export const windowMs = 2 * hourMs;
/** Jobs of bin 5 never fit any budget for clones, and cost most of the time of a run: they are left out. */
const mostTasks = 500;

/**
 * Calibrated once, on what the paper observes of small jobs under LATE alone (§1, §2.2): stragglers run 8 times as
 * long as the median task on average, and the slowest copy 6 to 8 times at the median of jobs. The two are met
 * together, nearly, by these; `calibration` prints how nearly. It counts originals: where one of LATE's copies wins,
 * the time of its task no longer shows how slow the original was.
 */
const stragglerShare = 0.25;
const straggler = { kind: 'lognormal', median: 8, sigma: 0.35 } as const;
const slowdown = {
  kind: 'mixture',
  probability: stragglerShare,
  outlier: straggler,
  usual: { kind: 'lognormal', median: 1, sigma: 0.03 },
} as const;
const meanSlowdown =
  1 - stragglerShare + stragglerShare * straggler.median * Math.exp(straggler.sigma ** 2 / 2);

/** How the jobs of a window are treated. */
export interface Treatment {
  readonly name: string;
  readonly policy: PolicySetName;
  readonly config?: PolicyConfigInput;
}

function scenarioOf(jobs: readonly TimedJob[], fromMs: number, { policy, config }: Treatment): Scenario {
  return parseScenario({
    name: 'dolly-facebook',
    cluster: { nodes: [machines] },
    scheduler: { tickMs: 5_000, wakeOnEnd: true, cancel: 'immediate' },
    reports: { everyMs: 30_000, tenths: true },
    jobs: jobs.map((job) => ({
      policy,
      arrivals: { kind: 'list', atMs: [(job.submittedAtMs ?? 0) - fromMs] },
      // p is known from the hour before.
      policyConfig: { ...config, dolly: { priorStragglerProbability: stragglerShare, ...config?.dolly } },
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

/** What a treatment made of a window. */
export interface Run {
  readonly name: string;
  /** Mean completion time of the jobs of bins 1 to 4, in seconds; undefined of none. */
  readonly binS: readonly (number | undefined)[];
  readonly binJobs: readonly number[];
  readonly allS: number;
  /** Of all jobs, those left out included. */
  readonly slotSeconds: number;
  readonly utilization: number;
  /** Slowest over median task of small jobs' phases of at least three tasks. */
  readonly ratios: readonly number[];
  readonly cloned: readonly number[];
}

const secondsOf = (jobs: readonly JobOutcome[]): number | undefined =>
  mean(jobs.map((job) => completionMsOf(job) / 1_000));

/** Slowest over median of phases of three tasks or more, the largest of a job; undefined for a job without. */
function slowestToMedian(phases: readonly (readonly number[])[]): number | undefined {
  const ratios = phases.flatMap((slowness) => {
    const sorted = ascending(slowness);
    const middle = quantile(sorted, 0.5) ?? 0;
    return sorted.length < 3 || middle === 0 ? [] : [(sorted.at(-1) ?? 0) / middle];
  });
  return ratios.length === 0 ? undefined : Math.max(...ratios);
}

/** By progress rate, so by time over work. Outcomes come in the order of arrivals, as the jobs do. */
const ratiosOf = (outcomes: readonly JobOutcome[], jobs: readonly TimedJob[]): number[] =>
  outcomes
    .filter(({ tasks }) => tasks <= 10)
    .flatMap(({ index, stages }) => {
      const work = jobs[index]?.stages ?? [];
      const slowness = stages.map(({ taskMs }, place) =>
        taskMs.map((time, task) => time / Math.max(1, work[place]?.tasks[task]?.workMs ?? 1)),
      );
      return slowestToMedian(slowness) ?? [];
    });

/** Runs the jobs of a window. */
export async function runOf(window: Window, treatment: Treatment, seed: string): Promise<Run> {
  const { jobs, fromMs } = window;
  const result = await simulate(scenarioOf(jobs, fromMs, treatment), { seed });
  const bins = [1, 2, 3, 4].map((bin) => result.jobs.filter(({ tasks }) => jobBin(tasks) === bin));
  const usedMs = result.jobs.reduce((sum, job) => sum + slotTimeOf(job).usedMs, 0);
  const isCloned = ({ attempts }: JobOutcome): boolean => attempts.some(({ reason }) => reason === 'clone');
  return {
    name: treatment.name,
    binS: bins.map(secondsOf),
    binJobs: bins.map(({ length }) => length),
    allS: secondsOf(result.jobs) ?? 0,
    slotSeconds: usedMs / 1_000 + window.leftOutSeconds,
    utilization: usedMs / (slots * Math.max(1, result.endedAtMs)),
    ratios: ratiosOf(result.jobs, jobs),
    cloned: bins.map((bin) => bin.filter(isCloned).length),
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

/** Share of jobs with at most ten tasks, and the work of the smallest nine tenths of the jobs, of the whole trace. */
export function heavyTail(jobs: readonly TimedJob[]): {
  readonly smallShare: number;
  readonly smallestWork: number;
} {
  const works = ascending(jobs.map(workOf));
  const total = works.reduce((sum, work) => sum + work, 0);
  const smallest = works.slice(0, Math.floor(works.length * 0.9)).reduce((sum, work) => sum + work, 0);
  return {
    smallShare: jobs.filter((job) => taskCount(job) <= 10).length / Math.max(1, jobs.length),
    smallestWork: total === 0 ? 0 : smallest / total,
  };
}

/**
 * The small jobs of the whole trace in which a straggler shows, since they have a phase of three tasks or more: too
 * few in a window to tell a percentile of them.
 */
export const tellingJobs = (jobs: readonly TimedJob[]): Window => ({
  fromMs: 0,
  jobs: jobs.filter((job) => taskCount(job) <= 10 && job.stages.some(({ tasks }) => tasks.length >= 3)),
  leftOutSeconds: 0,
});

/** Times that each job's luck is drawn for the calibration. */
const calibrationDraws = 10;

/** What the calibration comes to on the small jobs of the whole trace, by originals. */
export function calibration(jobs: readonly TimedJob[]): {
  readonly median: number;
  readonly meanOfStraggling: number;
} {
  const rng = createRng('calibration');
  const small = jobs.filter((job) => taskCount(job) <= 10);
  const ratios = Array.from({ length: calibrationDraws }, () =>
    small.flatMap(
      ({ stages }) =>
        slowestToMedian(stages.map(({ tasks }) => tasks.map(() => sample(slowdown, rng)))) ?? [],
    ),
  ).flat();
  const straggling = ratios.filter((ratio) => ratio > 2);
  return { median: quantile(ascending(ratios), 0.5) ?? 0, meanOfStraggling: mean(straggling) ?? 0 };
}
