import type { Facts } from '../../model/decision.ts';
import { stageAt } from '../../model/job-state.ts';
import type { JobState, StageView } from '../../model/job-view.ts';
import type { CloneDecline } from '../../model/stage-clones.ts';
import { type CloneOutlook, type CloneWish, cloneWishes } from '../dolly/clone-wishes.ts';

/** Whether a phase has too few tasks for one of them to be seen to lag. */
export const isSmall = ({ tasks }: StageView, minSamples: number): boolean => tasks.length < minSamples;

/** Why the job clones nothing now; undefined where it may. */
function whyNot({ config, copiesSeen, hasSlack }: CloneOutlook): CloneDecline | undefined {
  if (copiesSeen < config.minAttempts) return 'unmeasured';
  return hasSlack ? 'deadline-slack' : undefined;
}

/**
 * Phases about to start that are to be cloned, where the budget of clones admits it: those of so few tasks that nobody
 * could tell which of them lags. In larger ones a copy is made once a task does lag, which costs a fraction of a clone. As
 * long as only a prior is known of how often copies straggle nothing is cloned, since where few do it but doubles what
 * small jobs cost; nor is anything of a job that meets its deadline without. Both is told in the log, with its numbers.
 *
 * Source: Dolly §3.3, Pseudocode 1; which phases are small enough, that p has to be measured, and the deadline, are ours.
 */
export function smallPhases(state: JobState, outlook: CloneOutlook): readonly CloneWish[] {
  const { config, copiesSeen, minSamples } = outlook;
  const small = cloneWishes(state, outlook).filter(({ stage }) => isSmall(stageAt(state, stage), minSamples));
  const declined = whyNot(outlook);
  if (declined === undefined) return small;
  const seen: Facts = { copiesSeen, copiesNeeded: config.minAttempts };
  return small.map((wish) => ({ ...wish, declined, facts: { ...wish.facts, ...seen } }));
}
