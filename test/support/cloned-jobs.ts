import { expect } from 'vitest';
import type { PolicyConfigInput } from '../../src/contracts/policy-config.ts';
import type { EmbeddedSystem } from './embedded-system.ts';

/**
 * Every task twice, as far as the budget goes. However many jobs there are, p stays what it is at first, whatever
 * luck tests have given them.
 */
export const twoCopies = (more: PolicyConfigInput['dolly'] = {}): PolicyConfigInput => ({
  dolly: { budgetShare: 1, utilizationCeiling: 1, mostClones: 2, minAttempts: 1_000_000, ...more },
});

/** Waits until jobs have left nothing in the bucket and hold no slots, clones included. */
export async function expectNothingHeld(system: EmbeddedSystem, timeoutMs: number): Promise<void> {
  const patience = { timeout: timeoutMs };
  await expect.poll(() => system.leftovers(), patience).toEqual([]);
  await expect
    .poll(() => system.capacity(), patience)
    .toMatchObject({ usedSlots: 0, cloneSlots: 0, grants: {} });
}
