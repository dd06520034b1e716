import { limits } from '../contracts/limits.ts';
import { PatternError } from './ere-brackets.ts';
import type { Ere } from './ere-syntax.ts';

/** POSIX's RE_DUP_MAX as GNU has it. */
const maxRepeat = 32_767;

/** Least and most repeats; `max` may be Infinity. */
export interface Bounds {
  readonly min: number;
  readonly max: number;
}

/** An expression, and how many states it takes in an automaton with its counted repeats written out. */
export interface Sized {
  readonly ere: Ere;
  readonly states: number;
  /** What is repeated, where the expression is a repeat. */
  readonly repeated?: Bounds & { readonly item: Sized };
}

/** Throws PatternError where an automaton would become too large, before any of it is built. */
export function sized(ere: Ere, states: number): Sized {
  if (states <= limits.patternStates) return { ere, states };
  throw new PatternError(
    `is too large: with its repeats written out it has more than ${String(limits.patternStates)} states; repeat fewer times`,
  );
}

/**
 * The item repeated. Repeats of repeats become one where they mean the same, and repeats of what reads nothing are
 * not counted, so that what remains doubles the states at least and its nesting stays shallow.
 */
export function repeat(item: Sized, { min, max }: Bounds): Sized {
  if (item.states === 0) return written(item, { min: Math.min(min, 1), max: Math.min(max, 1) });
  const inner = item.repeated;
  if (inner !== undefined && isSimple(inner) && isSimple({ min, max })) {
    return written(inner.item, { min: min * inner.min, max: Math.max(max, inner.max) });
  }
  return written(item, { min, max });
}

/** The bounds of `?`, `*` and `+`. */
const isSimple = ({ min, max }: Bounds): boolean => min <= 1 && (max === 1 || max === Infinity);

function written(item: Sized, { min, max }: Bounds): Sized {
  if (min === 1 && max === 1) return item;
  const { ere, states } = item;
  const all = max === Infinity ? states + 1 + min * states : max * states + (states === 0 ? 0 : max - min);
  return { ...sized({ kind: 'repeat', item: ere, min, max }, all), repeated: { item, min, max } };
}

/** The repeat operator at `at` of a pattern, and where it ends; undefined where there is none. Throws PatternError. */
export function boundsAt(text: string, at: number): (Bounds & { readonly end: number }) | undefined {
  switch (text[at]) {
    case '*':
      return { min: 0, max: Infinity, end: at + 1 };
    case '+':
      return { min: 1, max: Infinity, end: at + 1 };
    case '?':
      return { min: 0, max: 1, end: at + 1 };
    case '{':
      return countsAt(text, at);
    default:
      return undefined;
  }
}

/** `{n}`, `{n,}`, `{n,m}`, `{,m}` or `{,}`; anything else after a brace is plain text. */
function countsAt(text: string, at: number): (Bounds & { readonly end: number }) | undefined {
  const lowEnd = digitsEnd(text, at + 1);
  const hasComma = text[lowEnd] === ',';
  const highEnd = hasComma ? digitsEnd(text, lowEnd + 1) : lowEnd;
  if (text[highEnd] !== '}' || (!hasComma && lowEnd === at + 1)) return undefined;
  const min = countOf(text.slice(at + 1, lowEnd)) ?? 0;
  const max = hasComma ? (countOf(text.slice(lowEnd + 1, highEnd)) ?? Infinity) : min;
  if (min > max) {
    throw new PatternError(`has ${text.slice(at, highEnd + 1)}, whose first number is the larger one`);
  }
  return { min, max, end: highEnd + 1 };
}

function digitsEnd(text: string, start: number): number {
  let at = start;
  while (at < text.length && text.charAt(at) >= '0' && text.charAt(at) <= '9') at++;
  return at;
}

/** Undefined for no digits. Compared by length first: hundreds of digits would read as infinity. */
function countOf(digits: string): number | undefined {
  if (digits === '') return undefined;
  const significant = digits.replace(/^0+/, '');
  if (significant.length > String(maxRepeat).length || Number(significant) > maxRepeat) {
    throw new PatternError(`repeats more than ${String(maxRepeat)} times`);
  }
  return Number(significant);
}
