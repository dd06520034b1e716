import { Backward, Forward } from './ere-automaton.ts';
import type { Line } from './ere-automaton.ts';
import type { LineMatcher } from './ere.ts';
import { programOf } from './ere-program.ts';
import { ReferenceSearch } from './ere-references.ts';
import type { ParsedEre } from './ere-parse.ts';
import { Starts } from './ere-starts.ts';
import type { Work } from './ere-work.ts';

/**
 * A matcher for expressions with back references, which no automaton matches: how long it takes may grow with a high
 * power of the line's length. An automaton for something wider dismisses most lines, and most places of the others,
 * before anything is searched; the search itself is bounded, and throws `TooManyStepsError`.
 */
export function referenceMatcher(
  { ere, referenced }: ParsedEre,
  { ignoreCase, work }: { ignoreCase: boolean; work: Work },
): LineMatcher {
  const wider = programOf(ere);
  const anywhere = new Forward(wider, { isAnchored: false, work });
  const starts = new Starts(new Backward(wider, work));
  const search = new ReferenceSearch(programOf(ere, referenced), { groups: referenced, ignoreCase, work });
  let asked: Generator<undefined, boolean> | undefined;

  function* mayMatch(line: Line): Generator<undefined, boolean> {
    anywhere.open(line, line.start);
    for (;;) {
      const doesMatch = anywhere.scan(line);
      if (doesMatch === false) return false;
      if (doesMatch === true) break;
      yield undefined;
    }
    starts.open(line);
    while (!starts.scan(line, work)) yield undefined;
    search.open(line);
    return true;
  }

  function* anyIn(line: Line): Generator<undefined, boolean> {
    if (!(yield* mayMatch(line))) return false;
    for (let at = starts.next(line.start); at >= 0; at = starts.next(at + 1)) {
      search.begin(at, 'any');
      while (!search.run()) yield undefined;
      if (search.longest >= 0) return true;
    }
    return false;
  }

  const resume = (): boolean | undefined => {
    const answer = asked?.next();
    return answer?.done === true ? answer.value : undefined;
  };
  return {
    matches(bytes, start, end) {
      asked = anyIn({ bytes, start, end });
      return resume();
    },
    resume,
    *spans(bytes, start, end) {
      const line = { bytes, start, end };
      if (!(yield* mayMatch(line))) return;
      for (let at = starts.next(start); at >= 0 && at < end;) {
        search.begin(at, 'longest');
        while (!search.run()) yield undefined;
        if (search.longest > at) yield [at, search.longest];
        at = starts.next(Math.max(search.longest, at + 1));
      }
    },
  };
}
