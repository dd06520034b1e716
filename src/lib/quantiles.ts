/** A mean with the interval that holds the true mean at the stated confidence; `low` = `high` = mean of one value. */
export interface MeanInterval {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}

/** A sorted copy, smallest first. (The default order of `toSorted` is that of texts.) */
export const ascending = (values: readonly number[]): number[] => values.toSorted((a, b) => a - b);

/**
 * The value that a share `p` of `sorted` lies at or below, interpolated linearly between neighbours
 * (Hyndman and Fan's type 7, as in R and NumPy). Undefined for no values.
 *
 * @param sorted - ascending.
 * @param p - share in [0, 1]; outside it the nearest end counts.
 */
export function quantile(sorted: readonly number[], p: number): number | undefined {
  const position = Math.min(1, Math.max(0, p)) * (sorted.length - 1);
  const below = sorted[Math.floor(position)];
  const above = sorted[Math.ceil(position)];
  if (below === undefined || above === undefined) return undefined;
  return below === above ? below : below + (above - below) * (position - Math.floor(position));
}

/** The middle value (mean of the two middle ones) of values in any order; undefined for none. */
export const median = (values: readonly number[]): number | undefined => quantile(ascending(values), 0.5);

/** Arithmetic mean; undefined for no values. */
export function mean(values: readonly number[]): number | undefined {
  if (values.length === 0) return undefined;
  let sum = 0;
  for (const value of values) sum += value;
  return sum / values.length;
}

/** Sample standard deviation (divides by n − 1); 0 for one value, undefined for none. */
export function standardDeviation(values: readonly number[]): number | undefined {
  const centre = mean(values);
  if (centre === undefined) return undefined;
  if (values.length === 1) return 0;
  let squares = 0;
  for (const value of values) squares += (value - centre) ** 2;
  return Math.sqrt(squares / (values.length - 1));
}

/**
 * Mean of independent values (one per seed, say) with its Student t confidence interval.
 * Undefined for no values. One value tells nothing about its spread: the interval is then that value.
 *
 * @param level - share of such intervals that hold the true mean, in (0, 1).
 */
export function meanInterval(values: readonly number[], level = 0.95): MeanInterval | undefined {
  const centre = mean(values);
  const spread = standardDeviation(values);
  if (centre === undefined || spread === undefined) return undefined;
  if (values.length === 1) return { mean: centre, low: centre, high: centre };
  const half = (studentTQuantile((1 + level) / 2, values.length - 1) * spread) / Math.sqrt(values.length);
  return { mean: centre, low: centre - half, high: centre + half };
}

/** Coefficients of Lanczos' approximation of the gamma function (g = 7, n = 9). */
const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
] as const;

/** Natural logarithm of the gamma function, for x ≥ 0.5. */
function logGamma(x: number): number {
  const shifted = x - 1;
  let series: number = LANCZOS[0];
  for (const [index, coefficient] of LANCZOS.entries()) {
    if (index > 0) series += coefficient / (shifted + index);
  }
  const base = shifted + 7.5;
  return 0.5 * Math.log(2 * Math.PI) + (shifted + 0.5) * Math.log(base) - base + Math.log(series);
}

const MAX_FRACTION_TERMS = 300;

/** Continued fraction of the incomplete beta function (modified Lentz method); converges for x < (a+1)/(a+b+2). */
function betaFraction(x: number, a: number, b: number): number {
  const guarded = (value: number): number => (Math.abs(value) < 1e-300 ? 1e-300 : value);
  let c = 1;
  let d = 1 / guarded(1 - ((a + b) * x) / (a + 1));
  let fraction = d;
  for (let m = 1; m <= MAX_FRACTION_TERMS; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / guarded(1 + even * d);
    c = guarded(1 + even / c);
    fraction *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / guarded(1 + odd * d);
    c = guarded(1 + odd / c);
    fraction *= d * c;
    if (Math.abs(d * c - 1) < 1e-15) break;
  }
  return fraction;
}

/** Regularised incomplete beta function I_x(a, b), for a, b ≥ 0.5. */
function regularisedBeta(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(1 - x));
  return x < (a + 1) / (a + b + 2)
    ? (front * betaFraction(x, a, b)) / a
    : 1 - (front * betaFraction(1 - x, b, a)) / b;
}

/** Share of Student's t distribution that lies above `t`, for t ≥ 0. */
function studentTUpperShare(t: number, degrees: number): number {
  return 0.5 * regularisedBeta(degrees / (degrees + t * t), degrees / 2, 0.5);
}

const BISECTIONS = 200;

/**
 * The t that a share `p` of Student's t distribution lies below; −∞ at 0, ∞ at 1.
 *
 * @param degrees - degrees of freedom, at least 1 (sample size less one).
 */
export function studentTQuantile(p: number, degrees: number): number {
  if (p <= 0) return -Infinity;
  if (p >= 1) return Infinity;
  if (p < 0.5) return -studentTQuantile(1 - p, degrees);
  let high = 1;
  // Cauchy (one degree) has the heaviest tail: 2^1023 passes any p that a double can tell from 1.
  for (let i = 0; i < 1023 && studentTUpperShare(high, degrees) > 1 - p; i++) high *= 2;
  let low = 0;
  for (let i = 0; i < BISECTIONS; i++) {
    const middle = (low + high) / 2;
    if (middle === low || middle === high) break;
    if (studentTUpperShare(middle, degrees) > 1 - p) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** At most `limit` items of a list, spread evenly over it; of a sorted one the middle ranks, so that means hardly move. */
export const evenly = <T>(items: readonly T[], limit: number): readonly T[] =>
  items.length <= limit
    ? items
    : Array.from({ length: limit }, (_, place) => Math.floor(((place + 0.5) * items.length) / limit)).flatMap(
        (index) => items.slice(index, index + 1),
      );
