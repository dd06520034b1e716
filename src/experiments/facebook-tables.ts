import { taskLevelStraggle } from './straggle-probability.ts';
import { ascending, mean, quantile } from '../lib/quantiles.ts';
import { type Row, rounded } from './experiment.ts';
import { type Population, populations, stragglerShare } from './facebook-calibration.ts';
import type { JobNote, Run } from './facebook-window.ts';

/** Runs of one treatment, one for each window, by its name. */
export type Runs = ReadonlyMap<string, readonly Run[]>;

/** None of a treatment that was not run. */
export const runsOf = (runs: Runs, name: string): readonly Run[] => runs.get(name) ?? [];

/** Smallest first; the largest open-ended. */
export const bins = [1, 2, 3, 4, 5] as const;

/** (baseline − other) / baseline; 0 of nothing. Source: Dolly §5. */
export const sooner = (baseline: number, other: number): number =>
  baseline === 0 ? 0 : (baseline - other) / baseline;

/** `42.0 %`. */
export const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** All jobs of the runs, or those of one bin. */
export const jobsOf = (runs: readonly Run[], bin?: number): readonly JobNote[] =>
  runs.flatMap(({ jobs }) => (bin === undefined ? jobs : jobs.filter((job) => job.bin === bin)));

/** Mean completion time over the jobs of all runs, or those of one bin, in seconds; 0 of none. */
export const meanS = (runs: readonly Run[], bin?: number): number =>
  (mean(jobsOf(runs, bin).map(({ ms }) => ms)) ?? 0) / 1_000;

/** How much sooner jobs end, of one bin or all, by the means over all windows. */
export const gainOf = (base: readonly Run[], other: readonly Run[], bin?: number): number =>
  sooner(meanS(base, bin), meanS(other, bin));

/** `46.0 % (44.1 % to 47.9 % by window)`. */
export function gainText(base: readonly Run[], other: readonly Run[], bin?: number): string {
  const each = base.map((run, window) => gainOf([run], other.slice(window, window + 1), bin));
  const range = `${percent(Math.min(...each))} to ${percent(Math.max(...each))} by window`;
  return each.length > 1
    ? `${percent(gainOf(base, other, bin))} (${range})`
    : percent(gainOf(base, other, bin));
}

/** Slot time over that of the baseline, as a share of it; 0 of nothing. */
export function moreSlotTime(base: readonly Run[], other: readonly Run[]): number {
  const of = (runs: readonly Run[]): number => sum(runs.map(({ slotSeconds }) => slotSeconds));
  return -sooner(of(base), of(other));
}

/** What every row of a table says of the cluster. */
const clusterOf = (runs: readonly Run[]): Row => ({
  slots: runs[0]?.slots ?? 0,
  utilization: rounded(mean(runs.map(({ utilization }) => utilization)) ?? 0),
});

/** Completion times by size of job, as the paper's Fig. 7 and 8; `cloneTime` is the bin's share of all clones' slot time. */
export function binRows(runs: Runs): Row[] {
  return [...runs].flatMap(([policy, mine]) => {
    const cloneMs = (jobs: readonly JobNote[]): number => sum(jobs.map((job) => job.cloneMs));
    const all = cloneMs(jobsOf(mine));
    return bins.map((bin): Row => {
      const jobs = jobsOf(mine, bin);
      return {
        table: 'bins',
        policy,
        ...clusterOf(mine),
        bin,
        jobs: jobs.length,
        cloned: jobs.filter(({ isCloned }) => isCloned).length,
        cloneTime: rounded(all === 0 ? 0 : cloneMs(jobs) / all),
        meanS: rounded(meanS(mine, bin)),
        soonerThanLate: rounded(gainOf(runsOf(runs, 'LATE'), mine, bin)),
        soonerThanMantri: rounded(gainOf(runsOf(runs, 'Mantri'), mine, bin)),
      };
    });
  });
}

/** Quantiles over the small jobs of how much sooner each ended than the same job with the baseline, as in Fig. 8c. */
export function jobGainRows(
  runs: Runs,
  pairs: readonly { readonly base: string; readonly other: string }[],
): Row[] {
  return pairs.map(({ base, other }) => {
    const gains = runsOf(runs, base).flatMap(({ jobs }, window) => {
      const others = runsOf(runs, other)[window]?.jobs ?? [];
      return jobs.filter(({ bin }) => bin === 1).map(({ index, ms }) => sooner(ms, others[index]?.ms ?? ms));
    });
    const sorted = ascending(gains);
    const at = (share: number): number => rounded(quantile(sorted, share) ?? 0);
    return {
      table: 'small jobs, each against itself',
      policy: other,
      against: base,
      ...clusterOf(runsOf(runs, other)),
      jobs: sorted.length,
      p10: at(0.1),
      p50: at(0.5),
      p75: at(0.75),
      p90: at(0.9),
    };
  });
}

