import { limits } from '../contracts/limits.ts';
import { PatternError, readBracket } from './ere-brackets.ts';
import { boundsAt, repeat, sized } from './ere-repeats.ts';
import type { Bounds, Sized } from './ere-repeats.ts';
import { byteSet, escapes, foldCase } from './ere-syntax.ts';
import type { Ere } from './ere-syntax.ts';

/** Groups within groups. */
const maxDepth = 200;

/** A parsed pattern. */
export interface ParsedEre {
  readonly ere: Ere;
  readonly groups: number;
  /** The groups that back references name. */
  readonly referenced: ReadonlySet<number>;
}

/**
 * Reads a pattern as `LC_ALL=C grep -E` does: over the bytes of its UTF-8 form. Refused are what grep refuses,
 * and what means something else, or nothing, to grep than to those who know other dialects: `(?…)`, `*?`, and
 * backslashes before letters and digits that GNU does not define. Work and memory follow the pattern's length:
 * counted repeats are only multiplied here, and refused where the automaton would become too large.
 *
 * @throws PatternError whose message completes "the pattern …".
 */
export function parseEre(pattern: string, ignoreCase: boolean): ParsedEre {
  // No byte is longer than a character, so that this spares the work for what is too long anyway.
  if (pattern.length > limits.patternBytes) throw tooLong();
  const bytes = Buffer.from(pattern, 'utf8').toString('latin1');
  if (bytes.length > limits.patternBytes) throw tooLong();
  if (!pattern.isWellFormed()) throw new PatternError('has half of a surrogate pair, which no text can hold');
  if (/[\n\0]/.test(bytes))
    throw new PatternError('must be one line without NULs; for alternatives write a|b');
  const parser = new Parser(bytes, ignoreCase);
  const { ere } = parser.alternatives(0);
  // Only a ")" stops the reader before the end.
  if (!parser.isDone()) throw new PatternError('has a ")" without its "("; write \\) for the character');
  return { ere, groups: parser.groups, referenced: parser.referenced };
}

const tooLong = (): PatternError => new PatternError(`is longer than ${String(limits.patternBytes)} bytes`);

const empty: Sized = { ere: { kind: 'empty' }, states: 0 };
const sum = (items: readonly Sized[]): number => items.reduce((all, { states }) => all + states, 0);

class Parser {
  groups = 0;
  readonly referenced = new Set<number>();
  private at = 0;
  /** Groups that have ended. */
  private readonly closed = new Map<number, Ere>();
  private readonly groupBytes = new Map<number, Uint8Array>();
  private readonly text: string;
  private readonly ignoreCase: boolean;

  constructor(text: string, ignoreCase: boolean) {
    this.text = text;
    this.ignoreCase = ignoreCase;
  }

  isDone(): boolean {
    return this.at >= this.text.length;
  }

  alternatives(depth: number): Sized {
    if (depth > maxDepth) throw new PatternError(`nests groups deeper than ${String(maxDepth)}`);
    const items = [this.sequence(depth)];
    while (this.text[this.at] === '|') {
      this.at++;
      items.push(this.sequence(depth));
    }
    if (items.length === 1) return items[0] ?? empty;
    return sized({ kind: 'alt', items: items.map(({ ere }) => ere) }, sum(items) + items.length - 1);
  }

  private sequence(depth: number): Sized {
    const items: Sized[] = [];
    while (!this.isDone() && this.text[this.at] !== '|' && this.text[this.at] !== ')') {
      items.push(this.repeated(depth));
    }
    if (items.length < 2) return items[0] ?? empty;
    return sized({ kind: 'cat', items: items.map(({ ere }) => ere) }, sum(items));
  }

  private repeated(depth: number): Sized {
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
      item = repeat(item, bounds);
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
  private bounds(): Bounds | undefined {
    const found = boundsAt(this.text, this.at);
    if (found !== undefined) this.at = found.end;
    return found;
  }

  private atom(depth: number): Sized {
    const char = this.text.charAt(this.at++);
    switch (char) {
      case '(':
        return this.group(depth);
      case '[':
        return sized(this.bracket(), 1);
      case '\\':
        return sized(this.escape(), 1);
      case '.':
        return sized({ kind: 'byte', set: byteSet(() => true) }, 1);
      case '^':
        return sized({ kind: 'assert', what: 'line-start' }, 1);
      case '$':
        return sized({ kind: 'assert', what: 'line-end' }, 1);
      default:
        return sized(this.literal(char), 1);
    }
  }

  private group(depth: number): Sized {
    if (this.text[this.at] === '?') {
      throw new PatternError('has "(?"; extended regular expressions know plain groups only, ( and )');
    }
    const index = ++this.groups;
    const { ere, states } = this.alternatives(depth + 1);
    if (this.text[this.at] !== ')')
      throw new PatternError('has a "(" without its ")"; write \\( for the character');
    this.at++;
    this.closed.set(index, ere);
    return { ere: { kind: 'group', item: ere, index }, states };
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
    if (/[1-9]/.test(char)) return this.reference(Number(char));
    if (/[0-9A-Za-z]/.test(char)) {
      const instead = char === 'd' ? '; write [0-9] for a digit' : '';
      throw new PatternError(`has \\${char}, which extended regular expressions do not know${instead}`);
    }
    return this.literal(char);
  }

  private reference(group: number): Ere {
    const item = this.closed.get(group);
    if (item === undefined)
      throw new PatternError(`has \\${String(group)} before the end of group ${String(group)}`);
    this.referenced.add(group);
    // Once for each group: a pattern may name one thousands of times.
    const bytes = this.groupBytes.get(group) ?? bytesIn(item);
    this.groupBytes.set(group, bytes);
    return { kind: 'backreference', group, bytes };
  }

  private literal(char: string): Ere {
    const set = byteSet((byte) => byte === char.charCodeAt(0));
    return { kind: 'byte', set: this.ignoreCase ? foldCase(set) : set };
  }
}

/** The bytes that a text of this expression may hold. */
function bytesIn(ere: Ere): Uint8Array {
  const set = new Uint8Array(256);
  const open: Ere[] = [ere];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (one.kind === 'cat' || one.kind === 'alt') open.push(...one.items);
    if (one.kind === 'repeat' || one.kind === 'group') open.push(one.item);
    const more = one.kind === 'byte' ? one.set : one.kind === 'backreference' ? one.bytes : undefined;
    if (more === undefined) continue;
    for (let byte = 0; byte < 256; byte++) if (more[byte] === 1) set[byte] = 1;
  }
  return set;
}
