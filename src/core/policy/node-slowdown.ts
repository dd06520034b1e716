import { quantileIn, quantileOf } from '../../lib/sorted-numbers.ts';
import { recentMsPerByte } from '../estimate/remaining-time.ts';
import { scoreOf } from '../estimate/progress-rate.ts';
import { msPerByteOf } from '../estimate/new-copy.ts';
import type { PolicyView } from './policy-set.ts';

/** Ordinary milliseconds per byte of each stage: the median of finished attempts, else of running ones. */
function ordinaryRates({ state, runs }: PolicyView): ReadonlyMap<number, number> {
  const rates = new Map<number, number>();
  for (const { index, statistics } of state.stages) {
    const median = quantileOf(statistics.msPerByte, 0.5);
    if (median !== undefined) rates.set(index, median);
  }
  for (const { stage, tasks } of runs) {
    if (rates.has(stage.index)) continue;
    const running = Float64Array.from(
      tasks.flatMap(({ task, copies }) =>
        copies.flatMap((copy) => msPerByteOf(copy, stage.statistics, task) ?? []),
      ),
    ).sort();
    const median = quantileIn(running, 0.5);
    if (median !== undefined) rates.set(stage.index, median);
  }
  return rates;
}

/**
 * How much slower each node is than the job's ordinary one: the least that its last tasks and those that run there
 * now have taken for a byte, over the stage's median; 1 is ordinary. The least, since a task may be slow by its own
 * bad luck: a node is slow when nothing on it is fast. Nodes with fewer than two tasks to judge by are left out.
 *
 * Source: Mantri §5.5, locationFactor (persistent speed relative to others). The statistic is ours.
 */
export function nodeSlowdowns(view: PolicyView): ReadonlyMap<string, number> {
  const rates = ordinaryRates(view);
  const seen = new Map<string, { tasks: number; least: number }>();
  const add = (node: string, stage: number, msPerByte: number): void => {
    const ordinary = rates.get(stage) ?? 0;
    if (ordinary <= 0) return;
    const { tasks, least } = seen.get(node) ?? { tasks: 0, least: Infinity };
    seen.set(node, { tasks: tasks + 1, least: Math.min(least, msPerByte / ordinary) });
  };
  for (const { id, recent } of view.state.nodes.values()) {
    for (const { stage, msPerByte } of recent) add(id, stage, msPerByte);
  }
  for (const { stage, tasks } of view.runs) {
    for (const { task, copies } of tasks) {
      for (const copy of copies) {
        const msPerByte = msPerByteOf(copy, stage.statistics, task);
        if (copy.node !== undefined && msPerByte !== undefined) add(copy.node, stage.index, msPerByte);
      }
    }
  }
  return new Map([...seen].flatMap(([id, { tasks, least }]) => (tasks >= 2 ? [[id, least] as const] : [])));
}

/** Nodes at least `factor` times as slow as the ordinary one, slowest first, ties by name. */
export function slowNodesBy(view: PolicyView, factor: number): readonly string[] {
  return [...nodeSlowdowns(view)]
    .filter(([, slowdown]) => slowdown >= factor)
    .sort(([a, slowA], [b, slowB]) => slowB - slowA || (a < b ? -1 : 1))
    .map(([id]) => id);
}

/**
 * Nodes on which at least two attempts run and all of them have been `factor` times too slow over their last reports:
 * one may have had bad luck, two point at the node. By name.
 *
 * Source: ours; contention comes in spells, which an average over a node's life does not show.
 */
export function nodesInSpell(view: PolicyView, factor: number, window: number): readonly string[] {
  const rates = ordinaryRates(view);
  const seen = new Map<string, { attempts: number; slow: number }>();
  for (const { stage, tasks } of view.runs) {
    const limit = factor * (rates.get(stage.index) ?? Infinity);
    for (const { copies } of tasks) {
      for (const copy of copies) {
        const recent = recentMsPerByte(copy, window);
        // Whoever has read all reads no more, on any node.
        if (copy.node === undefined || recent === undefined || (scoreOf(copy) ?? 0) >= 1) continue;
        const { attempts, slow } = seen.get(copy.node) ?? { attempts: 0, slow: 0 };
        seen.set(copy.node, { attempts: attempts + 1, slow: slow + Number(recent >= limit) });
      }
    }
  }
  return [...seen]
    .filter(([, { attempts, slow }]) => attempts >= 2 && slow === attempts)
    .map(([id]) => id)
    .sort();
}
