import type { CloneModel } from './straggle-probability.ts';

function choose(n: number, k: number): number {
  let ways = 1;
  for (let i = 1; i <= k; i++) ways = (ways * (n - k + i)) / i;
  return ways;
}

/**
 * Ψ(n, c, d): the probability that in each of n groups of c upstream clones at least `atLeast` = d do not straggle.
 * 1 for d ≤ 0, 0 for d > c.
 *
 * Source: Dolly §4.2, eq. 1.
 */
export function clonesInTime(
  { tasks, clones, stragglerProbability: p }: CloneModel,
  atLeast: number,
): number {
  let group = 0;
  for (let late = 0; late <= clones - Math.max(0, atLeast); late++) {
    group += choose(clones, late) * p ** late * (1 - p) ** (clones - late);
  }
  return Math.min(1, group) ** tasks;
}

/**
 * Probability that a job of two phases straggles under contention avoidance (CAC), where each upstream clone serves
 * one downstream clone of a group and the others wait for theirs. `tasks` in either phase.
 *
 * Source: Dolly §4.2, eq. 2. Differs: the term is Ψ(d) − Ψ(d + 1), the probability that the least group has exactly
 * d clones in time. Printed is Ψ(d) − Ψ(d − 1), which is never positive and gives "probabilities" above 1.
 */
export function straggleWithCac(model: CloneModel): number {
  const { tasks, clones, stragglerProbability: p } = model;
  let inTime = 0;
  for (let d = 1; d <= clones; d++) {
    inTime += (clonesInTime(model, d) - clonesInTime(model, d + 1)) * (1 - p ** d) ** tasks;
  }
  return 1 - inTime;
}

/**
 * Probability that a job of two phases straggles under contention cloning (CC), where all downstream clones read
 * the first upstream clone to finish. Says nothing of the time that contention costs.
 *
 * Source: Dolly §4.2, eq. 3.
 */
export function straggleWithCc(model: CloneModel): number {
  const { tasks, clones, stragglerProbability: p } = model;
  return 1 - clonesInTime(model, 1) * (1 - p ** clones) ** tasks;
}
