import { onceAsked, type SlowNodes, slowNodesBy } from '../node-slowdown.ts';
import type { PolicySet, PolicyView, Proposal, StageRuns } from '../policy-set.ts';
import { appraiseStage, isContended } from './appraise.ts';
import { decline } from './decline.ts';
import { duplicate } from './duplicate.ts';
import { prune, pruneLosses } from './prune.ts';
import { restart } from './restart.ts';

function proposeFor(runs: StageRuns, view: PolicyView, slow: SlowNodes): readonly Proposal[] {
  const stage = appraiseStage(runs, view);
  const contended = isContended(view.slots);
  const dear = pruneLosses(stage.tasks, runs, view);
  if (dear.length > 0) return dear;
  return stage.tasks.flatMap((task): readonly Proposal[] => {
    const pruned = prune(task, stage.deltaMs, view);
    if (pruned.length > 0) return pruned;
    const again = contended ? restart(task, stage, view, slow) : undefined;
    const beside = duplicate(task, stage, view, slow);
    const chosen = view.config.mantri.prefer === 'restart' ? (again ?? beside) : (beside ?? again);
    const told = chosen ?? decline(task, stage, view);
    return told === undefined ? [] : [told];
  });
}

/**
 * Mantri's resource-aware restarts: from the start of a stage on, kills and restarts or duplicates what a new copy
 * would likely end sooner, by cost while tasks wait and by gain when slots are spare, and prunes slow copies.
 * `gainMs` is t_rem − E(t_new).
 *
 * Source: Mantri §5.1, Pseudocode 1. Nodes much slower than others are declined, in place of locationFactor, since
 * the place of a new copy is known only once it runs.
 */
export const mantri: PolicySet = {
  name: 'mantri',
  launchOrder: 'largest-first',
  protectsOutputs: true,
  placesTasks: true,
  propose(view) {
    const slow = onceAsked(() => slowNodesBy(view, view.config.mantri.slowNodeFactor));
    return view.runs.flatMap((runs) => proposeFor(runs, view, slow));
  },
};
