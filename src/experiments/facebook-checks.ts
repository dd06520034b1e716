import { mean } from '../lib/quantiles.ts';
import type { TimedJob } from '../traces/generators/work.ts';
import { claim, within } from './checks.ts';
import { type Check, intervalOf } from './experiment.ts';
import {
  type Population,
  populations,
  ratioUnderLate,
  shareByPhases,
  showing,
  tellingPhases,
} from './facebook-calibration.ts';
import {
  gainOf,
  gainText,
  jobsOf,
  late,
  latePhases,
  moreSlotTime,
  percent,
  ratioAt,
  ratiosOf,
  type Runs,
  runsOf,
} from './facebook-tables.ts';
import { heavyTail, paperMachines, type Run, tellingJobs } from './facebook-window.ts';

/** A baseline, what is compared with it, and what the paper finds of small jobs and of all. */
export interface Comparison {
  readonly base: string;
  readonly other: string;
  readonly small: number;
  readonly all: number;
}

/** The heavy tail, from the trace itself. */
export function tailChecks(jobs: readonly TimedJob[]): Check[] {
  const { smallShare, smallestWork } = heavyTail(jobs);
  return [
    claim('jobs of at most ten tasks, in the trace itself', {
      paper: '82 %',
      got: percent(smallShare),
      rule: 'most jobs',
      ok: smallShare > 0.6,
      kind: 'side',
    }),
    claim('work of the smallest 90 % of the jobs', {
      paper: '6 %',
      got: percent(smallestWork),
      rule: 'at most 11 %, as at Bing',
      ok: smallestWork <= 0.11,
      kind: 'side',
    }),
  ];
}

/** LATE's runs of some days with stragglers as often as `share`. */
export interface CalibrationDays {
  readonly share: number;
  readonly days: readonly Run[];
}

const medianOf = (day: Run): number => ratioAt([day], 'jobs', 0.5);
const isObserved = (ratio: number): boolean => ratio >= 6 && ratio <= 8;

/** Whether p is the least, in hundredths, at which every day shows what the paper observed. */
function leastShareCheck(at: CalibrationDays, below: CalibrationDays): Check {
  const medians = ({ share, days }: CalibrationDays): string =>
    `${Math.min(...days.map(medianOf)).toFixed(2)} to ${Math.max(...days.map(medianOf)).toFixed(2)} at p = ${share}`;
  return claim(
    'calibration, LATE alone on ten days: slowest over median task of small jobs, median of each day',
    {
      paper: '6 to 8',
      got: `${medians(at)}, ${medians(below)}`,
      rule: 'the least p, in hundredths, with 6 to 8 on every day',
      ok:
        at.days.every((day) => isObserved(medianOf(day))) &&
        !below.days.every((day) => isObserved(medianOf(day))),
      kind: 'side',
    },
  );
}

/** The other reading of the paper's median. */
function phasesCheck(jobs: readonly TimedJob[]): Check {
  const lists = tellingPhases(jobs, 'phases');
  const [at, below] = [showing(lists, shareByPhases), showing(lists, shareByPhases - 0.01)];
  return claim(
    'the other reading, closed form: phases of three tasks or more in small jobs that show a straggler',
    {
      paper: 'more than half, for a median of 6 to 8',
      got: `${percent(at)} of ${lists.length} at p = ${shareByPhases}, ${percent(below)} at a hundredth less`,
      rule: 'the least p, in hundredths, with more than half',
      ok: at > 0.5 && below <= 0.5,
      kind: 'side',
    },
  );
}

/** The calibration is an input and no evidence: these say that it does what it is for, with LATE's runs alone. */
export function calibrationChecks(
  jobs: readonly TimedJob[],
  at: CalibrationDays,
  below: CalibrationDays,
): Check[] {
  const { days } = at;
  const longestMs = Math.max(
    1,
    ...tellingJobs(jobs).jobs.flatMap(({ stages }) =>
      stages.flatMap(({ tasks }) => tasks.map((task) => task.workMs)),
    ),
  );
  const straggling = ratiosOf(days, 'phases').filter((ratio) => ratio > 2);
  const meanRatio = mean(straggling) ?? 0;
  return [
    leastShareCheck(at, below),
    phasesCheck(jobs),
    claim('calibration, closed form: slowest over median under LATE, at the longest task of a small job', {
      paper: 'at least 6',
      got: `${ratioUnderLate(longestMs).toFixed(2)} at ${(longestMs / 1_000).toFixed(1)} s`,
      rule: 'at least 6',
      ok: ratioUnderLate(longestMs) >= 6,
      kind: 'side',
    }),
    claim('calibration, LATE alone on ten days: mean of the phases that straggle', {
      paper: '8',
      got: meanRatio.toFixed(2),
      rule: 'within 1',
      ok: Math.abs(meanRatio - 8) <= 1,
      kind: 'side',
    }),
  ];
}

