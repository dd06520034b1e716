import type { JobRecord } from '../contracts/records.ts';
import type { EpochMs } from '../contracts/units.ts';
import type { CloneAnswer } from '../core/model/stage-clones.ts';
import type { BudgetTerms, TickBudget } from '../core/model/tick-config.ts';
import { affordsClones, openSpending, spendingFacts } from '../core/policy/budget.ts';
import type { CloneWish } from '../core/policy/dolly/clone-wishes.ts';
import type { Session } from './scheduler-session.ts';
import { type CountingDeps, takeCounts } from './tell-costs.ts';

/** What a job may cost, as its spec says; undefined where it says nothing. */
export const budgetOf = ({ spec }: Pick<JobRecord, 'spec'>): Session['budget'] =>
  spec.budget === undefined ? undefined : { capDollars: spec.budget, onBudget: spec.onBudget ?? 'finish' };

/** The dollars of a session's job for one tick, with all that was counted until now; nothing where it has no budget. */
export function budgetTerms(deps: CountingDeps, session: Session): Pick<TickBudget, 'dollars'> {
  const { budget } = session;
  if (budget === undefined) return {};
  takeCounts(deps, session);
  const { coordination } = session;
  return {
    dollars: {
      ...budget,
      ...(coordination === undefined ? {} : { coordination }),
      ...(deps.prices === undefined ? {} : { prices: deps.prices }),
    },
  };
}

/**
 * Of the clones that a policy wishes for those that the job's dollars suffice for, and the answers to the others: they
 * are not asked of the ledger, where they would hold slots that they could never use.
 */
export function affordedWishes(
  session: Session,
  wishes: readonly CloneWish[],
  now: EpochMs,
  dollars: BudgetTerms | undefined,
): { readonly afforded: readonly CloneWish[]; readonly refused: readonly CloneAnswer[] } {
  if (dollars === undefined || wishes.length === 0) return { afforded: wishes, refused: [] };
  const { state, tickConfig } = session;
  const spending = openSpending(state, now, dollars, tickConfig.hasFargate ?? false);
  const refused: CloneAnswer[] = [];
  const afforded = wishes.filter(({ stage, copies, facts }) => {
    const [task] = state.stages[stage]?.tasks ?? [];
    const added = (copies - 1) * (state.stages[stage]?.tasks.length ?? 0);
    if (task === undefined || affordsClones(spending, task, added)) return true;
    const numbers = { ...facts, ...spendingFacts(spending, task) };
    refused.push({ stage, clones: undefined, reason: 'budget', facts: numbers });
    return false;
  });
  return { afforded, refused };
}
