import { PatternError, readBracket } from './ere-brackets.ts';
import { byteSet, escapes, foldCase } from './ere-syntax.ts';
import type { Ere } from './ere-syntax.ts';

/** POSIX's RE_DUP_MAX as GNU has it. */
const maxRepeat = 32_767;
const maxPatternBytes = 10_000;
const maxDepth = 200;

/**
 * Reads a pattern as `LC_ALL=C grep -E` does: over the bytes of its UTF-8 form. Refused are what grep refuses,
 * and what means something else, or nothing, to grep than to those who know other dialects: `(?…)`, `*?`, and
 * backslashes before letters and digits that GNU does not define.
 *
 * @throws PatternError whose message completes "the pattern …".
 */
export function parseEre(
  pattern: string,
  ignoreCase: boolean,
): { ere: Ere; groups: number; hasReferences: boolean } {
  const bytes = Buffer.from(pattern, 'utf8').toString('latin1');
  if (bytes.length > maxPatternBytes)
    throw new PatternError(`is longer than ${String(maxPatternBytes)} bytes`);
  if (/[\n\0]/.test(bytes))
    throw new PatternError('must be one line without NULs; for alternatives write a|b');
  const parser = new Parser(bytes, ignoreCase);
  const ere = parser.alternatives(0);
  // Only a ")" stops the reader before the end.
  if (!parser.isDone()) throw new PatternError('has a ")" without its "("; write \\) for the character');
  return { ere, groups: parser.groups, hasReferences: parser.hasReferences };
}

class Parser {
  groups = 0;
  hasReferences = false;
  private at = 0;
  private readonly closed = new Set<number>();
  private readonly text: string;
  private readonly ignoreCase: boolean;

  constructor(text: string, ignoreCase: boolean) {
    this.text = text;
    this.ignoreCase = ignoreCase;
  }

  isDone(): boolean {
    return this.at >= this.text.length;
  }

  alternatives(depth: number): Ere {
    if (depth > maxDepth) throw new PatternError(`nests groups deeper than ${String(maxDepth)}`);
    const items = [this.sequence(depth)];
    while (this.text[this.at] === '|') {
      this.at++;
      items.push(this.sequence(depth));
    }
    return items.length === 1 ? (items[0] ?? { kind: 'empty' }) : { kind: 'alt', items };
  }

  private sequence(depth: number): Ere {
    const items: Ere[] = [];
    while (!this.isDone() && this.text[this.at] !== '|' && this.text[this.at] !== ')') {
      items.push(this.repeated(depth));
    }
    return items.length === 1 ? (items[0] ?? { kind: 'empty' }) : { kind: 'cat', items };
  }

  private repeated(depth: number): Ere {
    this.refuseBareRepeat(this.at);
    const isAnchor = this.text[this.at] === '^';
    let item = this.atom(depth);
    if (isAnchor) this.refuseBareRepeat(this.at);
    for (let count = 0; ; count++) {
      const before = this.text[this.at - 1];
      const bounds = this.bounds();
      if (bounds === undefined) return item;
      if (count > 0 && this.text[this.at - 1] === '?' && before !== undefined && '*+?}'.includes(before)) {
        throw new PatternError(`has "${before}?"; extended regular expressions know no lazy repeats`);
      }
      if (count > maxDepth)
        throw new PatternError(`repeats one item more than ${String(maxDepth)} times over`);
      item = { kind: 'repeat', item, ...bounds };
    }
  }

  /** grep only warns of these, and what it then matches differs from release to release. */
  private refuseBareRepeat(at: number): void {
    if (this.bounds() === undefined) return;
    throw new PatternError(
      `has "${this.text.slice(at, this.at)}" with nothing to repeat; write a backslash before it`,
    );
  }

  /** Takes the repeat operator at this place; undefined where there is none. */
  private bounds(): { min: number; max: number } | undefined {
    const match = /[*+?]|\{(?:(\d+)(,?)(\d*)|,(\d*))\}/y;
    match.lastIndex = this.at;
    const found = match.exec(this.text);
    if (found === null) return undefined;
    const bounds = boundsOf(found);
    this.at += found[0].length;
    return bounds;
  }

  private atom(depth: number): Ere {
    const char = this.text.charAt(this.at++);
    switch (char) {
      case '(':
        return this.group(depth);
      case '[':
        return this.bracket();
      case '\\':
        return this.escape();
      case '.':
        return { kind: 'byte', set: byteSet(() => true) };
      case '^':
        return { kind: 'assert', what: 'line-start' };
      case '$':
        return { kind: 'assert', what: 'line-end' };
      default:
        return this.literal(char);
    }
  }

  private group(depth: number): Ere {
    if (this.text[this.at] === '?') {
      throw new PatternError('has "(?"; extended regular expressions know plain groups only, ( and )');
    }
    const index = ++this.groups;
    const item = this.alternatives(depth + 1);
    if (this.text[this.at] !== ')')
      throw new PatternError('has a "(" without its ")"; write \\( for the character');
    this.at++;
    this.closed.add(index);
    return { kind: 'group', item };
  }

  private bracket(): Ere {
    const { set, isNegated, end } = readBracket(this.text, this.at);
    this.at = end;
    const folded = this.ignoreCase ? foldCase(set) : set;
    return { kind: 'byte', set: isNegated ? byteSet((byte) => folded[byte] === 0) : folded };
  }

  private escape(): Ere {
    if (this.isDone()) throw new PatternError('ends in a backslash; write \\\\ for the character');
    const char = this.text.charAt(this.at++);
    const known = Object.hasOwn(escapes, char) ? escapes[char] : undefined;
    if (known !== undefined) return known;
    if (/[1-9]/.test(char)) {
      if (!this.closed.has(Number(char)))
        throw new PatternError(`has \\${char} before the end of group ${char}`);
      this.hasReferences = true;
      return { kind: 'backreference', group: Number(char) };
    }
    if (/[0-9A-Za-z]/.test(char)) {
      const instead = char === 'd' ? '; write [0-9] for a digit' : '';
      throw new PatternError(`has \\${char}, which extended regular expressions do not know${instead}`);
    }
    return this.literal(char);
  }

  private literal(char: string): Ere {
    const set = byteSet((byte) => byte === char.charCodeAt(0));
    return { kind: 'byte', set: this.ignoreCase ? foldCase(set) : set };
  }
}

/** Least and most repeats that an operator asks for. */
function boundsOf(found: RegExpExecArray): { min: number; max: number } {
  switch (found[0]) {
    case '*':
      return { min: 0, max: Infinity };
    case '+':
      return { min: 1, max: Infinity };
    case '?':
      return { min: 0, max: 1 };
  }
  const [, low, comma, high, only] = found;
  const min = Number(low ?? 0);
  const upper = low === undefined ? only : high;
  const max =
    comma === ''
      ? Number(`${low ?? ''}${high ?? ''}`)
      : upper === undefined || upper === ''
        ? Infinity
        : Number(upper);
  if (min > maxRepeat || (max !== Infinity && max > maxRepeat)) {
    throw new PatternError(`repeats more than ${String(maxRepeat)} times`);
  }
  if (min > max) throw new PatternError(`has ${found[0]}, whose first number is the larger one`);
  return { min: comma === '' ? max : min, max };
}
