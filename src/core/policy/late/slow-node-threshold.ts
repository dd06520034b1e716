import { quantileIn } from '../../../lib/sorted-numbers.ts';
import { scoreOf } from '../../estimate/progress-rate.ts';
import type { PolicyView } from '../policy-set.ts';

/** Progress of each node: winners that ran there, and the scores of what runs there now. */
export function nodeProgress({ state, runs }: PolicyView): ReadonlyMap<string, number> {
  const progress = new Map([...state.nodes.values()].map(({ id, won }) => [id, won]));
  for (const { tasks } of runs) {
    for (const { copies } of tasks) {
      for (const copy of copies) {
        if (copy.node !== undefined)
          progress.set(copy.node, (progress.get(copy.node) ?? 0) + (scoreOf(copy) ?? 0));
      }
    }
  }
  return progress;
}

/**
 * Nodes that get no copies: their progress is strictly below a percentile of all nodes', so that of nodes alike none
 * is refused. Slowest first, ties by name.
 *
 * Source: LATE §4, SlowNodeThreshold.
 */
export function slowNodes(view: PolicyView, threshold: number): readonly string[] {
  const progress = nodeProgress(view);
  const limit = quantileIn(Float64Array.from(progress.values()).sort(), threshold);
  if (limit === undefined) return [];
  return [...progress]
    .filter(([, done]) => done < limit)
    .sort(([a, doneA], [b, doneB]) => doneA - doneB || (a < b ? -1 : 1))
    .map(([id]) => id);
}
