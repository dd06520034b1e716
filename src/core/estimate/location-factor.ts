import { addSlowness, type Sums, unknownZone, type ZonesSlowness } from '../model/zone-slowness.ts';

/** How slow a task that runs is for its input, and where it runs; undefined: nobody tells. */
export interface ZoneSample {
  readonly zone: string | undefined;
  readonly slowness: number;
}

/** How much slower than t_new says a task is in a zone, and by how many samples from there. */
export interface LocationFactor {
  readonly factor: number;
  readonly samples: number;
}

/**
 * How much tasks of one zone differ before any has told it: the standard deviation of the logarithm of their slowness, by
 * which one in six is 2.7 times as slow as is usual. It counts as much as one sample.
 */
const supposedDeviation = 1;
const supposedSamples = 1;
/** Zones are taken to differ by what goes beyond so many standard deviations of what chance does: once in twenty stages. */
const beyondChance = 2;

/** Logarithms of the slowness of a zone's samples, and how many of them t_new is a mean of: those that were not outrun. */
interface Tally extends Sums {
  ofMean: number;
}

const meanOf = ({ sum, count }: Tally): number => sum / count;

function talliesOf(
  finished: Readonly<ZonesSlowness>,
  running: readonly ZoneSample[],
): ReadonlyMap<string, Tally> {
  const tallies = new Map<string, Tally>();
  for (const [zone, { won, outrun }] of finished) {
    tallies.set(zone, {
      ofMean: won.count,
      count: won.count + outrun.count,
      sum: won.sum + outrun.sum,
      squares: won.squares + outrun.squares,
    });
  }
  for (const { zone = unknownZone, slowness } of running) {
    if (slowness <= 0) continue;
    const tally = tallies.get(zone) ?? { ofMean: 0, count: 0, sum: 0, squares: 0 };
    tallies.set(zone, tally);
    tally.ofMean += 1;
    addSlowness(tally, slowness);
  }
  return tallies;
}

const total = (tallies: readonly Tally[], of: (tally: Tally) => number): number =>
  tallies.reduce((sum, each) => sum + of(each), 0);

/** How much tasks of one zone differ: the variance of the logarithms. */
function varianceWithin(zones: readonly Tally[]): number {
  const squares = total(zones, (each) => Math.max(0, each.squares - each.sum * meanOf(each)));
  const freedom = total(zones, ({ count }) => count - 1);
  return (squares + supposedDeviation ** 2 * supposedSamples) / (freedom + supposedSamples);
}

/**
 * How much zones differ beyond what as many samples differ by chance, which is the variance within them times χ² of one
 * less than there are zones.
 */
function varianceBetween(zones: readonly Tally[], within: number): number {
  const freedom = zones.length - 1;
  if (freedom < 1) return 0;
  const count = total(zones, (each) => each.count);
  const mean = total(zones, ({ sum }) => sum) / count;
  const apart = total(zones, (each) => each.count * (meanOf(each) - mean) ** 2);
  const byChance = freedom + beyondChance * Math.sqrt(2 * freedom);
  return Math.max(0, apart - byChance * within) / (count - total(zones, (each) => each.count ** 2) / count);
}

/**
 * The factor of each zone that a task of a stage has run in: how slow tasks are there for what they read, over how slow
 * they are where the samples ran that t_new is a mean of, so that t_new of a place like theirs stays as it is. It is 1 as
 * long as zones differ no more than chance has it, and where samples are few it lies nearer to 1: what a zone's logarithm
 * has beyond that of all counts by Z = n / (n + v / a), with n samples of the zone, which differ by v within zones, and
 * zones by a. By logarithms, since a zone slows its tasks in proportion, and single stragglers are no zone's. So those that
 * a zone has by luck send no copies elsewhere as if they took less there. A zone that is not there has 1. Costs what runs.
 *
 * Source: Mantri §5.5, locationFactor, of which it says no more than that it is 1 on the mean and above it where it is
 * slower. Z is Bühlmann and Straub's credibility (1970), with less taken for a difference of zones.
 */
export function locationFactors(
  finished: Readonly<ZonesSlowness>,
  running: readonly ZoneSample[],
): ReadonlyMap<string, LocationFactor> {
  const tallies = talliesOf(finished, running);
  const all = [...tallies.values()];
  const zones = [...tallies].filter(([zone]) => zone !== unknownZone);
  const known = zones.map(([, tally]) => tally);
  const within = varianceWithin(known);
  const between = varianceBetween(known, within);
  const mean = total(all, ({ sum }) => sum) / total(all, ({ count }) => count);
  const slownessIn = (tally: Tally): number =>
    Math.exp(mean + (tally.count / (tally.count + within / between)) * (meanOf(tally) - mean));
  const ofMean = total(all, (each) => each.ofMean);
  const usual = total(all, (each) => each.ofMean * slownessIn(each)) / ofMean;
  const isTold = between > 0 && ofMean > 0;
  return new Map(
    zones.map(([zone, tally]) => [
      zone,
      { factor: isTold ? slownessIn(tally) / usual : 1, samples: tally.count },
    ]),
  );
}
