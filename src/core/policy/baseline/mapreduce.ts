import type { PolicySet, PolicyView, Proposal, StageRuns } from '../policy-set.ts';
import { allStarted } from '../running-tasks.ts';
import { backup, doneFraction, uncopied } from './uncopied.ts';

function remaining(runs: StageRuns, view: PolicyView): readonly Proposal[] {
  const done = doneFraction(runs);
  if (done < view.config.mapreduce.doneFraction) return [];
  return uncopied(runs, view).map(({ task, ranMs }) => backup(task, ranMs, { ranMs, doneFraction: done }));
}

/**
 * MapReduce: once a share of a stage has finished and no task waits, copies all tasks that remain, longest run first.
 *
 * Source: Mantri §6.1; the share is a setting, since it is not given.
 */
export const mapreduce: PolicySet = {
  name: 'mapreduce',
  launchOrder: 'by-index',
  propose: (view) => (allStarted(view.slots) ? view.runs.flatMap((runs) => remaining(runs, view)) : []),
};
