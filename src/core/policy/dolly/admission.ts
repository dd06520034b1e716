/** The cluster as the admission of clones sees it, in slots. */
export interface CloneCapacity {
  /** C. */
  readonly totalSlots: number;
  /** U: slots in use, by clones and by anything else. */
  readonly usedSlots: number;
  /** B_U: slots that clones in use are charged with. */
  readonly cloneSlots: number;
}

/** Shares of all slots. */
export interface CloneBudget {
  /** β: what all clones together may take. */
  readonly budgetShare: number;
  /** τ: utilisation beyond which nothing is cloned. */
  readonly utilizationCeiling: number;
}

/** What of the cluster's slots clones may take, in slots; not rounded, since charges are whole and compared with ≤. */
export const budgetSlots = (totalSlots: number, { budgetShare }: CloneBudget): number => budgetShare * totalSlots;

/** Slots in use beyond which nothing is cloned. */
export const ceilingSlots = (totalSlots: number, { utilizationCeiling }: CloneBudget): number => utilizationCeiling * totalSlots;

/** What a phase is charged: all copies, the originals included, or the additional ones alone. */
export type CloneCharge = 'all-copies' | 'extra-copies';

/**
 * Slots of the budget that `clones` copies of each of `tasks` tasks take; nothing where there is one copy of each.
 *
 * Source: Dolly Pseudocode 1 charges c·n; (c − 1)·n is what cloning adds.
 */
export function chargeOf(tasks: number, clones: number, charge: CloneCharge): number {
  if (clones <= 1) return 0;
  return (charge === 'all-copies' ? clones : clones - 1) * tasks;
}

/** Why a phase is not cloned. */
export type CloneRefusal = 'clone-budget' | 'utilization';

/**
 * Whether `charge` slots of clones, which add `addedSlots` to what is in use, are admitted now: B_U + charge ≤ β·C
 * and U + added ≤ τ·C. The budget is named first where both refuse.
 *
 * Source: Dolly §3.3, Pseudocode 1.
 */
export function admission(
  capacity: CloneCapacity, budget: CloneBudget, asked: { readonly charge: number; readonly addedSlots: number },
): 'admitted' | CloneRefusal {
  const { totalSlots, usedSlots, cloneSlots } = capacity;
  if (cloneSlots + asked.charge > budgetSlots(totalSlots, budget)) return 'clone-budget';
  return usedSlots + asked.addedSlots > ceilingSlots(totalSlots, budget) ? 'utilization' : 'admitted';
}
