import type { ExplainedCause, Explanation } from '../../contracts/explanation.ts';
import type { AttemptRun } from './attempt-runs.ts';

/** The nodes that some attempt's slowness was shown to come from, slowest first. */
export function slowNodesOf(
  runs: readonly AttemptRun[],
  causesOf: (run: AttemptRun) => readonly ExplainedCause[],
): Explanation['slowNodes'] {
  const found = runs.flatMap(causesOf).filter(({ kind, node }) => kind === 'slow-node' && node !== undefined);
  return [...Map.groupBy(found, ({ node = '' }) => node)]
    .map(([node, causes]) => ({
      node,
      evidence: [...new Set(causes.flatMap(({ evidence = [] }) => evidence))],
      slowness: Math.max(...causes.map(({ facts }) => facts['slowness'] ?? 0)),
      attempts: causes.map(({ attemptId }) => attemptId),
    }))
    .toSorted((a, b) => b.slowness - a.slowness);
}