/** One setting of a sweep. */
export const sweepRow = (
  table: string,
  setting: string | number,
  mine: readonly Run[],
  late: readonly Run[],
): Row => ({
  table,
  setting,
  ...clusterOf(mine),
  jobs: jobsOf(mine).length,
  cloned: jobsOf(mine).filter(({ isCloned }) => isCloned).length,
  ...Object.fromEntries(bins.map((bin) => [`bin${bin}SoonerThanLate`, rounded(gainOf(late, mine, bin))])),
  allSoonerThanLate: rounded(gainOf(late, mine)),
});

/** The ratios in small jobs, ascending; phases of fewer than three tasks, and jobs without another, are left out. */
export const ratiosOf = (runs: readonly Run[], population: Population): readonly number[] =>
  ascending(
    jobsOf(runs, 1).flatMap(({ phases }) => {
      const ratios = phases.map(({ ratio }) => ratio);
      return population === 'phases' || ratios.length === 0 ? ratios : [Math.max(...ratios)];
    }),
  );

/** The value that a share of ratios lies at or below; 0 of none. */
export const ratioAt = (runs: readonly Run[], population: Population, share: number): number =>
  quantile(ratiosOf(runs, population), share) ?? 0;

/** A task this much behind the median of its phase is late, as the paper draws the line: 1.17 at the 95th percentile. */
export const late = 1.2;

/** Phases of small jobs that are late, by the copies that their tasks had. */
export interface LatePhases {
  readonly phases: number;
  /** Not cloned: the budget was taken, or nobody clones. */
  readonly uncloned: number;
  /** Held to two copies by a phase that they read. */
  readonly withTwo: number;
  readonly withMore: number;
  /** Share of phases in which all copies of a task were to straggle, by their copies: whatever luck they had. */
  readonly expectedShare: number;
}

/** Why the slowest task of a phase is late: of phases of three tasks or more. */
export function latePhases(runs: readonly Run[]): LatePhases {
  const phases = jobsOf(runs, 1).flatMap((job) => job.phases);
  const behind = phases.filter(({ ratio }) => ratio > late);
  const count = (least: number, below: number): number =>
    behind.filter(({ copies }) => copies >= least && copies < below).length;
  const expected = phases.map(({ tasks, copies }) =>
    taskLevelStraggle({ tasks, clones: copies, stragglerProbability: stragglerShare }),
  );
  return {
    phases: behind.length,
    uncloned: count(0, 2),
    withTwo: count(2, 3),
    withMore: count(3, Infinity),
    expectedShare: mean(expected) ?? 0,
  };
}

/** How far behind the slowest task of small jobs is, and in what phases that is more than a fifth. */
export function ratioRows(runs: Runs): Row[] {
  return [...runs].flatMap(([policy, mine]) => {
    const { phases, uncloned, withTwo, withMore, expectedShare } = latePhases(mine);
    return populations.map((population): Row => ({
      table: 'slowest over median',
      policy,
      ...clusterOf(mine),
      of: population,
      values: ratiosOf(mine, population).length,
      p50: rounded(ratioAt(mine, population, 0.5)),
      p95: rounded(ratioAt(mine, population, 0.95)),
      latePhases: phases,
      uncloned,
      withTwo,
      withMore,
      expectedShare: rounded(expectedShare),
    }));
  });
}

/** Small jobs alone, with stragglers as often as `p`: what hangs on how the paper's median is read. */
export function readingRows(runs: Runs, p: number): Row[] {
  return [...runs].map(([policy, mine]) => ({
    table: 'small jobs, stragglers as if the median were of phases',
    policy,
    ...clusterOf(mine),
    p,
    jobs: jobsOf(mine, 1).length,
    meanS: rounded(meanS(mine, 1)),
    soonerThanLate: rounded(gainOf(runsOf(runs, 'LATE'), mine, 1)),
    soonerThanMantri: rounded(gainOf(runsOf(runs, 'Mantri'), mine, 1)),
    ...Object.fromEntries(
      populations.flatMap((population) => [
        [`${population}P50`, rounded(ratioAt(mine, population, 0.5))],
        [`${population}P95`, rounded(ratioAt(mine, population, 0.95))],
      ]),
    ),
  }));
}
