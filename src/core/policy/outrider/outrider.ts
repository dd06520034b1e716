import { sampleCount } from '../../estimate/new-copy.ts';
import { quantileOf } from '../../../lib/sorted-numbers.ts';
import { type Appraisal, appraiseStage, isContended, type StageAppraisal } from '../mantri/appraise.ts';
import { duplicate } from '../mantri/duplicate.ts';
import { prune } from '../mantri/prune.ts';
import { restart } from '../mantri/restart.ts';
import { finiteMs } from '../merit.ts';
import { slowNodesBy } from '../node-slowdown.ts';
import type { PolicySet, PolicyView, Proposal, StageRuns } from '../policy-set.ts';
import { slownessForInput } from './input-explained.ts';

/** Most copies at once: few while each takes a waiting task's slot, all spare slots otherwise. */
function copyCap({ config, slots }: PolicyView): number {
  const { contendedCap, spareCap } = config.outrider;
  return Math.max(1, Math.floor((isContended(slots) ? contendedCap : spareCap) * slots.cluster));
}

/** A slow task that has more to read, for the log; undefined where it is not slow beside its siblings. */
function explained(task: Appraisal, slowness: number, runs: StageRuns, view: PolicyView): Proposal | undefined {
  const medianMs = quantileOf(runs.stage.statistics.runMs, 0.5);
  const factor = view.config.outrider.explainedFactor;
  if (medianMs === undefined || task.remMs === undefined || task.remMs <= factor * medianMs) return undefined;
  return {
    kind: 'decline', task: task.running.task, reason: 'input-explained', gainMs: 0,
    facts: { remMs: finiteMs(task.remMs), medianMs, slownessForInput: slowness, inputBytes: task.running.task.inputBytes },
  };
}

/** Where copies of a task must not run: slow nodes, and for a second copy beside it, the nodes that run it now. */
function elsewhere(task: Appraisal, slow: readonly string[]): readonly string[] {
  const own = task.running.copies.flatMap(({ node }) => node ?? []);
  return [...new Set([...own, ...slow])];
}

function proposeForTask(
  task: Appraisal, stage: StageAppraisal, runs: StageRuns, view: PolicyView, slow: readonly string[],
): Proposal | undefined {
  const slowness = slownessForInput(task, stage, view);
  if (slowness === undefined) return undefined;
  if (slowness <= view.config.outrider.explainedFactor) return explained(task, slowness, runs, view);
  const again = isContended(view.slots) ? restart(task, stage, view, slow) : undefined;
  const beside = duplicate(task, stage, view, elsewhere(task, slow));
  const chosen = view.config.mantri.prefer === 'restart' ? (again ?? beside) : (beside ?? again);
  return chosen === undefined ? undefined : { ...chosen, facts: { ...chosen.facts, slownessForInput: slowness } };
}

function proposeFor(runs: StageRuns, view: PolicyView, slow: readonly string[]): readonly Proposal[] {
  const stage = appraiseStage(runs, view);
  if (sampleCount(stage.samples) < view.config.outrider.minSamples) return [];
  return stage.tasks.flatMap((task): readonly Proposal[] => {
    const pruned = prune(task, stage, view);
    if (pruned.length > 0) return pruned;
    const proposal = proposeForTask(task, stage, runs, view, slow);
    return proposal === undefined ? [] : [proposal];
  });
}

/** Ranks by time left once no task waits: then the stage ends with the task that ends last, whatever a copy saves. */
function rankedForEnd(proposals: readonly Proposal[], view: PolicyView): readonly Proposal[] {
  if (isContended(view.slots)) return proposals;
  return proposals.map((each) => (each.kind === 'backup' ? { ...each, gainMs: each.facts['remMs'] ?? each.gainMs } : each));
}

/**
 * The default: Mantri's rules decide whether a copy is worth its cost, LATE's time left decides which comes first
 * once slots are spare, slow nodes and the task's own are declined, and a task that is slow because it reads more is
 * never copied.
 *
 * Source: LATE §4, Mantri §5.1 and §4.2; the combination is ours.
 */
export const outrider: PolicySet = {
  name: 'outrider',
  launchOrder: 'largest-first',
  copyCap,
  propose(view) {
    const slow = slowNodesBy(view, view.config.mantri.slowNodeFactor);
    return rankedForEnd(view.runs.flatMap((runs) => proposeFor(runs, view, slow)), view);
  },
};
