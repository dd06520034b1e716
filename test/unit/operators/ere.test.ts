import { describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../../src/contracts/errors.ts';
import { compileEre } from '../../../src/operators/ere.ts';

/** What of `text` (Latin-1) the pattern matches. */
function found(pattern: string, text: string, ignoreCase = false): string[] {
  const spans = compileEre(pattern, { ignoreCase }).spans(Buffer.from(text, 'latin1'), 0, text.length);
  const texts: string[] = [];
  for (let span = spans.next(); span.done !== true; span = spans.next())
    texts.push(text.slice(...span.value));
  return texts;
}

const doesMatch = (pattern: string, text: string): boolean =>
  compileEre(pattern, { ignoreCase: false }).matches(Buffer.from(text, 'latin1'), 0, text.length);

describe('extended regular expressions', () => {
  it.each([
    ['a|ab', 'abab', ['ab', 'ab']],
    ['(a|ab)(c|bcd)', 'abcd', ['abcd']],
    ['(a?)(ab)?', 'ab', ['ab']],
    ['x*', 'axxb', ['xx']],
    ['(a|b|ab)*c', 'ababcab', ['ababc']],
  ])('takes the longest of the leftmost matches: %s in %s', (pattern, text, expected) => {
    expect(found(pattern, text)).toEqual(expected);
  });

  it.each([
    ['[]a]+', ']a[', [']a']],
    ['[^]a]', ']a[', ['[']],
    ['[\\d]+', '\\d1', ['\\d']],
    ['[[:digit:]_-]+', 'a1_-b', ['1_-']],
    ['[+--]+', '+,-.', ['+,-']],
    ['[[.-.]]', 'a-b', ['-']],
    ['[[=a=]b]+', 'cab', ['ab']],
    ['a{1', 'a{1', ['a{1']],
    ['a{,2}', 'aaa', ['aa', 'a']],
    ['a{2}{2}', 'aaaaa', ['aaaa']],
    ['\\<a', 'a ba _a', ['a']],
    ['a\\>', 'ab a', ['a']],
    ['a\\.b', 'axb a.b', ['a.b']],
    ['.', '\r\0\xff', ['\r', '\0', '\xff']],
    ['^a', 'aa', ['a']],
    ['é', '\xc3\xa9', ['\xc3\xa9']],
    ['(ab)\\1', 'ababab', ['abab']],
  ])('reads %s as grep does', (pattern, text, expected) => {
    expect(found(pattern, text)).toEqual(expected);
  });

  it('folds the case of ASCII letters only, and before it negates', () => {
    expect(found('[a-c]x', 'Bx', true)).toEqual(['Bx']);
    expect(found('[^a]', 'aAb', true)).toEqual(['b']);
    expect(found('\u00e9', '\xc3\x89', true)).toEqual([]);
  });

  it('matches in linear time what would ruin a backtracker', () => {
    const text = 'a'.repeat(100_000);
    expect(doesMatch('(a*)*b', text)).toBe(false);
    expect(doesMatch('(a|aa)+$', text)).toBe(true);
    expect(found('(a+)+b|a', 'a'.repeat(1_000))).toHaveLength(1_000);
  });

  it('stays right when it has to forget its states', () => {
    const text = Array.from({ length: 6_000 }, (_, at) => ((at * at + 3 * at) % 7 < 3 ? 'a' : 'b')).join('');
    expect(doesMatch('a.{14}c', text)).toBe(false);
    expect(doesMatch('(a|b)*a(a|b){14}$', text)).toBe(text.at(-15) === 'a');
  });

  it.each([
    ['a(', '"(" without'],
    ['a)', '")" without'],
    ['[a', '"[" without'],
    ['[z-a]', 'range'],
    ['[[:foo:]]', 'no known class'],
    ['[:alpha:]', '[[:alpha:]]'],
    ['a\\', 'backslash'],
    ['\\d+', '[0-9]'],
    ['\\t', '\\t'],
    ['(?:a)', '"(?"'],
    ['a*?', 'lazy'],
    ['*a', 'nothing to repeat'],
    ['a|+', 'nothing to repeat'],
    ['a{3,1}', '{3,1}'],
    ['a{99999}', '32767'],
    ['(a{1000}){1000}', 'too large'],
    ['(a)\\2', '\\2'],
    ['a\nb', 'one line'],
    ['('.repeat(300) + ')'.repeat(300), 'deeper'],
    ['a'.repeat(20_000), 'longer'],
  ])('refuses %j in one line that says what is wrong', (pattern, part) => {
    let error: unknown;
    try {
      compileEre(pattern, { ignoreCase: false });
    } catch (cause) {
      error = cause;
    }
    if (!(error instanceof InvalidInputError)) throw new Error('not refused', { cause: error });
    expect(error.message).toContain(part);
    expect(error.message).not.toContain('\n');
    expect(error.details).toEqual({ field: 'options.pattern' });
  });
});
