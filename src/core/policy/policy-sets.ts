import type { PolicySetName } from '../../contracts/policy-config.ts';
import { invariant } from '../../contracts/errors.ts';
import { cubed } from './baseline/cubed.ts';
import { dryad } from './baseline/dryad.ts';
import { dolly } from './dolly/dolly.ts';
import { flink } from './baseline/flink.ts';
import { hadoop } from './baseline/hadoop.ts';
import { hadoop2 } from './baseline/hadoop2.ts';
import { mapreduce } from './baseline/mapreduce.ts';
import { spark } from './baseline/spark.ts';
import { earlyLate, late } from './late/late.ts';
import { mantri } from './mantri/mantri.ts';
import { outrider } from './outrider/outrider.ts';
import type { PolicySet } from './policy-set.ts';

/** Leaves stragglers alone; failed and lost attempts are launched again under every policy. */
const none: PolicySet = { name: 'none', launchOrder: 'largest-first', propose: () => [] };

/** Policy sets by name. */
export const policySets: ReadonlyMap<PolicySetName, PolicySet> = new Map(
  [
    none,
    hadoop,
    dryad,
    mapreduce,
    late,
    earlyLate,
    mantri,
    dolly,
    spark,
    hadoop2,
    flink,
    cubed,
    outrider,
  ].map((set) => [set.name, set]),
);

/** The policy set of a name; `none` without one. A name that is not built is our bug: specs are checked before. */
export function policySetOf(name: PolicySetName | undefined): PolicySet {
  const set = policySets.get(name ?? 'none');
  invariant(set !== undefined, 'no such policy set', { name });
  return set;
}
