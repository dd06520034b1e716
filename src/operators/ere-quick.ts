import type { Line } from './ere-automaton.ts';
import type { Assertion, Ere } from './ere-syntax.ts';

/** Ways to match a line that an engine may try. */
const maxWays = 2_000_000;

/**
 * V8's backtracker, compiled and so much faster than a search of ours, for expressions with back references of which
 * it is known how many ways it may have to try: single bytes, repeated or not, in groups that are not repeated. Where
 * such an expression matches, and whether, is the same to V8; how long the match is need not be.
 */
export class QuickSearch {
  readonly #expression: RegExp;
  /** Repeats whose count is not fixed: each may try all lengths up to that of the line. */
  readonly #repeats: number;

  private constructor(source: string, repeats: number) {
    this.#expression = new RegExp(source, 'g');
    this.#repeats = repeats;
  }

  /** Undefined where the expression is of another kind. */
  static of(ere: Ere): QuickSearch | undefined {
    const parts = ere.kind === 'cat' ? ere.items : [ere];
    const sources = parts.map(sourceOf);
    const repeats = parts.reduce((sum, part) => sum + repeatsIn(part), 0);
    return sources.includes(undefined) ? undefined : new QuickSearch(sources.join(''), repeats);
  }

  /** Whether V8 tries few ways to match a line. */
  isFor({ start, end }: Line): boolean {
    return (end - start + 2) ** (this.#repeats + 1) <= maxWays;
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

function repeatsIn(ere: Ere): number {
  if (ere.kind === 'repeat') return ere.min === ere.max ? 0 : 1;
  if (ere.kind === 'group') return repeatsIn(ere.item);
  return ere.kind === 'cat' ? ere.items.reduce((sum, item) => sum + repeatsIn(item), 0) : 0;
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
