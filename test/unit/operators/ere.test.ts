import { describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../../src/contracts/errors.ts';
import { compileEre } from '../../../src/operators/ere.ts';
import { Work } from '../../../src/operators/ere-work.ts';
import { TooManyStepsError } from '../../../src/operators/ere-references.ts';
import { matching } from '../../support/ere-matching.ts';

/** What of `text` (Latin-1) the pattern matches. */
function found(pattern: string, text: string, ignoreCase = false): string[] {
  return matching(pattern, text, { ignoreCase }).found;
}

const doesMatch = (pattern: string, text: string): boolean => matching(pattern, text).doesMatch;

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

  it.each([
    ['a+b|a', 'a'.repeat(20_000), 20_000],
    ['(a|b)*c|a', 'ab'.repeat(10_000), 10_000],
    ['a{1,50}b|\\ba|a', 'a'.repeat(20_000), 20_000],
    ['(a.*z)?a', `${'a'.repeat(9_000)}z${'a'.repeat(9_000)}`, 9_000],
  ])('finds all matches of %s in steps that grow as the line does', (pattern, text, count) => {
    const half = matching(pattern, text.slice(0, text.length / 2));
    const whole = matching(pattern, text);
    expect(whole.found).toHaveLength(count);
    expect(whole.steps).toBeLessThan(2.5 * half.steps + 100_000);
    expect(whole.steps).toBeLessThan(100 * text.length + 200_000);
  });

  it('finds the same reading lines from their end as from their begin, through all their pieces', () => {
    // So many near misses that it is read from its end, in more pieces than one, and then matches of every length.
    const near = 'a'.repeat(9_000);
    const text = `${near} ${near}b ab aab b ${'a'.repeat(7_000)}b a`;
    const texts = found('a+b|a', text);
    expect(texts).toEqual([
      ...Array.from(near, () => 'a'),
      `${near}b`,
      'ab',
      'aab',
      `${'a'.repeat(7_000)}b`,
      'a',
    ]);
    expect(found('\\<a+\\>b|\\<a|a\\>|a+c', near)).toEqual(['a', 'a']);
  });

  it('lets others have their turn within a line, and goes on where it was', () => {
    let seed = 1;
    const random = Array.from({ length: 60_000 }, () => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      return (seed >>> 16) % 2 === 0 ? 'a' : 'b';
    }).join('');
    const { doesMatch, rests } = matching('a.{900}c', random);
    expect(doesMatch).toBe(false);
    expect(rests).toBeGreaterThan(5);
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
    ['(a{1000}){1000}', '10000 states'],
    ['(((a{1000}){1000}){1000})', '10000 states'],
    ['a{0,32767}', '10000 states'],
    ['(a|){200}{200}', '10000 states'],
    ['((|){0,32767}){32767}', '10000 states'],
    ['((a{2}){2}{2}{2}){9}{9}{9}{9}', '10000 states'],
    [`a{0,${'9'.repeat(400)}}`, '32767'],
    [`a{${'1'.repeat(9_000)}}`, '32767'],
    ['[[:a'.repeat(2_000), '"[:"'],
    [`[[:${'x'.repeat(5_000)}:]]`, 'no known class'],
    ['a'.repeat(200_000), '10000 bytes'],
    ['(a)|\\9', '\\9'],
    ['a\ud800', 'surrogate'],
    ['(a)\\2', '\\2'],
    ['a\nb', 'one line'],
    ['('.repeat(300) + ')'.repeat(300), 'deeper'],
    ['a'.repeat(20_000), 'longer'],
  ])('refuses wrong patterns in one line that says %#: what is wrong', (pattern, part) => {
    let error: unknown;
    try {
      compileEre(pattern, { ignoreCase: false });
    } catch (cause) {
      error = cause;
    }
    if (!(error instanceof InvalidInputError)) throw new Error('not refused', { cause: error });
    expect(error.message).toContain(part);
    expect(error.message).not.toContain('\n');
    expect(error.message.length).toBeLessThan(500);
    expect(error.details).toEqual({ field: 'options.pattern' });
  });

  it.each([
    ['((){32767}){32767}', '', ['']],
    [`${'('.repeat(200)}${')*'.repeat(200)}`, 'a', []],
    [`a${'*+?'.replace('?', '').repeat(3_000)}`, 'baab', ['aa']],
    [`a${'{1}'.repeat(3_000)}`, 'aa', ['a', 'a']],
    ['(a*)*', 'aab', ['aa']],
    ['x{,5}', 'xxxxxxx', ['xxxxx', 'xx']],
    ['x{0005}', 'xxxxxx', ['xxxxx']],
    [Array.from({ length: 2_000 }, (_, at) => at).join('|'), 'x1999', ['1999']],
    ['(a|'.repeat(190) + ')'.repeat(190), 'aa', ['a', 'a']],
    ['[[:alpha:]]'.repeat(800), 'a'.repeat(801), ['a'.repeat(800)]],
  ])('is ready at once for what looks large, case %#', (pattern, text, expected) => {
    expect(doesMatch(pattern, text)).toBe(true);
    expect(found(pattern, text)).toEqual(expected.filter((one) => one !== ''));
  });
});

