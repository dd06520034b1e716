import { quantileOf } from '../../../lib/sorted-numbers.ts';
import type { PolicySet, PolicyView, Proposal, StageRuns } from '../policy-set.ts';
import { allStarted } from '../running-tasks.ts';
import { backup, doneFraction, uncopied } from './uncopied.ts';

function overdue(runs: StageRuns, view: PolicyView): readonly Proposal[] {
  const { durationPercentile, doneFraction: nearEnd } = view.config.dryad;
  const limitMs = quantileOf(runs.stage.statistics.runMs, durationPercentile);
  if (limitMs === undefined || doneFraction(runs) < nearEnd) return [];
  return uncopied(runs, view)
    .filter(({ ranMs }) => ranMs > limitMs)
    .map(({ task, ranMs }) => backup(task, ranMs, { ranMs, limitMs }));
}

/**
 * Dryad: near the end of a stage, copies tasks that have run longer than a percentile of finished ones, longest run
 * first.
 *
 * Source: Mantri §6.1; when the end is near and which percentile are settings, since the digits are lost.
 */
export const dryad: PolicySet = {
  name: 'dryad',
  launchOrder: 'by-index',
  propose: (view) => (allStarted(view.slots) ? view.runs.flatMap((runs) => overdue(runs, view)) : []),
};
