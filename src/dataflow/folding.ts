import type { Context } from './context.ts';
import type { AggregateNode, ReduceNode } from './graph.ts';
import { refuseAsync } from './not-async.ts';

/** How values of one key become one. */
export interface Folding {
  /** The sum of one value. */
  readonly begin: (value: unknown) => unknown;
  readonly add: (sum: unknown, value: unknown) => unknown;
  /** Absent where sums cannot be put together: then values are shuffled as they are. */
  readonly merge?: (left: unknown, right: unknown) => unknown;
}

/** What its functions give is looked at here: a sum may be written, or added to, before any stage is asked to carry it. */
export function folding(node: ReduceNode | AggregateNode, context: Context): Folding {
  if (node.kind === 'reduce') {
    const { fn } = node;
    const merge = (left: unknown, right: unknown): unknown => summed('reduce', fn(left, right));
    return { begin: (value) => value, add: merge, merge };
  }
  const { zero, add, merge } = node;
  const added = (sum: unknown, value: unknown): unknown =>
    summed('aggregate (add)', add(sum, value, context));
  return {
    begin: (value) => added(summed('aggregate (zero)', zero()), value),
    add: added,
    ...(merge === undefined
      ? {}
      : { merge: (left, right) => summed('aggregate (merge)', merge(left, right)) }),
  };
}

function summed(step: string, sum: unknown): unknown {
  if (typeof sum === 'object') refuseAsync(step, sum);
  return sum;
}
