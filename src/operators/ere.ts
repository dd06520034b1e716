import { InvalidInputError } from '../contracts/errors.ts';
import { Automaton } from './ere-automaton.ts';
import { toRegExpSource } from './ere-backtrack.ts';
import { PatternError } from './ere-brackets.ts';
import { parseEre } from './ere-parse.ts';

/** Tells what of a line matches a pattern. Lines are bytes [start, end), without their newline. */
export interface LineMatcher {
  /** Whether anything in the line matches, if only the empty text. */
  matches(bytes: Buffer, start: number, end: number): boolean;
  /** The matches that are not empty and do not overlap: always the leftmost, and of those the longest. */
  spans(bytes: Buffer, start: number, end: number): Iterator<readonly [start: number, end: number]>;
}

/**
 * A matcher of an extended regular expression, as `LC_ALL=C grep -aE` reads it: over bytes, "." is any byte.
 * To tell whether a line matches takes time linear in the line. `spans` does too for most patterns; where every
 * match might have become a longer one, as with `a*b|a` in a line of a's, it looks on to the end of the line for
 * each. Patterns with back references are matched by backtracking, for which the longest match is not promised.
 *
 * @throws InvalidInputError with the field `options.pattern` where the pattern is wrong.
 */
export function compileEre(pattern: string, { ignoreCase }: { ignoreCase: boolean }): LineMatcher {
  try {
    const { ere, hasReferences } = parseEre(pattern, ignoreCase);
    if (hasReferences) return backtracking(new RegExp(toRegExpSource(ere), ignoreCase ? 'gi' : 'g'));
    return linear(
      new Automaton(ere, { isAnchored: false, isBackward: false }),
      new Automaton(ere, { isAnchored: true, isBackward: false }),
      new Automaton(ere, { isAnchored: false, isBackward: true }),
    );
  } catch (cause) {
    if (!(cause instanceof PatternError)) throw cause;
    const shown = JSON.stringify(pattern.length > 200 ? `${pattern.slice(0, 200)}…` : pattern);
    throw new InvalidInputError(
      `the pattern ${shown} ${cause.message}`,
      { field: 'options.pattern' },
      { cause },
    );
  }
}

function linear(anywhere: Automaton, here: Automaton, backward: Automaton): LineMatcher {
  let marks = new Uint8Array(4_096);
  return {
    matches: (bytes, start, end) => anywhere.matches(bytes, start, end),
    *spans(bytes, start, end) {
      if (!anywhere.matches(bytes, start, end)) return;
      if (marks.length <= end - start) marks = new Uint8Array(2 * (end - start));
      const line = { start, end };
      backward.markStarts(bytes, line, marks);
      for (let at = start; at < end;) {
        const found = marks[at - start] === 1 ? here.longest(bytes, line, at) : -1;
        if (found > at) yield [at, found];
        at = Math.max(found, at + 1);
      }
    },
  };
}

function backtracking(expression: RegExp): LineMatcher {
  return {
    matches: (bytes, start, end) => {
      expression.lastIndex = 0;
      return expression.test(bytes.toString('latin1', start, end));
    },
    *spans(bytes, start, end) {
      for (const match of bytes.toString('latin1', start, end).matchAll(expression)) {
        if (match[0] !== '') yield [start + match.index, start + match.index + match[0].length];
      }
    },
  };
}
