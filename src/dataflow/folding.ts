import type { Context } from './context.ts';
import type { AggregateNode, ReduceNode } from './graph.ts';

/** How values of one key become one. */
export interface Folding {
  /** The sum of one value. */
  readonly begin: (value: unknown) => unknown;
  readonly add: (sum: unknown, value: unknown) => unknown;
  /** Absent where sums cannot be put together: then values are shuffled as they are. */
  readonly merge?: (left: unknown, right: unknown) => unknown;
}

export function folding(node: ReduceNode | AggregateNode, context: Context): Folding {
  if (node.kind === 'reduce') {
    const { fn } = node;
    return { begin: (value) => value, add: fn, merge: fn };
  }
  const { zero, add, merge } = node;
  return {
    begin: (value) => add(zero(), value, context),
    add: (sum, value) => add(sum, value, context),
    ...(merge === undefined ? {} : { merge }),
  };
}
