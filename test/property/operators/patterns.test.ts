import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../../src/contracts/errors.ts';
import { compileEre } from '../../../src/operators/ere.ts';
import { parseEre } from '../../../src/operators/ere-parse.ts';
import { programOf } from '../../../src/operators/ere-program.ts';
import { matching } from '../../support/ere-matching.ts';

const directory = mkdtempSync(join(tmpdir(), 'patterns-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});
const env = { ...process.env, LC_ALL: 'C' };

/** GNU grep's own matcher takes exponential time for some patterns; those tell nothing. */
const oracleMs = 1_000;

/** For each line the texts that GNU grep finds in it, undefined for lines that do not match; null if it gives up. */
function oracle(
  pattern: string,
  lines: readonly string[],
  ignoreCase: boolean,
): (string[] | undefined)[] | null {
  const path = join(directory, 'lines');
  writeFileSync(path, Buffer.from(`${lines.join('\n')}\n`, 'latin1'));
  const flags = ignoreCase ? ['-i'] : [];
  const grep = (more: string): string[] | null => {
    const args = [more, ...flags, '-e', pattern, path];
    const run = spawnSync('grep', args, { env, maxBuffer: 2 ** 28, timeout: oracleMs });
    if (run.status === null) return null;
    if (run.status > 1) throw new Error(`grep: ${run.stderr.toString()}`);
    return run.stdout.toString('latin1').split('\n').slice(0, -1);
  };
  const matched = grep('-anE');
  const texts = matched && grep('-anoE');
  if (matched === null || texts === null) return null;
  const found: (string[] | undefined)[] = lines.map(() => undefined);
  for (const line of matched) found[Number(line.split(':', 1)[0]) - 1] = [];
  for (const match of texts) {
    const [number = ''] = match.split(':', 1);
    found[Number(number) - 1]?.push(match.slice(number.length + 1));
  }
  return found;
}

const ours = (pattern: string, lines: readonly string[], ignoreCase: boolean): (string[] | undefined)[] =>
  lines.map((line) => {
    const { doesMatch, found } = matching(pattern, line, { ignoreCase });
    if (!doesMatch) expect(found).toEqual([]);
    return doesMatch ? found : undefined;
  });

/**
 * The texts in one short line by trying every place where a match may begin and end, the longest first; undefined
 * where there is none. GNU grep errs on some patterns with back references: it has (.*)(.*)\\2\\1 match "a" as a whole.
 */
function spelledOut(pattern: string, line: string, ignoreCase: boolean): string[] | undefined {
  const isMatch = (start: number, end: number): boolean =>
    new RegExp(`(?<=^.{${start}})(?:${pattern})(?=.{${line.length - end}}$)`, ignoreCase ? 'is' : 's').test(
      line,
    );
  const found: string[] = [];
  let doesMatch = false;
  for (let start = 0; start <= line.length; start++) {
    let end = line.length;
    while (end >= start && !isMatch(start, end)) end--;
    if (end < start) continue;
    doesMatch = true;
    if (end === start) continue;
    found.push(line.slice(start, end));
    start = end - 1;
  }
  return doesMatch ? found : undefined;
}

const atom = fc.constantFrom(
  ...[
    'a',
    'b',
    'A',
    'ab',
    'é',
    '.',
    '[ab]',
    '[^a]',
    '[[:alpha:]]',
    '[a-c1]',
    '\\w',
    '\\W',
    '\\s',
    ' ',
    '1',
    '_',
  ],
);
const anchor = fc.constantFrom('^', '$', '\\<', '\\>', '\\b', '\\B');
const simple = fc.constantFrom(
  '*',
  '+',
  '?',
  '{0}',
  '{1}',
  '{2}',
  '{,2}',
  '{0,1}',
  '{1,3}',
  '{2,}',
  '{0,}',
  '{,}',
);

/** Patterns with nested and doubled repeats, empty alternatives and groups, and anchors anywhere. */
const { ere: arbEre } = fc.letrec<{ ere: string; item: string; group: string }>((tie) => ({
  ere: fc
    .array(fc.array(tie('item'), { maxLength: 4 }), { minLength: 1, maxLength: 3 })
    .map((branches) => branches.map((items) => items.join('')).join('|')),
  item: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    { weight: 4, arbitrary: atom },
    { weight: 1, arbitrary: anchor.map((one) => `(${one})`) },
    { weight: 2, arbitrary: fc.tuple(atom, simple).map((parts) => parts.join('')) },
    { weight: 3, arbitrary: tie('group') },
  ),
  group: fc
    .tuple(
      tie('ere'),
      fc.array(
        simple.filter((one) => one !== '?'),
        { maxLength: 2 },
      ),
      fc.boolean(),
    )
    .map(
      ([inner, repeats, isOptional]) =>
        `(${inner})${repeats.length > 0 || !isOptional ? repeats.join('') : '?'}`,
    ),
}));

const arbLine = fc.oneof(
  fc.string({
    unit: fc.constantFrom(
      'a',
      'b',
      'c',
      'A',
      'B',
      ' ',
      '_',
      '1',
      '\0',
      '\x80',
      '\xc3',
      '\xa9',
      '\xff',
      '\r',
      '\t',
    ),
    maxLength: 24,
  }),
  fc
    .tuple(fc.constantFrom('a', 'ab', 'aab', 'a b', '\xc3\xa9'), fc.integer({ min: 0, max: 60 }))
    .map(([unit, n]) => unit.repeat(n)),
);
const arbLines = fc.array(arbLine, { minLength: 1, maxLength: 30 });

describe('patterns against GNU grep', { timeout: 300_000 }, () => {
  it('matches the lines and finds the texts that grep does, however the pattern is nested', () => {
    fc.assert(
      fc.property(arbEre, arbLines, fc.boolean(), (pattern, lines, ignoreCase) => {
        const expected = oracle(pattern, lines, ignoreCase);
        const got = ours(pattern, lines, ignoreCase);
        if (expected !== null) expect(got).toEqual(expected);
      }),
      { numRuns: 250 },
    );
  });

  const piece = fc.constantFrom('a', 'b', '[ab]', '.', 'a*', '[ab]+', '.*', 'b?', 'a{1,2}', ' ', '\\b');
  const pieces = fc.array(piece, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(''));
  const referring = fc
    .tuple(
      pieces,
      pieces,
      fc.constantFrom('\\1', '\\2', '\\1\\2', '\\2 ?\\1', '\\1+'),
      fc.constantFrom('', '^', 'a'),
      fc.constantFrom('', '$', 'b'),
    )
    .map(
      ([first, second, references, before, after]) => `${before}(${first})(${second})${references}${after}`,
    );
  const shortLines = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', ' ', '\xff'), maxLength: 12 }), {
    minLength: 1,
    maxLength: 40,
  });

  it('matches the lines that grep does where groups are referred back to, or should do where it errs', () => {
    fc.assert(
      fc.property(referring, shortLines, fc.boolean(), (pattern, lines, ignoreCase) => {
        const expected = oracle(pattern, lines, ignoreCase);
        const got = ours(pattern, lines, ignoreCase);
        for (const [index, line] of lines.entries()) {
          if (expected !== null && isDeepStrictEqual(got[index], expected[index])) continue;
          expect(got[index]).toEqual(spelledOut(pattern, line, ignoreCase));
        }
      }),
      { numRuns: 250 },
    );
  });

  /** Texts in which the same could be read in very many ways. */
  const repetitive = fc
    .tuple(
      fc.constantFrom('a', 'b', 'ab', 'aab', 'a b', 'ba1'),
      fc.integer({ min: 200, max: 3_000 }),
      arbLine,
    )
    .map(([unit, times, end]) => unit.repeat(times) + end);

  it('takes steps for each byte and state alone, whatever pattern and line', () => {
    fc.assert(
      fc.property(arbEre, fc.oneof(repetitive, arbLine), (pattern, line) => {
        const states = programOf(parseEre(pattern, false).ere).nodes.length + 1;
        const { steps } = matching(pattern, line);
        expect(steps).toBeLessThanOrEqual(60 * states * (line.length + 40));
      }),
      { numRuns: 1_000 },
    );
  });

  it('compiles any pattern of the alphabet of patterns, or refuses it in one line', () => {
    const counted = fc
      .tuple(
        fc.constantFrom('', 'a', '(a|)', '()', '^', 'a*'),
        fc.array(fc.constantFrom('{0,32767}', '{1000}', '{2}', '{1,}', '*'), { maxLength: 60 }),
      )
      .map(([item, repeats]) => repeats.reduce<string>((inner, one) => `(${inner})${one}`, item));
    const soup = fc.string({
      unit: fc.constantFrom(...Array.from('()[]{}|*+?^$\\.,:-a19{}()')),
      maxLength: 400,
    });
    fc.assert(
      fc.property(fc.oneof(counted, soup), (pattern) => {
        try {
          compileEre(pattern, { ignoreCase: true });
        } catch (error) {
          if (!(error instanceof InvalidInputError)) throw error;
          expect(error.message).not.toContain('\n');
          expect(error.message.length).toBeLessThan(1_000);
        }
      }),
      { numRuns: 3_000 },
    );
  });
});
