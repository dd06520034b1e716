import { Backward, Forward } from './ere-automaton.ts';
import type { Line } from './ere-automaton.ts';
import { Lookahead } from './ere-lookahead.ts';
import type { LineMatcher, Span } from './ere.ts';
import { programOf } from './ere-program.ts';
import { Starts } from './ere-starts.ts';
import type { Ere } from './ere-syntax.ts';
import type { Work } from './ere-work.ts';

/** How far beyond the ends of matches a line is read, in its lengths, before it is read from its end instead. */
const readsBeyond = 4;

/**
 * A matcher in time linear in the line, for expressions without back references. Each match is read up to where
 * nothing longer can come; where that often lies far beyond its end, as with `a*b|a` in a line of a's, the line is
 * read from its end first, which is slower at first and linear in any case.
 */
export function linearMatcher(ere: Ere, work: Work): LineMatcher {
  const program = programOf(ere);
  const anywhere = new Forward(program, { isAnchored: false, work });
  const here = new Forward(program, { isAnchored: true, work });
  const starts = new Starts(new Backward(program, work));
  let ahead: Lookahead | undefined;
  let open: Line = { bytes: Buffer.alloc(0), start: 0, end: 0 };

  function* near(line: Line): Generator<Span | undefined, number> {
    const { start, end } = line;
    let allowed = readsBeyond * (end - start) + 1_000;
    for (let at = starts.next(start); at >= 0 && at < end;) {
      if (allowed < 0) return at;
      here.open(line, at);
      while (!here.scanLongest(line)) yield undefined;
      const found = Math.max(here.longest, at);
      allowed -= here.at - found;
      if (found > at) yield [at, found];
      at = starts.next(Math.max(found, at + 1));
    }
    return end;
  }

  function* far(line: Line, from: number): Generator<Span | undefined, void> {
    ahead ??= new Lookahead(here, new Backward(program, work), work);
    ahead.open(line);
    while (!ahead.scan(from)) yield undefined;
    for (let at = from; at >= 0 && at < line.end;) {
      if (work.wantsRest()) yield undefined;
      const found = ahead.longest(at);
      if (found > at) yield [at, found];
      at = starts.next(Math.max(found, at + 1));
    }
  }

  return {
    matches(bytes, start, end) {
      open = { bytes, start, end };
      anywhere.open(open, start);
      return anywhere.scan(open);
    },
    resume: () => anywhere.scan(open),
    *spans(bytes, start, end) {
      const line = { bytes, start, end };
      anywhere.open(line, start);
      for (let doesMatch = anywhere.scan(line); doesMatch !== true; doesMatch = anywhere.scan(line)) {
        if (doesMatch === false) return;
        yield undefined;
      }
      starts.open(line);
      while (!starts.scan(line, work)) yield undefined;
      const rest = yield* near(line);
      if (rest < end) yield* far(line, rest);
    },
  };
}
