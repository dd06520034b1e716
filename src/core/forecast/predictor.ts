import type { RemainingStatistic, StoredForecast } from '../../contracts/forecast.ts';
import { amdahlOf, amdahlParts } from './amdahl.ts';
import { indicatorOf } from './forecast-table.ts';
import type { JobProfile } from './job-profile.ts';
import { tableFor } from './resized-table.ts';
import { type StageForecast, stageForecast } from './stage-forecast.ts';
import { stageTotals } from './stage-totals.ts';

/** What is left of a job by its nature, in ms. */
export interface RemainingParts {
  /** The longest chain of longest tasks, which no slots shorten. */
  readonly chainMs: number;
  /** Run time of all tasks, and the time that they take to start. */
  readonly workMs: number;
  readonly queueMs: number;
}

/** Tells what a job has still to go, by what share of each stage's tasks has finished. */
export interface Predictor {
  /** `simulator`: C(p, a); `amdahl`: by its closed form, also where no table was computed yet. */
  readonly by: 'simulator' | 'amdahl';
  remainingMs(fractions: readonly number[], slots: number, statistic: RemainingStatistic): number;
  /** Share of simulated runs that end within `leftMs`, were all work `factor` times as much. */
  chance(
    fractions: readonly number[],
    slots: number,
    left: { readonly leftMs: number; readonly factor: number },
  ): number;
  partsLeft(fractions: readonly number[]): RemainingParts;
  readonly stages: readonly StageForecast[];
  /** Work of earlier runs over the profile's; never empty. */
  readonly workFactors: readonly number[];
}

/** Shares of runs that need no more than a statistic tells, ascending. */
const quantiles = [
  ['best', 0],
  ['quarter', 0.25],
  ['half', 0.5],
  ['three-quarters', 0.75],
  ['most', 0.95],
  ['worst', 1],
] as const satisfies readonly (readonly [RemainingStatistic, number])[];

/** How far from it an end by Amdahl's law may well be: it knows nothing of stragglers. */
const amdahlSpread = 0.25;

/**
 * Makes a predictor of what was learned of a job; `wanted`: by which law, where there is a choice. Amdahl's law that is
 * asked for is the paper's, whose T_s is the time that tasks run (§4.1); where it stands in for a table that is missing,
 * what they take to start is work too, as it holds slots.
 *
 * @param now - the profile as large as the job is now, where earlier runs had other numbers of tasks or bytes.
 */
export function predictorOf(
  { profile, table }: Pick<StoredForecast, 'profile' | 'table'>,
  wanted: 'simulator' | 'amdahl',
  now: JobProfile & { readonly workFactors?: readonly number[] } = profile,
): Predictor {
  const facts = factsOf(now);
  if (table === undefined) return byAmdahl(now, facts, true);
  if (wanted === 'amdahl') return byAmdahl(now, facts, false);
  const indicator = indicatorOf(profile, table);
  const left = tableFor(table, profile, now);
  const at = (fractions: readonly number[], slots: number, statistic: RemainingStatistic): number =>
    fractions.every((share) => share >= 1)
      ? 0
      : left(fractions, { progress: indicator(fractions), slots, statistic });
  return {
    ...facts,
    by: 'simulator',
    remainingMs: at,
    chance: (fractions, slots, { leftMs, factor }) =>
      shareWithin(
        quantiles.map(([statistic, share]) => [factor * at(fractions, slots, statistic), share]),
        leftMs,
      ),
  };
}

function factsOf(
  profile: JobProfile & { readonly workFactors?: readonly number[] },
): Pick<Predictor, 'stages' | 'partsLeft' | 'workFactors'> {
  const { workFactors = [] } = profile;
  const stages = profile.stages.map(stageForecast);
  const ran = profile.stages[0]?.runs ?? [];
  const totals = stageTotals(profile, ran[ran.length >> 1]?.slots ?? 1);
  return {
    stages,
    workFactors: workFactors.length === 0 ? [1] : workFactors,
    partsLeft: (fractions) => {
      const left = (whole: (stage: StageForecast) => number): number =>
        stages.reduce(
          (sum, stage, index) => sum + (1 - (fractions[index] ?? 0)) * stage.tasks * whole(stage),
          0,
        );
      return {
        chainMs: amdahlParts(totals, fractions).serialMs,
        workMs: left(({ meanMs }) => meanMs),
        queueMs: left(({ waitMs }) => waitMs),
      };
    },
  };
}

function byAmdahl(
  profile: JobProfile,
  facts: Pick<Predictor, 'stages' | 'partsLeft' | 'workFactors'>,
  countsStarts: boolean,
): Predictor {
  const at = amdahlOf(profile, countsStarts);
  return {
    ...facts,
    by: 'amdahl',
    remainingMs: at,
    chance: (fractions, slots, { leftMs, factor }) => {
      const endsMs = factor * at(fractions, slots);
      return shareWithin(
        [
          [endsMs * (1 - amdahlSpread), 0],
          [endsMs, 0.5],
          [endsMs * (1 + amdahlSpread), 1],
        ],
        leftMs,
      );
    },
  };
}

/** Where a value lies among quantiles, straight between them. */
function shareWithin(points: readonly (readonly [number, number])[], value: number): number {
  const behind = points.findIndex(([ms]) => ms > value);
  if (behind < 0) return 1;
  const [to, above] = points[behind] ?? [0, 0];
  const before = points[behind - 1];
  if (before === undefined) return 0;
  const [from, below] = before;
  return to === from ? above : below + ((above - below) * (value - from)) / (to - from);
}
