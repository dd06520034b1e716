/** How a copy read its inputs from other stages. */
export interface CopyRead {
  readonly sizeBytes: number;
  readonly ms: number;
  /** For how long of it another clone of its task read some of the same upstream copies; 0: none did. */
  readonly overlapMs: number;
}

/** What delay assignment is learnt from: values of finished jobs, in any order. */
export interface AssignmentTally {
  readonly reads: readonly CopyRead[];
  /** How long after a stage opened each source of one of its tasks had a second copy; `neverMs` where one would not. */
  readonly gapsMs: readonly number[];
  /** What copies took besides reading. */
  readonly computeMs: readonly number[];
}

/** Stands for no end: beyond any wait, and a number that every store can hold. */
export const neverMs = 1e12;

/** Values of each kind that one hour of one bin keeps. */
export const tallyLimit = 256;

/** Values of each kind that are taken of one tally, so that large jobs do not speak for small ones. */
export const tallyAddLimit = 16;

/** Nothing seen yet. */
export const noAssignments: AssignmentTally = { reads: [], gapsMs: [], computeMs: [] };

/** Both together, the first's values first and at most `tallyLimit` of each kind. */
export const addAssignments = (
  a: AssignmentTally,
  b: AssignmentTally,
  limit = tallyLimit,
): AssignmentTally => ({
  reads: [...a.reads, ...b.reads].slice(0, limit),
  gapsMs: [...a.gapsMs, ...b.gapsMs].slice(0, limit),
  computeMs: [...a.computeMs, ...b.computeMs].slice(0, limit),
});
