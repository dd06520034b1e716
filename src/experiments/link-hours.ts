import type { LocationLinks } from '../core/policy/mantri/placement.ts';
import type { Rng } from '../lib/rng.ts';

export const hourS = 3_600;

/** Which second of which link of the recorded hour each link shows in each second: `[link][second]`, as `link * 3,600 + second`. */
export type Exchange = readonly Int32Array[];

/** Nothing takes longer. */
const mostHours = 24;

/** How slices of the links' hours are exchanged. */
export interface Slicing {
  /** Divides the hour. */
  readonly sliceS: number;
  /** Whether a slice may come from another link too; else all links have theirs in the same new order. */
  readonly isAcrossLinks: boolean;
}

function shuffled(count: number, rng: Rng): Int32Array {
  const order = Int32Array.from({ length: count }, (_, index) => index);
  for (let last = count - 1; last > 0; last--) {
    const other = Math.floor(rng.next() * (last + 1));
    [order[last], order[other]] = [order[other] ?? 0, order[last] ?? 0];
  }
  return order;
}

/**
 * Cuts each link's hour into slices and puts them into another order, so that loads last no longer than a slice and are spread as before.
 * In time alone, the links keep what they carried in the same second, and each its mean; across links, all have the same mean.
 */
export function exchangeSlices(links: number, { sliceS, isAcrossLinks }: Slicing, rng: Rng): Exchange {
  const slices = hourS / sliceS;
  const order = shuffled(isAcrossLinks ? links * slices : slices, rng);
  return Array.from({ length: links }, (_, link) =>
    Int32Array.from({ length: hourS }, (_unused, s) => {
      const [slice, within] = [Math.floor(s / sliceS), s % sliceS];
      const from = isAcrossLinks ? (order[link * slices + slice] ?? 0) : link * slices + (order[slice] ?? 0);
      return from * sliceS + within;
    }),
  );
}

/** An hour of links, second by second, again and again: the mean of any stretch of an hour at most. */
export class LinkHours {
  /** By link, then second: sums up to there. */
  private readonly before: readonly Float64Array[];
  private readonly racks: number;
  private readonly bytesPerMs: number;

  /** @param shares - of `bytesPerMs`, by link (uplinks of all racks, then downlinks) and second. */
  constructor(shares: readonly Float64Array[], bytesPerMs: number, exchange?: Exchange) {
    this.racks = shares.length / 2;
    this.bytesPerMs = bytesPerMs;
    this.before = shares.map((own, link) => {
      const [sums, from] = [new Float64Array(hourS + 1), exchange?.[link]];
      for (let s = 0; s < hourS; s++) {
        const at = from?.[s];
        const share = at === undefined ? own[s] : shares[Math.floor(at / hourS)]?.[at % hourS];
        sums[s + 1] = (sums[s] ?? 0) + (share ?? 0);
      }
      return sums;
    });
  }

  /** The mean from `fromS` to `toS`, the second of the beginning at least. */
  leftTo(fromS: number, toS: number): LocationLinks {
    const seconds = Math.max(1, Math.min(hourS, Math.ceil(toS) - Math.floor(fromS)));
    const first = Math.floor(fromS) % hourS;
    const mean = (sums: Float64Array): number => {
      const untilEnd = Math.min(hourS, first + seconds);
      const again = first + seconds - untilEnd;
      return (this.bytesPerMs * ((sums[untilEnd] ?? 0) - (sums[first] ?? 0) + (sums[again] ?? 0))) / seconds;
    };
    return { up: this.before.slice(0, this.racks).map(mean), down: this.before.slice(this.racks).map(mean) };
  }

  /** How long after `fromS` each link has carried so many bytes, in milliseconds: of all uplinks, then of all downlinks, the latest. */
  carriedMs(fromS: number, bytes: readonly number[]): number {
    return bytes.reduce((latest, most, link) => Math.max(latest, this.carriedByMs(link, fromS, most)), 0);
  }

  private carriedByMs(link: number, fromS: number, bytes: number): number {
    const sums = this.before[link];
    let left = bytes / (1_000 * this.bytesPerMs);
    for (let s = 0; left > 0 && s < mostHours * hourS; s++) {
      const at = (Math.floor(fromS) + s) % hourS;
      const share = (sums?.[at + 1] ?? 0) - (sums?.[at] ?? 0);
      if (left <= share) return 1_000 * (s + left / share);
      left -= share;
    }
    return left > 0 ? Infinity : 0;
  }

  /**
   * How long a link stays as it is, in seconds: the lag at which what links leave in one second and in another are correlated by no more than
   * 1/e, each about its own mean, all links together, between those lags where it is measured; over the hour's part of `seconds` before `untilS`.
   * The longest lag where loads last longer, 0 where nothing changes.
   */
  persistenceS(untilS: number, seconds: number): number {
    const from = untilS - seconds + hourS;
    const lags = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512].filter((lag) => lag < seconds);
    const products = lags.map(() => 0);
    for (const sums of this.before) {
      const own = Float64Array.from({ length: seconds }, (_, i) => {
        const s = (from + i) % hourS;
        return (sums[s + 1] ?? 0) - (sums[s] ?? 0);
      });
      const mean = own.reduce((sum, share) => sum + share, 0) / seconds;
      lags.forEach((lag, which) => {
        let sum = 0;
        for (let i = lag; i < seconds; i++) sum += ((own[i] ?? 0) - mean) * ((own[i - lag] ?? 0) - mean);
        products[which] = (products[which] ?? 0) + sum / (seconds - lag);
      });
    }
    return lagOf(
      Math.exp(-1),
      lags,
      products.map((product) => product / (products[0] ?? 1)),
    );
  }
}

/** Where correlations, that fall with the lag, come down to `least`: on the line between the lags on either side. */
function lagOf(least: number, lags: readonly number[], correlations: readonly number[]): number {
  const after = correlations.findIndex((correlation) => !(correlation > least));
  if (after < 0) return lags.at(-1) ?? 0;
  if (after === 0) return 0;
  const [before, below] = [correlations[after - 1] ?? 1, correlations[after] ?? 0];
  const [from, to] = [lags[after - 1] ?? 0, lags[after] ?? 0];
  return from + ((to - from) * (before - least)) / (before - below);
}
