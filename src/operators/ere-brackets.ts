import { posixClasses } from './ere-syntax.ts';

/** A problem of a pattern, told in one line. */
export class PatternError extends Error {
  override readonly name = 'PatternError';
}

/**
 * Reads a bracket expression of a Latin-1 pattern; `start` is just after its "[". Backslashes are plain bytes in
 * it, "]" is one where it comes first. Answers the bytes named, before any case folding, whether they are to be
 * excluded, and where reading stopped. Throws PatternError.
 */
export function readBracket(
  pattern: string,
  start: number,
): { set: Uint8Array; isNegated: boolean; end: number } {
  const isNegated = pattern[start] === '^';
  const first = isNegated ? start + 1 : start;
  const set = new Uint8Array(256);
  let at = first;
  for (;;) {
    if (at >= pattern.length) throw new PatternError('has a "[" without its "]"');
    if (pattern[at] === ']' && at > first) break;
    const named = readClass(pattern, at, set);
    if (named !== undefined) {
      at = named;
      continue;
    }
    const low = readElement(pattern, at);
    at = low.end;
    if (pattern[at] === '-' && at + 1 < pattern.length && pattern[at + 1] !== ']') {
      const high = readElement(pattern, at + 1);
      if (high.byte < low.byte)
        throw new PatternError('has a range in "[…]" whose end comes before its begin');
      set.fill(1, low.byte, high.byte + 1);
      at = high.end;
    } else {
      set[low.byte] = 1;
    }
  }
  refuseBareClass(pattern.slice(first, at));
  return { set, isNegated, end: at + 1 };
}

/** Adds the bytes of `[:name:]` at `at` to the set and tells where it ends; undefined where there is none. */
function readClass(pattern: string, at: number, set: Uint8Array): number | undefined {
  if (!pattern.startsWith('[:', at)) return undefined;
  const end = pattern.indexOf(':]', at + 2);
  if (end < 0) throw new PatternError('has a "[:" without its ":]"');
  const name = pattern.slice(at + 2, end);
  const holds = Object.hasOwn(posixClasses, name) ? posixClasses[name] : undefined;
  if (holds === undefined) {
    throw new PatternError(
      `has no known class in "[:${name.slice(0, 40)}:]"; known are ${Object.keys(posixClasses).join(', ')}`,
    );
  }
  for (let byte = 0; byte < 256; byte++) if (holds(byte)) set[byte] = 1;
  return end + 2;
}

/** One byte of a bracket expression: as it is, or as `[.x.]` or `[=x=]`. */
function readElement(pattern: string, at: number): { byte: number; end: number } {
  const opener = pattern.slice(at, at + 2);
  if (opener === '[.' || opener === '[=') {
    if (pattern.slice(at + 3, at + 5) !== `${opener.slice(1)}]`) {
      throw new PatternError(`has "${opener}" that is not followed by one byte and "${opener.slice(1)}]"`);
    }
    return { byte: pattern.charCodeAt(at + 2), end: at + 5 };
  }
  return { byte: pattern.charCodeAt(at), end: at + 1 };
}

/** `[:space:]` alone is nearly always a slip for `[[:space:]]`; grep refuses it too. */
function refuseBareClass(content: string): void {
  if (content.length > 2 && content.startsWith(':') && content.endsWith(':')) {
    const shown = content.length > 40 ? ':name:' : content;
    throw new PatternError(`has [${shown}]; a class is written [[${shown}]]`);
  }
}
