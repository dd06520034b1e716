import { BadRecordError, BadValueError } from '../worker/operator.ts';
import { addExactly, addWhole, roundSum, wholeSum } from './exact-sum.ts';
import type { ExactSum } from './exact-sum.ts';
import type { AggregateOp } from './groupby-options.ts';

/**
 * What is known so far of one aggregate of one group; JSON, since it travels between stages. `count` of values
 * that are not null; `parts` of their exact sum, and whether all were whole; the least or the largest as text.
 */
export interface Partial {
  count: number;
  parts: ExactSum;
  isWhole: boolean;
  extreme: string | null;
}

/** The aggregate of no values. */
export const noValues = (): Partial => ({ count: 0, parts: [], isWhole: true, extreme: null });

/** Throws BadValueError where `addValue` would. */
export function checkValue(op: AggregateOp, value: unknown, column: string): void {
  if (value !== null && value !== undefined && value !== '' && op !== 'count') numberText(value, column);
}

/**
 * Adds a value. `undefined` and null count for nothing, as in SQL, and an empty text does only to `count`. Throws BadValueError where
 * it is no number.
 */
export function addValue(partial: Partial, op: AggregateOp, value: unknown, column: string): void {
  if (value === null || value === undefined || (value === '' && op !== 'count')) return;
  partial.count++;
  if (op === 'count') return;
  const text = numberText(value, column);
  if (op === 'min' || op === 'max') {
    if (partial.extreme === null || isBefore(op, text, partial.extreme)) partial.extreme = text;
    return;
  }
  const number = Number(text);
  const isWhole = isWholeText(text);
  partial.isWhole &&= isWhole;
  // Beyond 2^53 a double holds a whole number only in part.
  if (isWhole && !Number.isSafeInteger(number)) addWhole(partial.parts, BigInt(text));
  else addExactly(partial.parts, number);
}

/** Adds all that `other` has seen. */
export function mergePartial(into: Partial, op: AggregateOp, other: Partial): void {
  into.count += other.count;
  into.isWhole &&= other.isWhole;
  for (const part of other.parts) addExactly(into.parts, part);
  if (other.extreme === null) return;
  if (into.extreme === null || isBefore(op, other.extreme, into.extreme)) into.extreme = other.extreme;
}

/** The result as the text of a number, null where SQL has NULL: of no values there is but a count. */
export function resultOf(partial: Partial, op: AggregateOp): string | null {
  if (op === 'count') return String(partial.count);
  if (partial.count === 0) return null;
  if (op === 'min' || op === 'max') return partial.extreme;
  if (op === 'sum' && partial.isWhole) return String(wholeSum(partial.parts));
  const sum = roundSum(partial.parts);
  if (!Number.isFinite(sum)) throw new BadRecordError(`a ${op} is beyond the range of numbers`);
  return String(op === 'avg' ? sum / partial.count : sum);
}

const isWholeText = (text: string): boolean => /^-?\d+$/.test(text);

/** A number in canonical text: whole ones with all their digits, others as doubles. */
function numberText(value: unknown, column: string): string {
  if (typeof value === 'number') return canonical(value);
  const text = typeof value === 'string' ? value.trim() : '';
  if (/^[+-]?\d{1,40}$/.test(text)) return String(BigInt(text.replace('+', '')));
  if (/^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text) && Number.isFinite(Number(text))) {
    return canonical(Number(text));
  }
  throw new BadValueError(
    `column ${JSON.stringify(column)} must hold numbers to be aggregated, not ${JSON.stringify(value).slice(0, 80)}`,
  );
}

/** The text of a number: a whole one with all its digits, another as a double. */
export const canonical = (value: number): string =>
  Number.isInteger(value) && Math.abs(value) < 1e21 ? String(BigInt(value)) : String(value);

function isBefore(op: AggregateOp, left: string, right: string): boolean {
  const [low, high] = op === 'min' ? [left, right] : [right, left];
  return isWholeText(low) && isWholeText(high) ? BigInt(low) < BigInt(high) : Number(low) < Number(high);
}
