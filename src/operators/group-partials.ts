import { BadRecordError } from '../worker/operator.ts';
import type { Combine } from '../worker/operator.ts';
import { mergePartial } from './aggregates.ts';
import type { Partial } from './aggregates.ts';
import type { Aggregate } from './groupby-options.ts';

/** Combines the partial aggregates of one key, as JSON. */
export const combinePartials =
  (aggregates: readonly Aggregate[]): Combine =>
  (left, right) => {
    const partials = decodePartials(left, aggregates);
    mergeAll(partials, decodePartials(right, aggregates), aggregates);
    return Buffer.from(JSON.stringify(partials));
  };

/** Adds to partial aggregates of one key what others of it have seen. */
export function mergeAll(
  into: readonly Partial[],
  from: readonly Partial[],
  aggregates: readonly Aggregate[],
): void {
  aggregates.forEach(({ op }, at) => {
    const [left, right] = [into[at], from[at]];
    if (left !== undefined && right !== undefined) mergePartial(left, op, right);
  });
}

/** Trusts what groupby-map wrote: checksums guard it on its way. */
export function decodePartials(value: Buffer, aggregates: readonly Aggregate[]): Partial[] {
  const partials: unknown = JSON.parse(value.toString());
  if (!Array.isArray(partials) || partials.length !== aggregates.length) {
    throw new BadRecordError('groupby-reduce reads the output of groupby-map with the same options');
  }
  return partials as Partial[];
}