/** Share of all jobs' completion times that bins 3 to 5 have. */
function largerShare(runs: readonly Run[]): number {
  const total = (jobs: readonly { readonly ms: number }[]): number =>
    jobs.reduce((sum, { ms }) => sum + ms, 0);
  const all = jobsOf(runs);
  return total(all.filter(({ bin }) => bin >= 3)) / Math.max(1, total(all));
}

/** How much sooner jobs end, and for how much slot time. */
export function gainChecks(runs: Runs, { base, other, small, all }: Comparison): Check[] {
  const [before, after] = [runsOf(runs, base), runsOf(runs, other)];
  const gain = gainOf(before, after, 1);
  const more = moreSlotTime(before, after);
  const near = 0.1;
  return [
    claim(`small jobs: sooner than with ${base}`, {
      paper: percent(small),
      got: gainText(before, after, 1),
      rule: 'within 10 points',
      ok: Math.abs(gain - small) <= near,
      kind: 'value',
    }),
    claim(`small jobs: sooner than with ${base}, at the least`, {
      paper: '34 %',
      got: percent(gain),
      rule: 'at least that',
      ok: gain >= 0.34,
    }),
    claim(`all jobs: sooner than with ${base}`, {
      paper: percent(all),
      got: gainText(before, after),
      rule: `within 10 points; bins 3 to 5, too large for the budget but for a few, have ${percent(largerShare(before))} of the time with ${base}`,
      ok: Math.abs(gainOf(before, after) - all) <= near,
      kind: 'value',
    }),
    claim(`slot time over ${base}'s`, {
      paper: 'under 5 % more',
      got: percent(more),
      rule: 'at most 5 %',
      ok: more <= 0.05,
    }),
  ];
}

/** Why the 95th percentile is what it is. */
function lateText(runs: readonly Run[]): string {
  const { phases, uncloned, withTwo, withMore, expectedShare } = latePhases(runs);
  return `late are ${phases} phases: ${uncloned} not cloned, ${withTwo} with two copies, ${withMore} with more; ${percent(expectedShare)} were to be expected`;
}

const ratioText = (runs: readonly Run[], population: Population): string =>
  `${ratioAt(runs, population, 0.5).toFixed(2)}, 95th percentile ${ratioAt(runs, population, 0.95).toFixed(2)}, of ${ratiosOf(runs, population).length} ${population}`;

/** What cloning leaves of stragglers in small jobs, in the very runs of the gains. */
export function ratioChecks(runs: Runs, { base, other }: Comparison): Check[] {
  const [before, after] = [runsOf(runs, base), runsOf(runs, other)];
  return [
    claim(`small jobs: slowest over median task, ${base}`, {
      paper: 'over 5',
      got: `${ratioText(before, 'jobs')}; ${ratioText(before, 'phases')}`,
      rule: 'over 5 at the median of jobs; of phases it is no more than a toss, since about half of them straggle',
      ok: ratioAt(before, 'jobs', 0.5) > 5,
    }),
    ...populations.flatMap((population) => [
      claim(`small jobs: slowest over median task, ${other}, by ${population}`, {
        paper: '1.06, 95th percentile 1.17',
        got: ratioText(after, population),
        rule: 'median at most 1.1',
        ok: ratioAt(after, population, 0.5) <= 1.1,
      }),
      claim(`the same, 95th percentile, ${other}, by ${population}`, {
        paper: '1.17',
        got: `${ratioText(after, population)}; ${lateText(after)}`,
        rule: `at most ${late}, so that at most one in twenty may be late: ε admits as many for each phase, a phase never has more copies than one that it reads, and where the cluster is fuller than τ, or the budget is spent, nothing is cloned`,
        ok: ratioAt(after, population, 0.95) <= late,
        kind: 'value',
      }),
    ]),
  ];
}

/** The runs of the sweeps on one cluster: β by its value, and what is done where the budget does not suffice by its name. */
export interface Sweeps {
  readonly machines: number;
  readonly late: readonly Run[];
  readonly budgets: ReadonlyMap<number, readonly Run[]>;
  readonly admissions: ReadonlyMap<string, readonly Run[]>;
}

