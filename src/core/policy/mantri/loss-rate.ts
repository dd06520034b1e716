import type { StorageTier } from '../../../contracts/storage-tiers.ts';

/** Outputs that were kept at a location for others to read, and how many of them turned out to be lost. */
export interface LossCounts {
  readonly outputs: number;
  readonly lost: number;
}

/** What is taken for granted before anything is seen: a probability, and after how many outputs experience counts as much. */
export interface LossPrior {
  readonly probability: number;
  readonly outputs: number;
  /** Where the number is from, for the log. */
  readonly why: string;
}

/**
 * The prior of each tier. That of `standard` is what S3 states for a year, far longer than an output is needed, and is
 * known of so many objects that no job's experience moves it: what is lost there all the same was removed by somebody, who
 * may remove a copy as well. The other two are to be learned, and give way after twenty outputs.
 */
export const lossPriors: Readonly<Record<StorageTier, LossPrior>> = {
  standard: {
    probability: 1e-11,
    outputs: 1e13,
    why: 'S3 Standard keeps each object in at least three zones and is made for 99.999999999 % durability over a year',
  },
  zonal: {
    probability: 5e-4,
    outputs: 20,
    why: 'S3 Express One Zone keeps objects in one zone, and is made for 99.95 % availability there',
  },
  'worker-local': {
    probability: 0.01,
    outputs: 20,
    why: 'an output on the disk of its worker is gone with that worker; one in a hundred until more is known',
  },
};

const nothing: LossCounts = { outputs: 0, lost: 0 };

/** Adds what was seen at a location to what is known of it. */
export function addLosses(seen: Map<string, LossCounts>, location: string, more: LossCounts): void {
  const { outputs, lost } = seen.get(location) ?? nothing;
  seen.set(location, { outputs: outputs + more.outputs, lost: lost + more.lost });
}

/**
 * r: the probability that an output at a location is lost while it is needed, from what was seen there: the mean of a
 * Beta posterior, which neither no loss nor nothing but losses brings to 0 or 1.
 */
export const lossProbability = (
  { probability, outputs: strength }: Pick<LossPrior, 'probability' | 'outputs'>,
  { outputs, lost }: LossCounts = nothing,
): number => (probability * strength + Math.min(lost, outputs)) / (strength + outputs);

/** r of each location, one of which nothing is known included. */
export type LossRates = (location: string) => number;

/**
 * r of the locations of a tier, by what was seen at each over a long window. A location of which little is known is taken
 * for one like the others: its prior is what all of them together have come to, from the tier's, unless another is given.
 *
 * Source: Mantri §5.3 (the probability is estimated for a machine over a long time). Ours: the prior, since the paper has
 * seen each of its machines for months.
 */
export function lossRates(
  tier: StorageTier,
  seen: ReadonlyMap<string, LossCounts>,
  prior: Pick<LossPrior, 'probability' | 'outputs'> = lossPriors[tier],
): LossRates {
  let [outputs, lost] = [0, 0];
  for (const each of seen.values()) {
    outputs += each.outputs;
    lost += Math.min(each.lost, each.outputs);
  }
  const ofAll = { ...prior, probability: lossProbability(prior, { outputs, lost }) };
  return (location) => lossProbability(ofAll, seen.get(location));
}

/** The probability that all copies of an output are lost, which lie at locations of these r. 1 of none. */
export const lossOfAll = (rates: readonly number[]): number =>
  rates.reduce((product, rate) => product * rate, 1);
