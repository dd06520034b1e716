import type { TickBudget } from '../model/tick-config.ts';
import type { PolicySet, PolicyView, Proposal } from './policy-set.ts';

/** What the policy proposes. Where the job gives way to others, copies are declined, which the log is told of. */
export function proposalsOf(
  policy: PolicySet,
  view: PolicyView,
  { givesWay }: TickBudget,
): readonly Proposal[] {
  const all = policy.propose(view);
  return givesWay === true ? all.map(givenUp) : all;
}

/** Ranked as what it stands for would be: of many that are given up those are told of that would have brought most. */
function givenUp(proposal: Proposal): Proposal {
  if (proposal.kind !== 'backup' && proposal.kind !== 'clone') return proposal;
  const { task, gainMs, facts } = proposal;
  return { kind: 'decline', task, reason: 'gives-way', gainMs, facts };
}
