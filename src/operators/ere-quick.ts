import type { Line } from './ere-automaton.ts';
import type { Assertion, Ere } from './ere-syntax.ts';

/** Ways to match a line that an engine may try, and bytes and parts that it may look at: some tenths of a second. */
const maxWays = 2_000_000;
const maxLooks = 400_000_000;
/** Looks of V8 that take the time of one step of ours; bytes that it compares in the time of one look. */
const looksPerStep = 16;
const comparedPerLook = 16;
/** Parts of an expression: V8 is given up to 1 KB for each. */
const maxParts = 200;

/**
 * V8's backtracker, compiled and so much faster than a search of ours, for expressions with back references of which
 * it is known how many ways it may have to try: single bytes, repeated or not, in groups that are not repeated. Where
 * such an expression matches, and whether, is the same to V8; how long the match is need not be.
 */
export class QuickSearch {
  readonly #expression: RegExp;
  readonly #size: Size;

  private constructor(source: string, size: Size) {
    this.#expression = new RegExp(source, 'g');
    this.#size = size;
  }

  /** Undefined where the expression is of another kind. */
  static of(ere: Ere): QuickSearch | undefined {
    const parts = ere.kind === 'cat' ? ere.items : [ere];
    const size = sizeOf(ere);
    if (size.parts > maxParts) return undefined;
    const sources = parts.map(sourceOf);
    return sources.includes(undefined) ? undefined : new QuickSearch(sources.join(''), size);
  }

  /** The most steps, of those that `Work` counts, to search a line; undefined where they are more than few. */
  steps({ start, end }: Line): number | undefined {
    const { parts, fixed, repeats, references } = this.#size;
    const length = end - start;
    const ways = (length + 2) ** (repeats + 1);
    const compared = Math.min(length, references * (repeats === 0 ? fixed : length));
    const looks = ways * (parts + Math.min(length, fixed) + compared / comparedPerLook);
    return ways <= maxWays && looks <= maxLooks ? Math.ceil(looks / looksPerStep) : undefined;
  }

  /** The first place at or after `from` where a match begins; −1 where none does. `text` is the line in Latin-1. */
  first(text: string, from: number): number {
    this.#expression.lastIndex = from;
    return this.#expression.exec(text)?.index ?? -1;
  }
}

function sourceOf(ere: Ere): string | undefined {
  switch (ere.kind) {
    case 'byte':
      return setSource(ere.set);
    case 'assert':
      return assertions[ere.what];
    case 'backreference':
      return `(?:\\${String(ere.group)})`;
    case 'repeat': {
      if (ere.item.kind !== 'byte') return undefined;
      return `${setSource(ere.item.set)}{${String(ere.min)},${ere.max === Infinity ? '' : String(ere.max)}}`;
    }
    case 'group': {
      const sources = (ere.item.kind === 'cat' ? ere.item.items : [ere.item]).map(sourceOf);
      return sources.includes(undefined) ? undefined : `(${sources.join('')})`;
    }
    default:
      return undefined;
  }
}

/** What decides how long a search may take. */
interface Size {
  /** Parts of the expression: bytes, assertions, references, repeats. */
  readonly parts: number;
  /** Bytes that each way reads at least, references left out. */
  readonly fixed: number;
  /** Repeats whose count is not fixed: each may try all lengths up to that of the line. */
  readonly repeats: number;
  readonly references: number;
}

function sizeOf(ere: Ere): Size {
  const one = { parts: 1, fixed: 0, repeats: 0, references: 0 };
  switch (ere.kind) {
    case 'byte':
      return { ...one, fixed: 1 };
    case 'backreference':
      return { ...one, references: 1 };
    case 'repeat':
      return { ...one, fixed: ere.min, repeats: ere.min === ere.max ? 0 : 1 };
    case 'group':
      return sizeOf(ere.item);
    case 'cat':
      return ere.items.map(sizeOf).reduce(
        (sum, size) => ({
          parts: sum.parts + size.parts,
          fixed: sum.fixed + size.fixed,
          repeats: sum.repeats + size.repeats,
          references: sum.references + size.references,
        }),
        one,
      );
    default:
      return one;
  }
}

const assertions: Readonly<Record<Assertion, string>> = {
  'line-start': '^',
  'line-end': '$',
  'word-start': '\\b(?=\\w)',
  'word-end': '\\b(?<=\\w)',
  'word-edge': '\\b',
  'no-word-edge': '\\B',
};

function setSource(set: Uint8Array): string {
  const hex = (byte: number): string => `\\x${byte.toString(16).padStart(2, '0')}`;
  const members = Array.from(set.keys()).filter((byte) => set[byte] === 1);
  return `[${members.map(hex).join('')}]`;
}
