import * as z from 'zod';
import { createRng, type Rng } from '../lib/rng.ts';
import { interpolate } from './interpolate.ts';

const positive = z.number().positive();
const atLeastZero = z.number().nonnegative();

const isInOrder = ({ min, max }: { readonly min: number; readonly max: number }): boolean => min <= max;
const inOrder = { path: ['min'], message: 'must be at most "max"' };

/** Whether neither of the coordinates of points falls from one to the next. */
export const isAscending = (points: readonly (readonly [number, number])[]): boolean =>
  points.every(([x, y], place) => {
    const before = points[place - 1];
    return before === undefined || (before[0] <= x && before[1] <= y);
  });

const plainSchema = z.union([
  atLeastZero,
  z.discriminatedUnion('kind', [
    z
      .strictObject({ kind: z.literal('uniform'), min: atLeastZero, max: atLeastZero })
      .refine(isInOrder, inOrder),
    /** The sum of `count` uniform draws: a task that sleeps so often. */
    z
      .strictObject({
        kind: z.literal('uniform-sum'),
        count: z.int().min(1).max(10_000),
        min: atLeastZero,
        max: atLeastZero,
      })
      .refine(isInOrder, inOrder),
    z.strictObject({ kind: z.literal('exponential'), mean: positive }),
    /** Normal, cut at 0. */
    z.strictObject({ kind: z.literal('normal'), mean: atLeastZero, sd: atLeastZero }),
    /** `exp` of a normal: `median`, and the standard deviation of the logarithm. */
    z.strictObject({ kind: z.literal('lognormal'), median: positive, sigma: atLeastZero }),
    /** P(X > x) = (scale / x)^shape from `scale` on; draws above `max` become `max`. */
    z.strictObject({ kind: z.literal('pareto'), scale: positive, shape: positive, max: positive.optional() }),
    /** One of the values, each as likely. */
    z.strictObject({ kind: z.literal('empirical'), values: z.array(atLeastZero).min(1).max(100_000) }),
    /** The inverse distribution function by points [share, value] from share 0 to 1, straight between them. */
    z.strictObject({
      kind: z.literal('quantiles'),
      points: z
        .array(z.tuple([z.number().min(0).max(1), atLeastZero]))
        .min(2)
        .max(10_000)
        .refine(
          (points) => points[0]?.[0] === 0 && points.at(-1)?.[0] === 1 && isAscending(points),
          'must have shares from 0 to 1, each as large as the one before or larger, as must be the values',
        ),
    }),
  ]),
]);

/**
 * A distribution of numbers from 0, as scenarios write it. A bare number is that number always; a mixture is
 * `outlier` with the given probability, else `usual`.
 */
export const distributionSchema = z.union([
  plainSchema,
  z.strictObject({
    kind: z.literal('mixture'),
    probability: z.number().min(0).max(1),
    outlier: plainSchema,
    usual: plainSchema,
  }),
]);
export type Distribution = z.output<typeof distributionSchema>;

/** The least that a distribution names; of those that come near 0 by chance alone a little more than that. */
function leastOf(distribution: Distribution): number {
  if (typeof distribution === 'number') return distribution;
  switch (distribution.kind) {
    case 'uniform':
    case 'uniform-sum':
      return Math.min(distribution.min, distribution.max);
    case 'normal':
      return distribution.mean;
    case 'empirical':
      return distribution.values.reduce((least, value) => Math.min(least, value), Infinity);
    case 'quantiles':
      return distribution.points.reduce((least, [, value]) => Math.min(least, value), Infinity);
    case 'mixture':
      return Math.min(leastOf(distribution.outlier), leastOf(distribution.usual));
    case 'exponential':
    case 'lognormal':
    case 'pareto':
      return Number.MIN_VALUE;
  }
}

/** A distribution of what is never 0, such as a speed: at speed 0 nothing ends. */
export const aboveZeroSchema = distributionSchema.refine((distribution) => leastOf(distribution) > 0, {
  message: 'must be above 0, whatever is drawn',
});

/** Standard normal, by Box and Muller. */
export function normal(rng: Rng): number {
  const radius = Math.sqrt(-2 * Math.log(1 - rng.next()));
  return radius * Math.cos(2 * Math.PI * rng.next());
}

function uniformSum({ count, min, max }: { count: number; min: number; max: number }, rng: Rng): number {
  let sum = 0;
  for (let draw = 0; draw < count; draw++) sum += rng.next();
  return count * min + sum * (max - min);
}

/**
 * Draws a number, never negative. Whoever uses it as a time rounds it to whole milliseconds, since the last
 * bits of logarithms differ between machines.
 */
export function sample(distribution: Distribution, rng: Rng): number {
  if (typeof distribution === 'number') return distribution;
  switch (distribution.kind) {
    case 'uniform':
      return distribution.min + rng.next() * (distribution.max - distribution.min);
    case 'uniform-sum':
      return uniformSum(distribution, rng);
    case 'exponential':
      return -distribution.mean * Math.log(1 - rng.next());
    case 'normal':
      return Math.max(0, distribution.mean + distribution.sd * normal(rng));
    case 'lognormal':
      return distribution.median * Math.exp(distribution.sigma * normal(rng));
    case 'pareto': {
      const drawn = distribution.scale / (1 - rng.next()) ** (1 / distribution.shape);
      return Math.min(drawn, distribution.max ?? drawn);
    }
    case 'empirical':
      return distribution.values[Math.floor(rng.next() * distribution.values.length)] ?? 0;
    case 'quantiles':
      return interpolate(distribution.points, rng.next());
    case 'mixture':
      return sample(rng.next() < distribution.probability ? distribution.outlier : distribution.usual, rng);
  }
}

/** Draws from which a mean is taken. */
const drawsOfMean = 1_000;

/** The mean of a distribution: of a thousand draws, always the same ones. */
export function meanOf(distribution: Distribution): number {
  if (typeof distribution === 'number') return distribution;
  const rng = createRng('mean');
  let sum = 0;
  for (let draw = 0; draw < drawsOfMean; draw++) sum += sample(distribution, rng);
  return sum / drawsOfMean;
}

/** As many draws as half of which are 0 are all 0 by no chance. */
const mostDraws = 64;

/**
 * Draws a number above 0, as of a speed: draws that are cut at 0 are made again. The first one above 0 is that of `sample`
 * where none is cut.
 */
export function sampleAboveZero(distribution: Distribution, rng: Rng): number {
  let drawn = sample(distribution, rng);
  for (let draw = 1; draw < mostDraws && drawn <= 0; draw++) drawn = sample(distribution, rng);
  return drawn;
}

/** A length of time drawn in whole milliseconds. */
export const sampleMs = (distribution: Distribution, rng: Rng): number =>
  Math.round(sample(distribution, rng));
