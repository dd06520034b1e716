import { allStarted } from '../running-tasks.ts';
import type { PolicySet, PolicyView, Proposal, StageRuns } from '../policy-set.ts';
import { finiteMs } from '../merit.ts';
import { rankByTimeLeft } from './rank-by-time-left.ts';
import { slowNodes } from './slow-node-threshold.ts';
import { rateOf, slowTaskRate } from './slow-task-threshold.ts';

/** Most copies at once: a share of the cluster's slots, at least one. Source: LATE §4, SpeculativeCap. */
export const speculativeCap = ({ config, slots }: PolicyView): number =>
  Math.max(1, Math.floor(config.late.speculativeCap * slots.cluster));

/** Copies of the stage's slow tasks that are old enough and have none, longest time left first. */
function lateBackups(
  runs: StageRuns,
  view: PolicyView,
  placement: { readonly avoidNodes: readonly string[]; readonly urgent: boolean },
): readonly Proposal[] {
  const { slowTaskThreshold, minAgeMs } = view.config.late;
  const ranked = rankByTimeLeft(runs, view);
  const limit = slowTaskRate(ranked, runs.stage.statistics.runMs, slowTaskThreshold);
  if (limit === undefined) return [];
  return ranked
    .filter((each) => !each.isCopied && each.ranMs >= minAgeMs && rateOf(each.msPerTask) < limit)
    .map(({ task, score, leftMs, ranMs, scoredMs }) => ({
      kind: 'backup',
      task,
      gainMs: finiteMs(leftMs),
      ...placement,
      facts: {
        score,
        leftMs: finiteMs(leftMs),
        ranMs,
        ratePerS: score <= 0 ? 0 : (score / Math.max(1, scoredMs)) * 1_000,
        slowRatePerS: limit * 1_000,
      },
    }));
}

function propose(view: PolicyView, urgent: boolean): readonly Proposal[] {
  if (!urgent && !allStarted(view.slots)) return [];
  const placement = { avoidNodes: slowNodes(view, view.config.late.slowNodeThreshold), urgent };
  return view.runs.flatMap((runs) => lateBackups(runs, view, placement));
}

/**
 * LATE: once no task waits, copies the slow task with the longest time left, at most one copy of each, never on slow
 * nodes, under a cap. `gainMs` is the time left.
 *
 * Source: LATE §4.
 */
export const late: PolicySet = {
  name: 'late',
  launchOrder: 'largest-first',
  copyCap: speculativeCap,
  isCapOfCluster: () => true,
  propose: (view) => propose(view, false),
};

/** The same rule without waiting for all tasks to start. Source: Mantri §6.1. */
export const earlyLate: PolicySet = {
  name: 'early-late',
  launchOrder: 'largest-first',
  copyCap: speculativeCap,
  isCapOfCluster: () => true,
  propose: (view) => propose(view, true),
};
