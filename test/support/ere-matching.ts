import { compileEre } from '../../src/operators/ere.ts';
import { Work } from '../../src/operators/ere-work.ts';

/** What a pattern finds in a line, and what it took. */
export interface Matching {
  readonly doesMatch: boolean;
  readonly found: string[];
  /** Steps to tell whether the line matches, and to find all matches. */
  readonly steps: number;
  /** How often others had their turn. */
  readonly rests: number;
}

/** Matches one line of Latin-1 text, with a turn for others whenever it is asked for. */
export function matching(pattern: string, text: string, { ignoreCase = false } = {}): Matching {
  const work = new Work();
  const matcher = compileEre(pattern, { ignoreCase, work });
  const bytes = Buffer.from(text, 'latin1');
  let rests = 0;
  let doesMatch = matcher.matches(bytes, 0, bytes.length);
  for (; doesMatch === undefined; doesMatch = matcher.resume()) rests++;
  const found: string[] = [];
  const spans = matcher.spans(bytes, 0, bytes.length);
  for (let span = spans.next(); span.done !== true; span = spans.next()) {
    if (span.value === undefined) rests++;
    else found.push(text.slice(...span.value));
  }
  return { doesMatch, found, steps: work.steps, rests };
}
