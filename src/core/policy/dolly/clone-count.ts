/** A phase for which clones are considered. */
export interface ClonedPhase {
  /** n: parallel tasks, at least 1. */
  readonly tasks: number;
  /** p: probability that a copy of a task straggles. */
  readonly stragglerProbability: number;
  /** ε: accepted risk that the phase straggles, in (0, 1). */
  readonly straggleRisk: number;
}

/** The ratio of logarithms is exactly whole at times (p = ε, n = 1), and rounding errors must not add a clone. */
const roundingSlack = 1e-9;

/**
 * How many copies of each task, the original included, keep the risk that the phase straggles within ε:
 * c = ⌈log(1 − (1 − ε)^(1/n)) / log p⌉. At least 1, which means no clones: so it is where nothing straggles (p ≤ 0),
 * and where everything does (p ≥ 1), since then no number of copies helps.
 *
 * Source: Dolly §3.2, from 1 − (1 − p^c)^n ≤ ε.
 */
export function cloneCount({ tasks, stragglerProbability, straggleRisk }: ClonedPhase): number {
  if (stragglerProbability <= 0 || stragglerProbability >= 1) return 1;
  const riskPerTask = -Math.expm1(Math.log1p(-straggleRisk) / tasks);
  return Math.max(1, Math.ceil(Math.log(riskPerTask) / Math.log(stragglerProbability) - roundingSlack));
}

/**
 * Copies of each task of a phase that may have them: those that keep the risk, but no more than `mostClones`, and
 * no more than any phase that it reads has (`upstreamClones`, empty for a first phase).
 *
 * Source: Dolly §3.2, "multi-phase jobs": a clone without an upstream clone of its own would only add contention.
 */
export const phaseClones = (
  phase: ClonedPhase,
  limits: { readonly mostClones: number; readonly upstreamClones: readonly number[] },
): number => Math.max(1, Math.min(cloneCount(phase), limits.mostClones, ...limits.upstreamClones));
