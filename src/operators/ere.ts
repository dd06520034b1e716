import { InvalidInputError } from '../contracts/errors.ts';
import { ReferenceMatcher } from './ere-backtrack.ts';
import { PatternError } from './ere-brackets.ts';
import { linearMatcher } from './ere-linear.ts';
import { parseEre } from './ere-parse.ts';
import { Work } from './ere-work.ts';

/** A match: bytes [start, end). */
export type Span = readonly [start: number, end: number];

/**
 * Tells what of a line matches a pattern. Lines are bytes [start, end), without their newline. After so many steps
 * it answers undefined: whoever asks lets timers and messages have their turn, and asks on. One line is asked about at a time.
 */
export interface LineMatcher {
  /** Whether anything in the line matches, if only the empty text. */
  matches(bytes: Buffer, start: number, end: number): boolean | undefined;
  /** The same of the same line, after `undefined`. */
  resume(): boolean | undefined;
  /** The matches that are not empty and do not overlap: always the leftmost, and of those the longest. */
  spans(bytes: Buffer, start: number, end: number): Iterator<Span | undefined>;
}

/**
 * A matcher of an extended regular expression, as `LC_ALL=C grep -aE` reads it: over bytes, "." is any byte. It
 * takes time linear in the line, at most some steps for each state of the pattern and byte. Patterns with back
 * references may need far more: there the steps of each line are limited, and `TooManyStepsError` says so.
 *
 * @throws InvalidInputError with the field `options.pattern` where the pattern is wrong, or too large: work and
 * memory to find out are bounded by the limits of patterns, whatever is written.
 */
export function compileEre(
  pattern: string,
  { ignoreCase, work = new Work() }: { ignoreCase: boolean; work?: Work },
): LineMatcher {
  try {
    const parsed = parseEre(pattern, ignoreCase);
    return parsed.referenced.size > 0
      ? new ReferenceMatcher(parsed, { ignoreCase, work })
      : linearMatcher(parsed.ere, work);
  } catch (cause) {
    if (!(cause instanceof PatternError)) throw cause;
    throw new InvalidInputError(
      `the pattern ${shownPattern(pattern)} ${cause.message}`,
      { field: 'options.pattern' },
      { cause },
    );
  }
}

/** A pattern for messages: quoted, on one line, cut where it is long. */
export const shownPattern = (pattern: string): string =>
  JSON.stringify(pattern.length > 200 ? `${pattern.slice(0, 200)}…` : pattern);
