import type { PolicySetName } from '../../contracts/policy-config.ts';
import { invariant } from '../../contracts/errors.ts';
import { earlyLate, late } from './late/late.ts';
import type { PolicySet } from './policy-set.ts';

/** Leaves stragglers alone; failed and lost attempts are launched again under every policy. */
const none: PolicySet = { name: 'none', launchOrder: 'largest-first', propose: () => [] };

/** Policy sets by name. */
export const policySets: ReadonlyMap<PolicySetName, PolicySet> = new Map(
  [none, late, earlyLate].map((set) => [set.name, set]),
);

/** The policy set of a name; `none` without one. A name that is not built is our bug: specs are checked before. */
export function policySetOf(name: PolicySetName | undefined): PolicySet {
  const set = policySets.get(name ?? 'none');
  invariant(set !== undefined, 'no such policy set', { name });
  return set;
}
