import type { Ere } from './ere-syntax.ts';

/**
 * The expression as a JavaScript one over Latin-1 text, for patterns with back references, which no automaton
 * matches. It takes the first alternative that fits, not the longest match as POSIX would have it, and may take
 * time exponential in the line.
 */
export function toRegExpSource(ere: Ere): string {
  switch (ere.kind) {
    case 'empty':
      return '(?:)';
    case 'byte':
      return setSource(ere.set);
    case 'assert':
      return assertions[ere.what];
    case 'cat':
      return ere.items.map(toRegExpSource).join('');
    case 'alt':
      return `(?:${ere.items.map(toRegExpSource).join('|')})`;
    case 'repeat':
      return `(?:${toRegExpSource(ere.item)}){${String(ere.min)},${ere.max === Infinity ? '' : String(ere.max)}}`;
    case 'group':
      return `(${toRegExpSource(ere.item)})`;
    case 'backreference':
      return `(?:\\${String(ere.group)})`;
  }
}

const assertions = {
  'line-start': '^',
  'line-end': '$',
  'word-start': '\\b(?=\\w)',
  'word-end': '\\b(?<=\\w)',
  'word-edge': '\\b',
  'no-word-edge': '\\B',
} as const;

function setSource(set: Uint8Array): string {
  const hex = (byte: number): string => `\\x${byte.toString(16).padStart(2, '0')}`;
  const members = Array.from(set.keys()).filter((byte) => set[byte] === 1);
  return `[${members.map(hex).join('')}]`;
}
