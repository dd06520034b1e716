import { claim } from './checks.ts';
import { type Check, rounded, type Row } from './experiment.ts';
import { base, type Group, type SchemeName, weightedQuantile } from './placement-figures.ts';

/** A phase in an hour that one scheme has placed as a whole. */
export interface ReplayedPhase {
  readonly isSmall: boolean;
  readonly ms: number;
}

export interface ReplayedHour {
  readonly scheme: SchemeName;
  /** All hours' phases in the same order. */
  readonly phases: readonly ReplayedPhase[];
}

/** The whole hour under each scheme: every phase when it was submitted, all slowed down by each other. */
export function hourFindings(hours: readonly ReplayedHour[]): {
  readonly rows: Row[];
  readonly checks: Check[];
} {
  const secondsOf = (scheme: SchemeName, group: Group): number =>
    (hours.find((hour) => hour.scheme === scheme)?.phases ?? []).reduce(
      (sum, { isSmall, ms }) => (group === 'all' || isSmall === (group === 'small') ? sum + ms / 1_000 : sum),
      0,
    );
  const before = hours.find(({ scheme }) => scheme === base)?.phases ?? [];
  const rows = hours.map(({ scheme, phases }): Row => {
    const reductions = phases.flatMap(({ ms }, index) => {
      const weight = before[index]?.ms ?? 0;
      return weight > 0 ? [[100 * (1 - ms / weight), weight] as const] : [];
    });
    return {
      table: 'the whole hour placed by one scheme',
      scheme,
      seconds: rounded(secondsOf(scheme, 'all')),
      small: rounded(secondsOf(scheme, 'small')),
      large: rounded(secondsOf(scheme, 'large')),
      p25: rounded(weightedQuantile(reductions, 0.25)),
      p50: rounded(weightedQuantile(reductions, 0.5)),
      p75: rounded(weightedQuantile(reductions, 0.75)),
    };
  });
  const text = (group: Group): string =>
    `Start ${secondsOf('start', group).toFixed(0)} s, Equal ${secondsOf('equal', group).toFixed(0)} s`;
  return {
    rows,
    checks: [
      claim('the whole hour placed by one scheme', {
        paper: 'Start better for short phases, Equal for long ones, Mantri takes the better of both',
        got: `small: ${text('small')}; large: ${text('large')}; all: Mantri ${secondsOf('mantri', 'all').toFixed(0)} s, ${text('all')}`,
        rule: 'so, and Mantri ahead of both',
        kind: 'side',
        ok:
          secondsOf('start', 'small') <= secondsOf('equal', 'small') &&
          secondsOf('equal', 'large') <= secondsOf('start', 'large') &&
          secondsOf('mantri', 'all') <= Math.min(secondsOf('start', 'all'), secondsOf('equal', 'all')),
      }),
    ],
  };
}
