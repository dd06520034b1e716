import { mean } from '../lib/quantiles.ts';
import type { Distribution } from '../sim/distribution.ts';
import type { WorkRates } from '../traces/generators/work.ts';
import { taskCount, type TraceJob } from '../traces/trace-job.ts';

/**
 * Calibrated on what the paper observes under LATE alone (§1, §2.1): in jobs of at most ten tasks the slowest task is
 * 6 to 8 times behind the median one at the median, and stragglers run 8 times as long on average. No run with clones
 * has a say. Phases of one or two tasks cannot show a ratio above 2 (a median of two is halfway between them), so
 * that the observation is of jobs with a phase of three tasks or more, each by the worst of these. Three numbers
 * follow:
 *
 * - how much slower stragglers are: 8, without spread, since a median and a mean tell of none;
 * - how long tasks are: LATE copies nothing before it is 60 s old, so that a whole task of W seconds ends after
 *   min(8 W, 60 + W): at least 6 W for every W up to 12 s. The longest task of such jobs, a reduce of 256 MiB, is so
 *   long at 42 ms/MiB (24 MiB/s), after a second to start. The trace tells bytes alone, and times of the Facebook
 *   cluster were never public; at the 880 ms/MiB of another cluster in 2009 LATE would mend all but the tiniest jobs;
 * - how often: the least p, in hundredths, at which the median is 6 to 8 on each of ten days of LATE's own runs. That
 *   takes a straggler in clearly more than half of the jobs: with barely half, at 0.14, every third day shows none.
 */
export const stragglerShare = 0.17;
const straggler = 8;
const minAgeMs = 60_000;
/** Of all copies, and so of the work of a job that nobody treats. */
export const meanSlowdown = 1 + stragglerShare * (straggler - 1);
/**
 * The least p at which more than half of the *phases* of three tasks or more show a straggler, as the paper's words
 * can also be read ("phases in jobs with fewer than ten tasks"). For a table beside the others.
 */
export const shareByPhases = 0.2;
/** What a copy's luck multiplies its work by. Tasks of a phase differ by a few per cent besides. */
export const slowdownOf = (probability: number): Distribution => ({
  kind: 'mixture',
  probability,
  outlier: straggler,
  usual: { kind: 'lognormal', median: 1, sigma: 0.03 },
});

/** As `stragglerShare` has it. */
export const slowdown = slowdownOf(stragglerShare);

/** See `stragglerShare`. */
export const facebookRates: WorkRates = {
  startupMs: 1_000,
  msPerInputMib: 42,
  msPerOutputMib: 0,
  unknownMs: 10_000,
};

/** Fewer tasks cannot show how far the slowest is behind. */
export const leastTelling = 3;
/** Tasks of a small job: bin 1. */
export const smallTasks = 10;

/** Of what a ratio of slowest to median task is: each phase of small jobs, or each small job by the worst of its phases. */
export type Population = 'phases' | 'jobs';
export const populations = ['phases', 'jobs'] as const satisfies readonly Population[];

/** Tasks of the phases in which a straggler of a small job can show: in lists of one, or one list for each job. */
export function tellingPhases(
  jobs: readonly TraceJob[],
  population: Population,
): readonly (readonly number[])[] {
  const byJob = jobs
    .filter((job) => taskCount(job) <= smallTasks)
    .map(({ stages }) => stages.map(({ tasks }) => tasks.length).filter((tasks) => tasks >= leastTelling))
    .filter(({ length }) => length > 0);
  return population === 'jobs' ? byJob : byJob.flat().map((tasks) => [tasks]);
}

/** Binomial probabilities of k = 1 to `most` of `tasks` that straggle, in all. */
function oneTo(most: number, tasks: number, p: number): number {
  let sum = 0;
  let each = (1 - p) ** tasks;
  for (let k = 1; k <= most; k++) {
    each *= ((tasks - k + 1) / k) * (p / (1 - p));
    sum += each;
  }
  return sum;
}

/** Probability that a phase shows a straggler: at least one task straggles, and so few that the median task does not. */
const showsOne = (tasks: number, p: number): number => oneTo(Math.ceil(tasks / 2) - 1, tasks, p);

/** Share of lists of phases of which any shows a straggler, where each task straggles with probability p below 1; 0 of none. */
export const showing = (lists: readonly (readonly number[])[], p: number): number =>
  mean(lists.map((phases) => 1 - phases.reduce((none, tasks) => none * (1 - showsOne(tasks, p)), 1))) ?? 0;

/** Slowest over median task under LATE, where a straggler shows and the others take `workMs`: the least is at the longest. */
export const ratioUnderLate = (workMs: number): number => Math.min(straggler, (minAgeMs + workMs) / workMs);
