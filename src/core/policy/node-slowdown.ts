import { quantileIn, quantileOf } from '../../lib/sorted-numbers.ts';
import { msPerByteOf } from '../estimate/new-copy.ts';
import { reportedMs } from '../estimate/progress-rate.ts';
import type { PolicyView } from './policy-set.ts';

interface Work {
  ranMs: number;
  expectedMs: number;
}

/** Ordinary milliseconds per byte of each stage: the median of finished attempts, else of running ones. */
function ordinaryRates({ state, runs }: PolicyView): ReadonlyMap<number, number> {
  const rates = new Map<number, number>();
  for (const { index, statistics } of state.stages) {
    const median = quantileOf(statistics.msPerByte, 0.5);
    if (median !== undefined) rates.set(index, median);
  }
  for (const { stage, tasks } of runs) {
    if (rates.has(stage.index)) continue;
    const running = Float64Array.from(tasks.flatMap(({ copies }) => copies.flatMap((copy) => msPerByteOf(copy) ?? []))).sort();
    const median = quantileIn(running, 0.5);
    if (median !== undefined) rates.set(stage.index, median);
  }
  return rates;
}

/**
 * How much slower each node is than the job's ordinary one: the time that its work has taken over the time that the
 * same bytes take at the stage's median rate; 1 is ordinary. Finished and running attempts both count, by how long
 * they ran. Nodes of which nothing is known are left out.
 *
 * Source: Mantri §5.5, locationFactor (persistent speed relative to others).
 */
export function nodeSlowdowns(view: PolicyView): ReadonlyMap<string, number> {
  const rates = ordinaryRates(view);
  const sums = new Map<string, Work>();
  const add = (node: string, stage: number, ranMs: number, bytes: number): void => {
    const rate = rates.get(stage) ?? 0;
    const sum = sums.get(node) ?? { ranMs: 0, expectedMs: 0 };
    sums.set(node, { ranMs: sum.ranMs + ranMs, expectedMs: sum.expectedMs + rate * bytes });
  };
  for (const { id, work } of view.state.nodes.values()) {
    for (const [stage, { bytes, runMs }] of work) add(id, stage, runMs, bytes);
  }
  for (const { stage, tasks } of view.runs) {
    for (const { copies } of tasks) {
      for (const copy of copies) {
        if (copy.node !== undefined && copy.progress !== undefined && copy.progress.bytesRead > 0) {
          add(copy.node, stage.index, reportedMs(copy), copy.progress.bytesRead);
        }
      }
    }
  }
  return new Map([...sums].flatMap(([id, { ranMs, expectedMs }]) => (expectedMs > 0 ? [[id, ranMs / expectedMs] as const] : [])));
}

/** Nodes at least `factor` times as slow as the ordinary one, slowest first, ties by name. */
export function slowNodesBy(view: PolicyView, factor: number): readonly string[] {
  return [...nodeSlowdowns(view)]
    .filter(([, slowdown]) => slowdown >= factor)
    .sort(([a, slowA], [b, slowB]) => slowB - slowA || (a < b ? -1 : 1))
    .map(([id]) => id);
}
