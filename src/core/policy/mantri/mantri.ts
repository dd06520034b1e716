import { onceAsked, type SlowNodes, slowNodesBy } from '../node-slowdown.ts';
import type { PolicySet, PolicyView, Proposal, StageRuns } from '../policy-set.ts';
import { appraiseStage, isContended, type StageAppraisal } from './appraise.ts';
import { withLostToZones, zonesOfOwed } from './choose-zone.ts';
import { decline } from './decline.ts';
import { duplicate } from './duplicate.ts';
import { prune, pruneLosses } from './prune.ts';
import { restart } from './restart.ts';

function proposeIn(
  stage: StageAppraisal,
  runs: StageRuns,
  view: PolicyView,
  slow: SlowNodes,
): readonly Proposal[] {
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

function proposeFor(runs: StageRuns, view: PolicyView, slow: SlowNodes): readonly Proposal[] {
  const stage = appraiseStage(runs, view);
  const proposals = proposeIn(stage, runs, view, slow);
  const anywhere = { ...view, zones: undefined };
  const ifAlike = (): readonly Proposal[] => proposeIn(appraiseStage(runs, anywhere), runs, anywhere, slow);
  return withLostToZones(stage.zones, proposals, ifAlike, () => stage.tasks);
}

/** Where attempts that are owed run, and clones, by what the stage's tasks tell of zones. */
export const placesOwed = (view: PolicyView): ReturnType<typeof zonesOfOwed> =>
  zonesOfOwed(view, (runs) => appraiseStage(runs, view).zones);

/**
 * Mantri's resource-aware restarts: from the start of a stage on, kills and restarts or duplicates what a new copy
 * would likely end sooner, by cost while tasks wait and by gain when slots are spare, and prunes slow copies.
 * `gainMs` is t_rem − E(t_new).
 *
 * Source: Mantri §5.1, Pseudocode 1. Nodes much slower than others are declined, in place of locationFactor (§5.5), where
 * the place of a new copy is known only once it runs; where its zone can be chosen, the factor is the zone's.
 */
export const mantri: PolicySet = {
  name: 'mantri',
  launchOrder: 'largest-first',
  protectsOutputs: true,
  placesTasks: true,
  placesOwed,
  propose(view) {
    const slow = onceAsked(() => slowNodesBy(view, view.config.mantri.slowNodeFactor));
    return view.runs.flatMap((runs) => proposeFor(runs, view, slow));
  },
};
