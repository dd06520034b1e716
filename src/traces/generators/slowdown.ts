import * as z from 'zod';
import type { Rng } from '../../lib/rng.ts';

const pareto = z
  .strictObject({
    kind: z.literal('pareto'),
    /** Tail index: the smaller, the heavier; at 1 or less an uncapped mean would be infinite. */
    shape: z.number().positive(),
    /** Least slowdown of those that draw. */
    scale: z.number().positive().default(1),
    /** Greater draws count as this: a machine that never ends would stop every simulation. */
    cap: z.number().positive(),
    /** Share of attempts that draw at all; the others have slowdown 1. */
    share: z.number().min(0).max(1).default(1),
  })
  .refine((value) => value.cap >= value.scale, { path: ['cap'], message: 'expected at least scale' });

const empirical = z.strictObject({
  kind: z.literal('empirical'),
  /** `[p, slowdown]`, both ascending, p from 0 to 1; linear between them. */
  points: z
    .array(z.tuple([z.number().min(0).max(1), z.number().positive()]))
    .min(2)
    .refine((points) => points[0]?.[0] === 0 && points.at(-1)?.[0] === 1, 'expected p from 0 to 1')
    .refine((points) => points.every(isAscending), 'expected p and slowdowns in ascending order'),
});

function isAscending(
  point: readonly [number, number],
  index: number,
  all: readonly (readonly [number, number])[],
): boolean {
  const before = all[index - 1];
  return before === undefined || (before[0] <= point[0] && before[1] <= point[1]);
}

/** Schema of `Slowdown`, for scenarios and options. */
export const slowdownSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('none') }),
  pareto,
  empirical,
]);

/**
 * Distribution of the factor by which an attempt takes longer than its task's work: `none` (always 1), `pareto`
 * (heavy tail by formula) or `empirical` (a quantile table, as `slowdownTable` makes from recorded attempts).
 */
export type Slowdown = z.infer<typeof slowdownSchema>;

/**
 * The slowdown that a share `u` of attempts stays at or below (inverse distribution function). `u` in [0, 1).
 *
 * Pareto: scale · (1 − v)^(−1/shape), at most `cap`, where v spreads the uppermost `share` of u over [0, 1).
 */
export function slowdownAt(slowdown: Slowdown, u: number): number {
  switch (slowdown.kind) {
    case 'none':
      return 1;
    case 'pareto': {
      const spared = 1 - slowdown.share;
      if (u < spared || slowdown.share === 0) return 1;
      const v = Math.min(1, (u - spared) / slowdown.share);
      return Math.min(slowdown.cap, slowdown.scale * (1 - v) ** (-1 / slowdown.shape));
    }
    case 'empirical':
      return interpolate(slowdown.points, u);
  }
}

/** Draws a slowdown; takes one number from `rng`. */
export const drawSlowdown = (slowdown: Slowdown, rng: Rng): number => slowdownAt(slowdown, rng.next());

function interpolate(points: readonly (readonly [number, number])[], u: number): number {
  let [lowP, lowValue] = points[0] ?? [0, 1];
  for (const [p, value] of points) {
    if (p >= u) return p === lowP ? value : lowValue + ((value - lowValue) * (u - lowP)) / (p - lowP);
    [lowP, lowValue] = [p, value];
  }
  return lowValue;
}

/** Shares at which the mean of a distribution is taken: fine enough for a tail of one in ten thousand. */
const meanSteps = 20_000;

/** The mean slowdown of attempts. */
export function meanSlowdown(slowdown: Slowdown): number {
  let sum = 0;
  for (let step = 0; step < meanSteps; step++) sum += slowdownAt(slowdown, (step + 0.5) / meanSteps);
  return sum / meanSteps;
}