describe('back references', () => {
  it.each([
    ['(a*)\\1', 'aaaaa', ['aaaa']],
    ['(a|ab)(b|)\\1', 'abab', ['abab']],
    ['(a)|b\\1', 'b', []],
    ['((a)|b)*\\2', 'aba', ['aba']],
    ['(.)(.)\\2\\1', 'xabbay', ['abba']],
    ['\\<(.+) \\1\\>', 'the the cat', ['the the']],
    ['(\u00ff+)-\\1', '\xc3\xbf\xc3\xbf-\xc3\xbf', ['\xc3\xbf-\xc3\xbf']],
  ])('finds the longest of the leftmost matches: %s in %s', (pattern, text, expected) => {
    expect(found(pattern, text)).toEqual(expected);
  });

  it('finds the same on lines that are short and on lines that are long', () => {
    const long = 'x '.repeat(3_000);
    expect(found('([a-w]+) \\1', 'the the cat')).toEqual(['the the']);
    expect(found('([a-w]+) \\1', `${long}the the cat`)).toEqual(['the the']);
    expect(doesMatch('(a+)(b*)-\\2\\1', 'aab-ba')).toBe(true);
    expect(doesMatch('(a+)(b*)-\\2\\1', `${long}aab-ba`)).toBe(true);
    // The first b is better left to the second group: only so is the c reached.
    expect(found('(ab?)(b?)\\2c?', 'abbc')).toEqual(['abbc']);
  });

  it('compares texts in either case where case is ignored, in ASCII only', () => {
    expect(found('(ab)\\1', 'abABaB', true)).toEqual(['abAB']);
    expect(found('(\u00e9)\\1', '\xc3\xa9\xc3\x89', true)).toEqual([]);
  });

  it('tells at once what a backtracker would never', () => {
    expect(doesMatch('(a|a)*\\1!', 'a'.repeat(41))).toBe(false);
    expect(matching('(a|a)*\\1!', 'a'.repeat(41)).steps).toBeLessThan(10_000);
    expect(doesMatch('(a|a)*\\1!', `${'a'.repeat(41)}!`)).toBe(true);
    expect(doesMatch('((a*)*)*\\2b!', `${'a'.repeat(60)}b`)).toBe(false);
    expect(doesMatch('(a|aa)*\\1$', 'a'.repeat(60))).toBe(true);
  });

  it('gives up after a limited number of steps', () => {
    // An odd number of letters never splits into halves, and there are millions of ways to try.
    const line = `${'a'.repeat(401)}b`;
    expect(doesMatch('^(a*)(a*)(a*)\\3\\2\\1b$', `a${line}`)).toBe(true);
    expect(() => doesMatch('^(a*)(a*)(a*)\\3\\2\\1b$', line)).toThrow(TooManyStepsError);
    expect(() => found('^(a*)(a*)(a*)\\3\\2\\1b$', line)).toThrow(/more than 2040200 steps.*back references/);
  });

  it('lets others have their turn between lines that are soon done with', () => {
    const bytes = Buffer.from('ab'.repeat(50));
    const pattern = '(.*)(.*)\\1\\2x';
    const matcher = compileEre(pattern, { ignoreCase: false });
    const finder = compileEre(pattern, { ignoreCase: false });
    let [rests, spanRests] = [0, 0];
    for (let line = 0; line < 100; line++) {
      let answer = matcher.matches(bytes, 0, bytes.length);
      for (; answer === undefined; answer = matcher.resume()) rests++;
      expect(answer).toBe(false);
      const spans = finder.spans(bytes, 0, bytes.length);
      for (let span = spans.next(); span.done !== true; span = spans.next()) spanRests++;
    }
    expect(rests).toBeGreaterThan(20);
    expect(spanRests).toBeGreaterThan(20);
  });

  it.each([
    ['much to read at each place', '(.).{80}\\1c', `${'ab'.repeat(40_000)}c`, false],
    ['much to ask at each place', `(.*)${'\\B'.repeat(300)}c\\1!`, `${'b'.repeat(1_000)}c`, false],
    [
      'some ways to try at each place',
      `${'(a|a)'.repeat(6)}\\1\\2!$`,
      `${'a'.repeat(50_000)}!`,
      TooManyStepsError,
    ],
  ])('lets others have their turn within a line with %s, or soon after', (_, pattern, line, expected) => {
    const work = new Work();
    const matcher = compileEre(pattern, { ignoreCase: false, work });
    const bytes = Buffer.from(line);
    let last = 0;
    const ask = (): boolean | undefined => {
      last = work.steps;
      return last === 0 ? matcher.matches(bytes, 0, bytes.length) : matcher.resume();
    };
    const outcome = (): boolean | undefined => {
      let answer = ask();
      for (; answer === undefined; answer = ask()) expect(work.steps - last).toBeLessThan(2_000_000);
      return answer;
    };
    if (expected === false) expect(outcome()).toBe(false);
    else expect(outcome).toThrow(expected);
    expect(work.steps - last).toBeLessThan(2_000_000);
  });
});
