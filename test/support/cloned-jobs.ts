import type { PolicyConfigInput } from '../../src/contracts/policy-config.ts';

/**
 * Every task twice, as far as the budget goes. However many jobs there are, p stays what it is at first, whatever
 * luck tests have given them.
 */
export const twoCopies = (more: PolicyConfigInput['dolly'] = {}): PolicyConfigInput => ({
  dolly: { budgetShare: 1, utilizationCeiling: 1, mostClones: 2, minAttempts: 1_000_000, ...more },
});
