import { sampleCount } from '../../estimate/new-copy.ts';
import { quantileOf } from '../../../lib/sorted-numbers.ts';
import { type Appraisal, appraiseStage, isContended, type StageAppraisal } from '../mantri/appraise.ts';
import { duplicate } from '../mantri/duplicate.ts';
import { prune } from '../mantri/prune.ts';
import { restart } from '../mantri/restart.ts';
import { finiteMs } from '../merit.ts';
import { currentRemainingMs } from '../../estimate/remaining-time.ts';
import { nodeSlowdowns, nodesInSpell, slowNodesBy } from '../node-slowdown.ts';
import type { PolicySet, PolicyView, Proposal, StageRuns } from '../policy-set.ts';
import { readsMore, slownessForInput } from './input-explained.ts';

/** Most copies at once: few while each takes a waiting task's slot, all spare slots otherwise. */
function copyCap({ config, slots }: PolicyView): number {
  const { contendedCap, spareCap } = config.outrider;
  return Math.max(1, Math.floor((isContended(slots) ? contendedCap : spareCap) * slots.cluster));
}

/** A slow task that has more to read, for the log; undefined where it is not slow beside its siblings. */
function explained(
  task: Appraisal,
  slowness: number,
  runs: StageRuns,
  view: PolicyView,
): Proposal | undefined {
  const medianMs = quantileOf(runs.stage.statistics.runMs, 0.5);
  const factor = view.config.outrider.explainedFactor;
  if (medianMs === undefined || task.remMs === undefined || task.remMs <= factor * medianMs) return undefined;
  return {
    kind: 'decline',
    task: task.running.task,
    reason: 'input-explained',
    gainMs: 0,
    facts: {
      remMs: finiteMs(task.remMs),
      medianMs,
      slownessForInput: slowness,
      inputBytes: task.running.task.inputBytes,
    },
  };
}

/** Nodes that are slow on the whole, slowest first, and then those that are slow now. */
function suspects(view: PolicyView): readonly string[] {
  const { slowNodeFactor } = view.config.outrider;
  return [
    ...new Set([
      ...slowNodesBy(view, slowNodeFactor),
      ...nodesInSpell(view, slowNodeFactor, view.config.mantri.reportWindow),
    ]),
  ];
}

/**
 * Nodes so slow that a task which starts there now would still run when the others are through with all that waits:
 * slower than by the waves that are left. No more than half of the nodes known.
 */
function declinedNodes(view: PolicyView): readonly string[] {
  const { granted, waiting } = view.slots;
  if (waiting === 0 || granted === 0) return [];
  const known = nodeSlowdowns(view).size;
  return slowNodesBy(view, Math.max(view.config.outrider.slowNodeFactor, 1 + waiting / granted)).slice(
    0,
    Math.floor(known / 2),
  );
}

/** Where copies of a task must not run: slow nodes, and for a second copy beside it, the nodes that run it now. */
function elsewhere(task: Appraisal, slow: readonly string[]): readonly string[] {
  const own = task.running.copies.flatMap(({ node }) => node ?? []);
  return [...new Set([...own, ...slow])];
}

function proposeForTask(
  task: Appraisal,
  stage: StageAppraisal,
  runs: StageRuns,
  view: PolicyView,
  slow: readonly string[],
): Proposal | undefined {
  const slowness = slownessForInput(task, stage, view);
  if (slowness === undefined) return undefined;
  const isExplained = slowness <= view.config.outrider.explainedFactor && readsMore(task, runs);
  if (isExplained) return explained(task, slowness, runs, view);
  const beside = duplicate(task, stage, view, elsewhere(task, slow));
  // A restart off a slow node takes a good slot and leaves a bad one: it has to be worth as much as a duplicate.
  const isNeutral = !task.running.copies.some(({ node }) => node !== undefined && slow.includes(node));
  const again =
    isContended(view.slots) && (isNeutral || beside !== undefined)
      ? restart(task, stage, view, slow)
      : undefined;
  const chosen = view.config.mantri.prefer === 'restart' ? (again ?? beside) : (beside ?? again);
  return chosen === undefined
    ? undefined
    : { ...chosen, facts: { ...chosen.facts, slownessForInput: slowness } };
}

function proposeFor(runs: StageRuns, view: PolicyView, slow: readonly string[]): readonly Proposal[] {
  const { recentWeight } = view.config.outrider;
  const stage = appraiseStage(runs, view, (attempt, terms) =>
    currentRemainingMs(attempt, terms, recentWeight),
  );
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
  return proposals.map((each) =>
    each.kind === 'backup' ? { ...each, gainMs: each.facts['remMs'] ?? each.gainMs } : each,
  );
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
  declinedNodes,
  propose(view) {
    const slow = suspects(view);
    return rankedForEnd(
      view.runs.flatMap((runs) => proposeFor(runs, view, slow)),
      view,
    );
  },
};
