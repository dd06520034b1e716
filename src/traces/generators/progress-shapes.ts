import type { Rng } from '../../lib/rng.ts';

/** Points [share of the work done, share of the input read], ascending, straight between them. */
export type ProgressPoints = readonly (readonly [number, number])[];

/**
 * How stages get through their input: evenly; all of it in the first 30 % of the work, as where a task loads and then
 * computes; or slowly at first, as where it has something to prepare. No trace records it, and estimators that take it to
 * be even are at their best where it is.
 */
export const progressShapes = {
  even: [
    [0, 0],
    [1, 1],
  ],
  'read-first': [
    [0, 0],
    [0.3, 1],
    [1, 1],
  ],
  'slow-start': [
    [0, 0],
    [0.4, 0.05],
    [1, 1],
  ],
} as const satisfies Record<string, ProgressPoints>;

/** The shape of a stage: one of them, each as likely. Takes one number from `rng`. */
export function drawProgress(rng: Rng): [number, number][] {
  const all = Object.values<ProgressPoints>(progressShapes);
  const drawn = all[Math.floor(rng.next() * all.length)] ?? progressShapes.even;
  return drawn.map(([done, read]) => [done, read]);
}
