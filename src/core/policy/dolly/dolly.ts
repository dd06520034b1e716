import { late } from '../late/late.ts';
import { mantri, placesOwed } from '../mantri/mantri.ts';
import type { PolicySet, PolicyView, StageRuns } from '../policy-set.ts';
import { cloneProposals } from './clone-proposals.ts';
import { cloneWishes } from './clone-wishes.ts';
import { lateCopiesServe } from './copy-wait.ts';
import type { LaunchOrder, StageClones } from '../../model/job-view.ts';

const launchOrder: LaunchOrder = 'largest-first';

/** What treats phases that are not cloned; undefined where nothing does. */
function otherPolicy({ config }: PolicyView): PolicySet | undefined {
  switch (config.dolly.otherwise) {
    case 'none':
      return undefined;
    case 'late':
      return late;
    case 'mantri':
      return mantri;
  }
}

/**
 * Dolly: every task of a small phase has clones from the start, as many as keep the risk of a straggler within ε,
 * if the budget and the use of the cluster admit them all. The first to finish wins and the others are cancelled;
 * nobody waits to see who straggles. Phases that are not cloned, or no more, are treated as the config says.
 *
 * Source: Dolly §3.3, Pseudocode 1; §5 runs it beside LATE or Mantri.
 */
export const dolly: PolicySet = {
  name: 'dolly',
  launchOrder,
  copyCap: (view) => otherPolicy(view)?.copyCap?.(view) ?? Infinity,
  isCapOfCluster: ({ dolly }) => dolly.otherwise === 'late',
  wishes: cloneWishes,
  keepsLateCopies: lateCopiesServe,
  // Ours: a clone beside its original in a slow zone is as slow.
  placesOwed,
  propose(view) {
    const cloned = view.cloned ?? new Map<number, StageClones>();
    const isLeft = ({ stage: { index, clones } }: StageRuns): boolean =>
      !cloned.has(index) || clones?.preempted === true;
    const uncloned = { ...view, runs: view.runs.filter(isLeft) };
    return [...cloneProposals(view), ...(otherPolicy(view)?.propose(uncloned) ?? [])];
  },
};
