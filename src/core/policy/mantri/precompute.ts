/** When losses at a location are taken for a spell, in which more are to come. */
export interface SpellTerms {
  /** Losses that begin one: 1 as in the paper, or 2 in quick succession, which foretells more reliably. */
  readonly losses: number;
  /** How close they must follow each other, and for how long after the last it is taken to go on. */
  readonly withinMs: number;
}

/** Whether a location is in a spell of losses at `now`; `lostAt` are when losses were found there, in any order. */
export function isSpell(lostAt: readonly number[], now: number, { losses, withinMs }: SpellTerms): boolean {
  const since = lostAt.filter((at) => at <= now).toSorted((a, b) => b - a);
  const [last, nth] = [since[0], since[losses - 1]];
  return last !== undefined && nth !== undefined && now - last <= withinMs && last - nth <= withinMs;
}

/** An output at a location that is in a spell: needed still, and without a copy elsewhere. */
export interface PrecomputeCandidate {
  /** Slot time that making it again takes, now. */
  readonly takesMs: number;
  /** t_redo: how long whoever needs it would wait if it turned out lost then. */
  readonly redoMs: number;
}

/** Why an output is not made again ahead: too little is left of the slot time that the job may use for it. */
export type PrecomputeRefusal = 'precompute-budget';

export interface PrecomputeChoice<T> {
  /** Those that spare the longest waits for their slot time first. */
  readonly chosen: readonly T[];
  readonly declined: readonly {
    readonly candidate: T;
    readonly reason: PrecomputeRefusal;
    /** Of the budget, what was left for it. */
    readonly leftMs: number;
  }[];
  readonly leftMs: number;
}

/**
 * Slot time that a job may use still for outputs that are made again ahead: a share of what its tasks have taken anyway,
 * less what was used so. Never negative.
 */
export const precomputeBudgetMs = (share: number, workedMs: number, usedMs: number): number =>
  Math.max(0, share * workedMs - usedMs);

/**
 * Which outputs at a location in a spell of losses are made again before anybody asks for them, within a budget of slot
 * time. Equals in the order given.
 *
 * Source: Mantri §5.3 (losses on a machine cluster by time, so that one is taken for the onset of a problem); how large
 * the budget is, and in which order it is spent, the paper does not say.
 */
export function choosePrecomputed<T extends PrecomputeCandidate>(
  candidates: readonly T[],
  budgetMs: number,
): PrecomputeChoice<T> {
  const chosen: T[] = [];
  const declined: PrecomputeChoice<T>['declined'][number][] = [];
  let leftMs = budgetMs;
  const ranked = candidates
    .map((candidate) => ({ candidate, spared: candidate.redoMs / Math.max(1, candidate.takesMs) }))
    .toSorted((a, b) => b.spared - a.spared);
  for (const { candidate } of ranked) {
    if (candidate.takesMs > leftMs) {
      declined.push({ candidate, reason: 'precompute-budget', leftMs });
      continue;
    }
    leftMs -= candidate.takesMs;
    chosen.push(candidate);
  }
  return { chosen, declined, leftMs };
}
