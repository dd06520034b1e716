import type { PolicyName } from '../../contracts/policy-names.ts';
import { invariant } from '../../contracts/errors.ts';
import { cubed } from './baseline/cubed.ts';
import { dryad } from './baseline/dryad.ts';
import { dolly } from './dolly/dolly.ts';
import { flink } from './baseline/flink.ts';
import { hadoop } from './baseline/hadoop.ts';
import { hadoop2 } from './baseline/hadoop2.ts';
import { mapreduce } from './baseline/mapreduce.ts';
import { spark } from './baseline/spark.ts';
import { late } from './late/late.ts';
import { mantri } from './mantri/mantri.ts';
import { outrider } from './outrider/outrider.ts';
import type { PolicySet } from './policy-set.ts';

/** Leaves stragglers alone; failed and lost attempts are launched again under every policy. */
const none: PolicySet = { name: 'none', launchOrder: 'largest-first', propose: () => [] };

const sets: Readonly<Record<PolicyName, PolicySet>> = {
  none,
  hadoop,
  dryad,
  mapreduce,
  late,
  mantri,
  dolly,
  spark,
  hadoop2,
  flink,
  cubed,
  outrider,
};

/** Policy sets by name. */
export const policySets: ReadonlyMap<PolicyName, PolicySet> = new Map(
  Object.entries(sets) as [PolicyName, PolicySet][],
);

/** The policy set of a name, or itself; `none` without one. A name that is not built is our bug: specs are checked before. */
export function policySetOf(policy: PolicyName | PolicySet = 'none'): PolicySet {
  if (typeof policy !== 'string') return policy;
  const set = policySets.get(policy);
  invariant(set !== undefined, 'no such policy set', { policy });
  return set;
}
