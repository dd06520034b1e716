import { badInput } from './failures.ts';

export const aggregateOperations = ['count', 'sum', 'min', 'max', 'avg'] as const;
export type AggregateOperation = (typeof aggregateOperations)[number];

/** One aggregate of a group-by, as the operator's options name it. */
export interface AggregateOption {
  readonly op: AggregateOperation;
  readonly column?: string;
  readonly as?: string;
}

const isOperation = (text: string): text is AggregateOperation =>
  aggregateOperations.some((name) => name === text);

/**
 * Reads `count, sum:amount, avg:price as mean`: items between commas, each an operation, for all but `count`
 * ":" and a column, and perhaps " as " and a name. Columns hold neither commas nor " as ". Throws
 * `InvalidInputError` on anything else.
 */
export function parseAggregates(text: string): readonly AggregateOption[] {
  const items = text.split(',').map((item) => item.trim());
  return items.map((item) => {
    const match = /^([A-Za-z]+)(?:\s*:\s*(.+?))?(?:\s+as\s+(.+?))?$/s.exec(item);
    const op = match?.[1]?.toLowerCase() ?? '';
    if (!isOperation(op)) {
      throw badInput(
        `--agg "${item}" must be one of ${aggregateOperations.join(', ')}, ` +
          'such as "count", "sum:amount" or "avg:price as mean"',
      );
    }
    const column = match?.[2];
    if (op !== 'count' && column === undefined) {
      throw badInput(`--agg "${item}" must name a column, such as "${op}:amount"`);
    }
    return {
      op,
      ...(column === undefined ? {} : { column }),
      ...(match?.[3] === undefined ? {} : { as: match[3] }),
    };
  });
}
