/** Copies looked at, and how many of them straggled. */
export interface StragglerTally {
  readonly attempts: number;
  readonly stragglers: number;
}

/** Nothing seen yet. */
export const noStragglers: StragglerTally = { attempts: 0, stragglers: 0 };

/** Both tallies together. */
export const addTallies = (a: StragglerTally, b: StragglerTally): StragglerTally => ({
  attempts: a.attempts + b.attempts,
  stragglers: a.stragglers + b.stragglers,
});
