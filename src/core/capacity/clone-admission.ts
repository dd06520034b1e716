import type { JobId } from '../../contracts/ids.ts';

/** What a phase asks of the cloning budget: whole units of slots, so that no task or no phase is cloned by half. */
export interface CloneRequest {
  /** Names the phase within its job. */
  readonly phase: string;
  /** Slots of one unit, at least 1. */
  readonly unitSlots: number;
  /** Fewer units than this are of no use: then none is granted. At least 1. */
  readonly leastUnits: number;
  readonly mostUnits: number;
  /** Slots that the job needs besides those that are charged. */
  readonly besideSlots: number;
  /** Slots of one unit that are for copies beside one of each task: what is freed when its clones stop. Absent: all. */
  readonly addedUnitSlots?: number;
  /**
   * Tasks of the whole job: with it, clones of larger jobs make room for these where need be, and these for those of
   * smaller jobs. Absent: neither.
   */
  readonly jobTasks?: number;
}

/** A phase that has lost its clones to another job's. */
export interface CloneVictim {
  readonly jobId: JobId;
  readonly phase: string;
  /** What its clones were charged. */
  readonly slots: number;
  /** Slots that its job gives back once its clones have stopped. */
  readonly freedSlots: number;
  /** Tasks of its job. */
  readonly jobTasks: number;
}

/** The cluster as admission sees it, without what the asking job holds. */
export interface CloneCapacity {
  /** U: slots in use. */
  readonly usedSlots: number;
  /** B_U: slots that clones in use are charged with. */
  readonly cloneSlots: number;
  /** Slots that are guaranteed to others, which do not use them now: no clone gets them. Absent: none. */
  readonly reservedSlots?: number;
}

/** Slots that clones find taken: in use, or kept for those to whom they are guaranteed. */
export const takenSlots = ({ usedSlots, reservedSlots = 0 }: CloneCapacity): number =>
  usedSlots + reservedSlots;

/** What clones may take and up to where, in slots. */
export interface CloneTerms {
  /** β·C. */
  readonly budgetSlots: number;
  /** τ·C: beyond this many slots in use nothing is cloned. */
  readonly ceilingSlots: number;
}

/** Why a phase gets no clones: B_U or U would be too high. */
export type CloneRefusal = 'clone-budget' | 'utilization';

/** What a phase gets, and the numbers by which it was decided. `units` is 0 where there is a reason. */
export interface CloneAdmission extends CloneCapacity {
  readonly units: number;
  readonly reason?: CloneRefusal;
  /** Whose clones made room, where some had to; U and B_U are those before. */
  readonly victims?: readonly CloneVictim[];
}

const wholeUnits = (slots: number, { unitSlots, mostUnits }: CloneRequest): number =>
  Math.max(0, Math.min(mostUnits, Math.floor(slots / unitSlots)));

/**
 * The most units of clones that keep B_U + charge ≤ β·C and U + charge ≤ τ·C, or none where fewer than `leastUnits`
 * do. With one unit for the whole phase this is all or nothing. The budget is named first where both refuse. Slots that
 * are guaranteed to others count as used.
 *
 * Source: Dolly §3.3, Pseudocode 1. Guarantees are not the paper's: copies must not delay what was promised.
 */
export function admitUnits(
  capacity: CloneCapacity,
  terms: CloneTerms,
  request: CloneRequest,
): CloneAdmission {
  const inBudget = wholeUnits(terms.budgetSlots - capacity.cloneSlots, request);
  const underCeiling = wholeUnits(terms.ceilingSlots - takenSlots(capacity) - request.besideSlots, request);
  const units = Math.min(inBudget, underCeiling);
  if (units >= request.leastUnits) return { ...capacity, units };
  return { ...capacity, units: 0, reason: inBudget < request.leastUnits ? 'clone-budget' : 'utilization' };
}
