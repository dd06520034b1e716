import type { CloneTerms } from '../../capacity/clone-admission.ts';
import type { CloneCharge } from '../../model/stage-clones.ts';

/** Shares of all slots. */
export interface CloneBudget {
  /** β: what all clones together may take. */
  readonly budgetShare: number;
  /** τ: utilisation beyond which nothing is cloned. */
  readonly utilizationCeiling: number;
}

/**
 * Slots of the budget that `clones` copies of each of `tasks` tasks take; nothing where there is one copy of each.
 *
 * Source: Dolly Pseudocode 1 charges c·n; (c − 1)·n is what cloning adds.
 */
export function chargeOf(tasks: number, clones: number, charge: CloneCharge): number {
  if (clones <= 1) return 0;
  return (charge === 'all-copies' ? clones : clones - 1) * tasks;
}

/** Without what rounding adds to a product: 0.29 of 100 slots are 29. */
const share = (part: number, totalSlots: number): number => Math.round(part * totalSlots * 1e6) / 1e6;

/** Slots of a cluster that clones may take and up to where. Not whole: charges are, and they are compared with ≤. */
export const cloneTerms = (
  totalSlots: number,
  { budgetShare, utilizationCeiling }: CloneBudget,
): CloneTerms => ({
  budgetSlots: share(budgetShare, totalSlots),
  ceilingSlots: share(utilizationCeiling, totalSlots),
});
