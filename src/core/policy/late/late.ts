import { ranMs as ranMsOf } from '../../estimate/progress-rate.ts';
import { allStarted } from '../running-tasks.ts';
import type { PolicySet, PolicyView, Proposal, StageRuns } from '../policy-set.ts';
import { finiteMs } from '../merit.ts';
import { onceAsked, type SlowNodes } from '../node-slowdown.ts';
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
  placement: { readonly slow: SlowNodes; readonly urgent: boolean },
): readonly Proposal[] {
  const { slowTaskThreshold, minAgeMs } = view.config.late;
  const mayCopy = ({ copies }: StageRuns['tasks'][number]): boolean =>
    copies.length === 1 && ranMsOf(copies[0], view.now) >= minAgeMs;
  if (!runs.tasks.some(mayCopy)) return [];
  const ranked = rankByTimeLeft(runs, view);
  const limit = slowTaskRate(ranked, runs.stage.statistics.runMs, slowTaskThreshold);
  if (limit === undefined) return [];
  return ranked
    .filter((each) => !each.isCopied && each.ranMs >= minAgeMs && rateOf(each.msPerTask) < limit)
    .map(({ task, score, leftMs, ranMs, scoredMs }) => ({
      kind: 'backup',
      task,
      gainMs: finiteMs(leftMs),
      avoidNodes: placement.slow(),
      urgent: placement.urgent,
      facts: {
        score,
        leftMs: finiteMs(leftMs),
        ranMs,
        ratePerS: score <= 0 ? 0 : (score / Math.max(1, scoredMs)) * 1_000,
        slowRatePerS: limit * 1_000,
      },
    }));
}

function propose(view: PolicyView): readonly Proposal[] {
  const { slowNodeThreshold, waitForStarts } = view.config.late;
  if (waitForStarts && !allStarted(view.slots)) return [];
  const slow = onceAsked(() => slowNodes(view, slowNodeThreshold));
  const placement = { slow, urgent: !waitForStarts };
  return view.runs.flatMap((runs) => lateBackups(runs, view, placement));
}

/**
 * LATE: once no task waits (or before, without `waitForStarts`), copies the slow task with the longest time left, at
 * most one copy of each, never on slow nodes, under a cap. `gainMs` is the time left.
 *
 * Source: LATE §4; without waiting, Mantri §6.1.
 */
export const late: PolicySet = {
  name: 'late',
  launchOrder: 'largest-first',
  copyCap: speculativeCap,
  isCapOfCluster: () => true,
  propose,
};
