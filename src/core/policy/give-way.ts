import { taskIdOf } from '../../contracts/ids.ts';
import type { Refusal } from '../model/decision.ts';
import { stageAt } from '../model/job-state.ts';
import type { TickBudget } from '../model/tick-config.ts';
import type { PolicySet, PolicyView, Proposal } from './policy-set.ts';

/** What the policy proposes, without copies where the job gives way to others, and those that it has given up. */
export function proposalsOf(
  policy: PolicySet,
  view: PolicyView,
  { givesWay }: TickBudget,
): { readonly proposals: readonly Proposal[]; readonly givenUp: readonly Refusal[] } {
  const all = policy.propose(view);
  if (givesWay !== true) return { proposals: all, givenUp: [] };
  const [proposals, givenUp]: [Proposal[], Refusal[]] = [[], []];
  for (const each of all) {
    if (each.kind !== 'backup' && each.kind !== 'clone') proposals.push(each);
    else {
      const { stage, index } = each.task;
      const taskId = taskIdOf(stageAt(view.state, stage).shape.name, index);
      givenUp.push({ kind: 'refuse', taskId, reason: 'gives-way', facts: each.facts });
    }
  }
  return { proposals, givenUp };
}
