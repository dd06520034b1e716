import { Backward, Forward } from './ere-automaton.ts';
import type { Line } from './ere-automaton.ts';
import type { LineMatcher, Span } from './ere.ts';
import { programOf } from './ere-program.ts';
import { ReferenceSearch } from './ere-references.ts';
import type { ParsedEre } from './ere-parse.ts';
import { Starts } from './ere-starts.ts';
import { QuickSearch } from './ere-quick.ts';
import type { Work } from './ere-work.ts';

/**
 * A matcher for expressions with back references, which no automaton matches: how long it takes may grow with a high
 * power of the line's length. An automaton for something wider dismisses most lines, and most places of the others,
 * before anything is searched; the search itself is bounded, and throws `TooManyStepsError`.
 */
export class ReferenceMatcher implements LineMatcher {
  readonly #work: Work;
  readonly #anywhere: Forward;
  readonly #starts: Starts;
  readonly #search: ReferenceSearch;
  readonly #quick: QuickSearch | undefined;
  #asked: Generator<undefined, boolean> | undefined;

  constructor(
    { ere, referenced }: ParsedEre,
    { ignoreCase, work }: { readonly ignoreCase: boolean; readonly work: Work },
  ) {
    const wider = programOf(ere);
    const program = programOf(ere, referenced);
    this.#work = work;
    this.#anywhere = new Forward(wider, { isAnchored: false, work });
    this.#starts = new Starts(new Backward(wider, work));
    this.#search = new ReferenceSearch(program, { groups: referenced, ignoreCase, work });
    // V8 folds letters beyond ASCII too.
    this.#quick = ignoreCase ? undefined : QuickSearch.of(ere);
  }

  matches(bytes: Buffer, start: number, end: number): boolean | undefined {
    const line = { bytes, start, end };
    const quick = this.#quickFor(line);
    if (quick === undefined) {
      this.#asked = this.#anyIn(line);
      return this.resume();
    }
    if (!this.#work.wantsRest()) return isIn(line, quick);
    this.#asked = laterIn(line, quick);
    return undefined;
  }

  resume(): boolean | undefined {
    const answer = this.#asked?.next();
    return answer?.done === true ? answer.value : undefined;
  }

  *spans(bytes: Buffer, start: number, end: number): Generator<Span | undefined, void> {
    const line = { bytes, start, end };
    const quick = this.#quickFor(line);
    if (quick !== undefined) {
      yield* this.#beginningAt(line, quick);
      return;
    }
    if (!(yield* this.#mayMatch(line))) return;
    const search = this.#search;
    for (let at = this.#starts.next(start); at >= 0 && at < end;) {
      if (this.#work.wantsRest()) yield undefined;
      search.begin(at, 'longest');
      while (!search.run()) yield undefined;
      if (search.longest > at) yield [at, search.longest];
      at = this.#starts.next(Math.max(search.longest, at + 1));
    }
  }

  /** V8's search where it is quick; then its steps count as done. */
  #quickFor(line: Line): QuickSearch | undefined {
    const steps = this.#quick?.steps(line);
    if (steps === undefined) return undefined;
    this.#work.steps += steps;
    return this.#quick;
  }

  /** The matches of a line; where each begins is asked of V8, where it ends is searched. */
  *#beginningAt(line: Line, begins: QuickSearch): Generator<Span | undefined, void> {
    const { bytes, start, end } = line;
    const search = this.#search;
    if (this.#work.wantsRest()) yield undefined;
    const text = bytes.toString('latin1', start, end);
    let at = begins.first(text, 0);
    if (at >= 0) search.open(line);
    while (at >= 0 && start + at < end) {
      if (this.#work.wantsRest()) yield undefined;
      search.begin(start + at, 'longest');
      while (!search.run()) yield undefined;
      const found = search.longest - start;
      if (found > at) yield [start + at, start + found];
      at = begins.first(text, Math.max(found, at + 1));
    }
  }

  *#anyIn(line: Line): Generator<undefined, boolean> {
    if (!(yield* this.#mayMatch(line))) return false;
    const search = this.#search;
    for (let at = this.#starts.next(line.start); at >= 0; at = this.#starts.next(at + 1)) {
      if (this.#work.wantsRest()) yield undefined;
      search.begin(at, 'any');
      while (!search.run()) yield undefined;
      if (search.longest >= 0) return true;
    }
    return false;
  }

  /** Whether something wider matches; then all is ready for a search. */
  *#mayMatch(line: Line): Generator<undefined, boolean> {
    const anywhere = this.#anywhere;
    anywhere.open(line, line.start);
    for (let doesMatch = anywhere.scan(line); doesMatch !== true; doesMatch = anywhere.scan(line)) {
      if (doesMatch === false) return false;
      yield undefined;
    }
    this.#starts.open(line);
    while (!this.#starts.scan(line, this.#work)) yield undefined;
    this.#search.open(line);
    return true;
  }
}

const isIn = ({ bytes, start, end }: Line, quick: QuickSearch): boolean =>
  quick.first(bytes.toString('latin1', start, end), 0) >= 0;

/** The same as a generator, for after a rest. */
function* laterIn(line: Line, quick: QuickSearch): Generator<undefined, boolean> {
  return isIn(line, quick);
}
