import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { builtinJob } from '../../../src/operators/builtin-jobs.ts';
import type { BuiltinJobName, BuiltinJobOptions } from '../../../src/operators/builtin-jobs.ts';
import { runJob } from '../../support/operator-bench.ts';

const directory = mkdtempSync(join(tmpdir(), 'text-jobs-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});
const env = { ...process.env, LC_ALL: 'C' };

/** Lines as users have them and as they should not: blanks, CRLF, NULs, invalid UTF-8, few distinct ones. */
const arbLine = fc.oneof(
  fc.constantFrom(
    '',
    'the',
    'the cat',
    'a\tb',
    ' lead',
    'trail ',
    'cat\r',
    '\0nul\0',
    '\xff\xfe',
    'caf\xe9 caf\xe9',
    'abcabc',
  ),
  fc.string({
    unit: fc.constantFrom('a', 'b', 'c', ' ', '\t', '\v', '\f', '\r', '\0', '\x80', '\xff', '1', '_'),
    maxLength: 30,
  }),
);
const arbText = fc
  .record({ lines: fc.array(arbLine, { maxLength: 60 }), isEnded: fc.boolean() })
  .map(({ lines, isEnded }) =>
    Buffer.from(lines.join('\n') + (isEnded && lines.length > 0 ? '\n' : ''), 'latin1'),
  );
const arbCase = fc.record({
  texts: fc.array(arbText, { minLength: 1, maxLength: 3 }),
  partitions: fc.integer({ min: 1, max: 12 }),
  splitBytes: fc.integer({ min: 1, max: 300 }),
  seed: fc.integer(),
});
type Case = typeof arbCase extends fc.Arbitrary<infer T> ? T : never;

const wordcountOracle = (path: string): string =>
  execFileSync('sh', ['-c', String.raw`tr -s '[:space:]' '\n' < "$0" | sort | uniq -c`, path], {
    env,
    encoding: 'latin1',
  });

async function run(
  name: BuiltinJobName,
  { texts, partitions, splitBytes, seed }: Case,
  more: Partial<BuiltinJobOptions>,
): Promise<Buffer[]> {
  const files = Object.fromEntries(texts.map((text, at) => [`s3://bucket/file-${String(at)}`, text]));
  const inputs = Object.keys(files);
  const usesPartitions = name !== 'grep' || more.count === true;
  const job = builtinJob(name, { inputs, splitBytes, ...(usesPartitions ? { partitions } : {}), ...more });
  return runJob(job, files, seed);
}

function save(texts: readonly Buffer[]): string[] {
  return texts.map((text, at) => {
    const path = join(directory, `file-${String(at)}`);
    writeFileSync(path, text);
    return path;
  });
}

const linesSorted = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .sort();

describe('text jobs against coreutils', { timeout: 120_000 }, () => {
  it('wordcount counts what tr, sort and uniq count', async () => {
    await fc.assert(
      fc.asyncProperty(arbCase, async (input) => {
        const expected = new Map<string, number>();
        for (const path of save(input.texts)) {
          for (const line of wordcountOracle(path).split('\n')) {
            const match = /^ *(\d+) ([^]+)$/.exec(line);
            if (match?.[2] !== undefined)
              expected.set(match[2], (expected.get(match[2]) ?? 0) + Number(match[1]));
          }
        }
        const got = Buffer.concat(await run('wordcount', input, {})).toString('latin1');
        expect(linesSorted(got)).toEqual(
          [...expected].map(([word, count]) => `${word}\t${String(count)}`).sort(),
        );
      }),
      { numRuns: 60 },
    );
  });

  it('sort gives the bytes of LC_ALL=C sort, its parts laid end to end', async () => {
    await fc.assert(
      fc.asyncProperty(arbCase, async (input) => {
        const expected = execFileSync('sort', save(input.texts), { env });
        const parts = await run('sort', input, {});
        expect(Buffer.concat(parts).toString('latin1')).toBe(expected.toString('latin1'));
        expect(parts).toHaveLength(input.partitions);
      }),
      { numRuns: 60 },
    );
  });

  it('carries lines of a megabyte', async () => {
    const long = (end: string): string => `${'ab '.repeat(350_000)}${end}`;
    const texts = [
      Buffer.from(`${long('y')}\nb\n${long('x')}\r\n\n`),
      Buffer.alloc(0),
      Buffer.from(long('x')),
    ];
    const input = { texts, partitions: 3, splitBytes: 100_000, seed: 1 };
    const sorted = execFileSync('sort', save(texts), { env, maxBuffer: 2 ** 24 });
    expect(Buffer.concat(await run('sort', input, {})).equals(sorted)).toBe(true);
    const found = execFileSync('grep', ['-ahE', 'x.?$', ...save(texts)], { env, maxBuffer: 2 ** 24 });
    expect(Buffer.concat(await run('grep', input, { pattern: 'x.?$' })).equals(found)).toBe(true);
    const words = linesSorted(Buffer.concat(await run('wordcount', input, {})).toString());
    expect(words).toEqual(['ab\t1050000', 'b\t1', 'x\t2', 'y\t1']);
  });

  const pattern = fc.constantFrom(
    'the',
    '^',
    '$',
    '',
    'a|ab',
    '(a|ab)(c|bcd)?',
    '[[:space:]]',
    '^[^a]*$',
    'a.c',
    'b{2,}',
    '[a-c]+',
    '\\<cat\\>',
    '^a?b*$',
    'caf.',
    'c$',
    '\\bthe',
    '(^| )a',
    '(a|b)*c',
    'a+|(b|c)+1',
    '[^[:alpha:]]+',
    '\\w+',
    '\\W+',
    '(a*)(ab)*(b*)',
    'x*',
    '.',
    '(ab?c?)+',
    '\\s\\S',
    '()',
    'a{0}b',
    '(a|b){1,3}',
    '\\Bt',
    '[]a]',
    '(abc)\\1',
  );

  it('grep gives the bytes of grep -ahE over the files in order', async () => {
    await fc.assert(
      fc.asyncProperty(
        arbCase,
        pattern,
        fc.boolean(),
        fc.boolean(),
        async (input, regex, ignoreCase, invert) => {
          const flags = [...(ignoreCase ? ['-i'] : []), ...(invert ? ['-v'] : [])];
          const oracle = spawnSync('grep', ['-ahE', ...flags, '-e', regex, ...save(input.texts)], { env });
          expect(oracle.status).toBeLessThan(2);
          const got = Buffer.concat(await run('grep', input, { pattern: regex, ignoreCase, invert }));
          expect(got.toString('latin1')).toBe(oracle.stdout.toString('latin1'));
        },
      ),
      { numRuns: 300 },
    );
  });

  it('grep with count gives the matches of grep -o by falling frequency, then by their bytes', async () => {
    await fc.assert(
      fc.asyncProperty(arbCase, pattern, fc.boolean(), async (input, regex, ignoreCase) => {
        const flags = ignoreCase ? ['-i'] : [];
        const oracle = spawnSync('grep', ['-aohE', ...flags, '-e', regex, ...save(input.texts)], { env });
        const counts = new Map<string, number>();
        for (const match of oracle.stdout.toString('latin1').split('\n').slice(0, -1)) {
          counts.set(match, (counts.get(match) ?? 0) + 1);
        }
        const expected = [...counts]
          .sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
          .map(([text, count]) => `${text}\t${String(count)}\n`);
        const got = Buffer.concat(await run('grep', input, { pattern: regex, ignoreCase, count: true }));
        expect(got.toString('latin1')).toBe(expected.join(''));
      }),
      { numRuns: 300 },
    );
  });
});
