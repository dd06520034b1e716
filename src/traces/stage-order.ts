import type { TraceStage, TraceTask } from './trace-job.ts';

/** A stage as a trace lists it: in any order, with parents by position in that list. */
export interface ListedStage {
  readonly name: string;
  readonly tasks: readonly TraceTask[];
  readonly parents: readonly number[];
}

/**
 * Stages in topological order: always the first in the list whose parents are all placed. A stage without
 * tasks is left out, and its children wait for its parents instead. Undefined if the edges have a cycle or lead
 * out of the list.
 */
export function orderStages(listed: readonly ListedStage[]): readonly TraceStage[] | undefined {
  const order = topologicalOrder(listed);
  if (order === undefined) return undefined;
  const placed = new Map<number, number>();
  const effective = new Map<number, ReadonlySet<number>>(); // Of left-out stages: what their children wait for.
  const stages: TraceStage[] = [];
  for (const index of order) {
    const stage = listed[index];
    if (stage === undefined) continue;
    const upstream = new Set<number>();
    for (const parent of stage.parents) {
      const at = placed.get(parent);
      if (at !== undefined) upstream.add(at);
      else for (const ancestor of effective.get(parent) ?? []) upstream.add(ancestor);
    }
    if (stage.tasks.length === 0) {
      effective.set(index, upstream);
      continue;
    }
    placed.set(index, stages.length);
    stages.push({ name: stage.name, tasks: stage.tasks, upstream: [...upstream].sort((a, b) => a - b) });
  }
  return stages;
}

/** Positions of the list, parents first; undefined if there is no such order. */
function topologicalOrder(listed: readonly ListedStage[]): readonly number[] | undefined {
  const waiting = listed.map((stage) => new Set(stage.parents));
  const children = listed.map((): number[] => []);
  for (const [child, parents] of waiting.entries()) {
    for (const parent of parents) {
      const siblings = children[parent];
      if (siblings === undefined) return undefined;
      siblings.push(child);
    }
  }
  const ready = [...waiting.entries()].filter(([, parents]) => parents.size === 0).map(([index]) => index);
  const order: number[] = [];
  for (let next = ready.shift(); next !== undefined; next = ready.shift()) {
    order.push(next);
    for (const child of children[next] ?? []) {
      const parents = waiting[child];
      if (parents?.delete(next) === true && parents.size === 0) insertAscending(ready, child);
    }
  }
  return order.length === listed.length ? order : undefined;
}

/** Keeps `list` ascending; lists here are as long as a job is wide. */
function insertAscending(list: number[], value: number): void {
  const at = list.findIndex((other) => other > value);
  list.splice(at === -1 ? list.length : at, 0, value);
}
