/** A job of one phase: n tasks, c copies, each of which straggles with probability p independently of the others. */
export interface CloneModel {
  readonly tasks: number;
  readonly clones: number;
  readonly stragglerProbability: number;
}

/** 1 − (1 − q)^n without losing the digits of a small q. */
const anyOf = (q: number, n: number): number => -Math.expm1(n * Math.log1p(-q));

/**
 * Probability that a job straggles whose c copies are whole jobs: (1 − (1 − p)^n)^c, since every copy must have a
 * straggler.
 *
 * Source: Dolly §3.1, Fig. 3.
 */
export const jobLevelStraggle = ({ tasks, clones, stragglerProbability }: CloneModel): number =>
  anyOf(stragglerProbability, tasks) ** clones;

/**
 * Probability that a job straggles each of whose tasks has c copies: 1 − (1 − p^c)^n, since all copies of one task
 * must straggle. Never above the job-level one; equal for one task or one copy.
 *
 * Source: Dolly §3.1, Fig. 3.
 */
export const taskLevelStraggle = ({ tasks, clones, stragglerProbability }: CloneModel): number =>
  anyOf(stragglerProbability ** clones, tasks);