/** The shape of Fig. 15: flat beyond 5 %, and nothing without a budget. */
export function budgetChecks({ machines, late: base, budgets }: Sweeps): Check[] {
  const gain = (share: number): number => gainOf(base, budgets.get(share) ?? [], 1);
  const texts = [...budgets.keys()].map((share) => `${percent(gain(share))} at ${percent(share)}`).join(', ');
  return [
    claim(`small jobs, ${machines} machines: β beyond 5 %`, {
      paper: 'flat',
      got: `${percent(gain(0.05))} at 5 %, ${percent(gain(0.12))} at 12 %`,
      rule: 'within 5 points',
      ok: Math.abs(gain(0.12) - gain(0.05)) <= 0.05,
    }),
    claim(`small jobs, ${machines} machines: with hardly any budget`, {
      paper: 'collapses',
      got: texts,
      rule: 'the gain at 0.1 % is under half of that at 5 %',
      ok: gain(0.001) < gain(0.05) / 2,
    }),
    claim(`small jobs, ${machines} machines: where they collapse`, {
      paper: 'under 2 %',
      got: texts,
      rule: 'under half of the gain of 5 % at 0.5 %, and at least nine tenths of it at 2 %; it hangs on the slots that a share of the cluster is',
      ok: gain(0.005) < gain(0.05) / 2 && gain(0.02) >= 0.9 * gain(0.05),
      kind: 'value',
    }),
  ];
}

/**
 * Fig. 16: admission against its rivals. On the paper's 150 machines this trace's small jobs never want for budget, so
 * that nobody can deny it to them: there the comparison with first come, first served decides nothing.
 */
export function admissionChecks({ machines, late: base, admissions }: Sweeps): Check[] {
  const gain = (name: string, bin?: number): number => gainOf(base, admissions.get(name) ?? [], bin);
  const got = (bin?: number): string =>
    [...admissions.keys()].map((name) => `${percent(gain(name, bin))} ${name}`).join(', ');
  const less = gain('all-or-nothing') - gain('first-come');
  return [
    claim(`small jobs, ${machines} machines: first come, first served`, {
      paper: 'larger jobs deny them the budget',
      got: got(1),
      rule: 'gain less than with admission, where the budget is scarce',
      ok: gain('first-come', 1) < gain('all-or-nothing', 1),
      kind: machines === paperMachines ? 'side' : 'shape',
    }),
    claim(`all jobs, ${machines} machines: first come, first served`, {
      paper: 'about 14 % less than with admission',
      got: got(),
      rule: '9 to 19 points less; not so where the budget is idle most of the time: larger jobs, refused by admission, then get clones for some of their tasks',
      ok: less >= 0.09 && less <= 0.19,
      kind: 'value',
    }),
    claim(`all jobs, ${machines} machines: preemption`, {
      paper: '43 % against 42 % with admission',
      got: got(),
      rule: 'within two points; refused for the budget are almost only phases that are larger than all of it',
      ok: Math.abs(gain('preemption') - gain('all-or-nothing')) <= 0.02,
    }),
  ];
}

/** Points by which a mean gain may differ. */
const nearPoints = 10;

/**
 * What the very runs under LATE would gain without stragglers: an observation of the paper that the calibration did not
 * look at. Its mean over jobs, since gains by the mean of times are those of the few longest jobs.
 *
 * Source: Dolly §2.1.1.
 */
export const whatIfChecks = (late: readonly Run[]): Check[] =>
  (
    [
      ['all jobs', undefined, 47],
      ['small jobs', 1, 49],
    ] as const
  ).map(([name, bin, paper]) => {
    const gains = late.map(
      ({ jobs }) =>
        (mean(
          jobs
            .filter((job) => bin === undefined || job.bin === bin)
            .map(({ ms, whatIfMs }) => 1 - whatIfMs / Math.max(1, ms)),
        ) ?? 0) * 100,
    );
    return within(
      `${name}, LATE: sooner if no task were slower than the median of its phase, %`,
      paper,
      intervalOf(gains),
      {
        tolerance: nearPoints,
        why: 'a job at a time, as its phases are counted; phases of one task have no median to be behind, those of two half the gap',
      },
    );
  });

/** What a share of the cluster is worth: an input, as the calibration. */
export function clusterChecks(runs: Runs, machineSlots: number, machines: readonly number[]): Check[] {
  const peak = Math.max(0, ...runsOf(runs, 'LATE').map(({ smallPeakSlots }) => smallPeakSlots));
  const shareOf = (count: number): number => peak / (count * machineSlots);
  return [
    claim('cluster: slots that small jobs use at most, with LATE', {
      paper: 'never more than 2 %',
      got: `${peak}: ${machines.map((count) => `${percent(shareOf(count))} of ${count} machines`).join(', ')}`,
      rule: 'at most 2.5 % of the smallest',
      ok: shareOf(Math.min(...machines)) <= 0.025,
      kind: 'side',
    }),
  ];
}
