import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import {
  builtinJob,
  type BuiltinJobName,
  type BuiltinJobOptions,
} from '../../../src/operators/builtin-jobs.ts';
import { DirectoryStore } from '../../support/directory-store.ts';
import { partsOf, runInWorker } from '../../support/run-in-worker.ts';
import { draws } from '../../support/draws.ts';

const directory = mkdtempSync(join(tmpdir(), 'byte-paths-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});
const env = { ...process.env, LC_ALL: 'C' };

/** Words of all lengths, and what is none: separators of Unicode, NULs, bytes that are no UTF-8. */
const word = fc.oneof(
  fc.constantFrom('', 'a', 'ab', 'the', 'seventeen-bytes-1', 'x'.repeat(31), 'x'.repeat(32), 'x'.repeat(33)),
  fc.constantFrom('\xc2\xa0', '\xe2\x80\xa8', '\xff\xfe', '\0', 'caf\xe9', '\x85', '\x1c', 'w'.repeat(700)),
  fc.string({ unit: fc.constantFrom('a', 'b', '\0', '\xff', 'zz', 'common-beginning-'), maxLength: 6 }),
);
const line = fc
  .array(fc.tuple(word, fc.constantFrom(' ', '\t', '\v', '\f', '\r', '  ', '')), { maxLength: 9 })
  .map((words) => words.flat().join(''));
const text = fc
  .record({
    lines: fc.array(line, { maxLength: 30 }),
    isEnded: fc.boolean(),
    times: fc.constantFrom(1, 1, 20),
    beginning: fc.constantFrom('', 'https://example.org/of-all-lines/'),
  })
  .map(({ lines, isEnded, times, beginning }) => {
    const all = Array.from({ length: times }, () => lines.map((one) => beginning + one)).flat();
    return Buffer.from(all.join('\n') + (isEnded && all.length > 0 ? '\n' : ''), 'latin1');
  });
const job = fc.record({
  texts: fc.array(text, { minLength: 1, maxLength: 2 }),
  partitions: fc.integer({ min: 1, max: 4 }),
  pieces: fc.integer({ min: 1, max: 5 }),
  // The least makes each task spill, and merges go over scratch files.
  sortBytes: fc.constantFrom(2_000, 20_000, 40 * 1024 * 1024),
});
type Job = typeof job extends fc.Arbitrary<infer T> ? T : never;

/** The output of a job through a worker's own inputs, sorters, merges and outputs; the texts lie in files `in-…`. */
async function run(
  name: BuiltinJobName,
  { texts, partitions, pieces, sortBytes }: Job,
  more: Partial<BuiltinJobOptions> = {},
): Promise<{ readonly output: Buffer; readonly paths: readonly string[] }> {
  for (const left of readdirSync(directory)) rmSync(join(directory, left), { recursive: true });
  const objects = new DirectoryStore(directory);
  const refs = texts.map((_, index) => ({ bucket: 'bench', key: `in-${String(index)}` }));
  const paths = refs.map((ref) => objects.pathOf(ref));
  paths.forEach((path, index) => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, texts[index] ?? '');
  });
  const spec = builtinJob(name, {
    inputs: refs.map(({ bucket, key }) => `s3://${bucket}/${key}`),
    splitBytes: Math.ceil(Math.max(1, ...texts.map(({ length }) => length)) / pieces),
    ...(name === 'grep' ? {} : { partitions }),
    ...more,
  });
  const stages = await runInWorker(objects, spec, directory, sortBytes);
  const parts = partsOf(stages.at(-1)?.tasks ?? 0).map((ref) => objects.pathOf(ref));
  return {
    output: Buffer.concat(parts.filter((path) => existsSync(path)).map((path) => readFileSync(path))),
    paths,
  };
}

describe('jobs on bytes through a worker, against coreutils', { timeout: 300_000 }, () => {
  it('sort gives the bytes of LC_ALL=C sort', async () => {
    await fc.assert(
      fc.asyncProperty(job, async (input) => {
        const { output, paths } = await run('sort', input);
        const expected = execFileSync('sort', paths, { env });
        expect(output.toString('latin1')).toBe(expected.toString('latin1'));
      }),
      { numRuns: draws(25) },
    );
  });

  it('wordcount counts what tr, sort and uniq count, file by file', async () => {
    await fc.assert(
      fc.asyncProperty(job, async (input) => {
        const { output, paths } = await run('wordcount', input);
        const script = String.raw`for f; do tr -s '[:space:]' '\n' < "$f"; echo; done | grep -av '^$' | sort | uniq -c`;
        const printed = spawnSync('sh', ['-c', script, 'sh', ...paths], { env }).stdout.toString('latin1');
        const counted = [...printed.matchAll(/^ *(\d+) ([^\n]*)\n/gm)].map(
          ([, count, found]) => `${String(found)}\t${String(count)}`,
        );
        expect(output.toString('latin1').split('\n').slice(0, -1).sort()).toEqual(counted.sort());
      }),
      { numRuns: draws(25) },
    );
  });

  it('grep gives the bytes of grep -ahE', async () => {
    const pattern = fc.constantFrom('the', 'b.*a', '^$', 'x{32}', '[[:space:]]$', '(ab?)+z');
    await fc.assert(
      fc.asyncProperty(job, pattern, fc.boolean(), async (input, regex, invert) => {
        const { output, paths } = await run('grep', input, { pattern: regex, invert });
        const found = spawnSync('grep', ['-ahE', ...(invert ? ['-v'] : []), '-e', regex, ...paths], { env });
        expect(output.toString('latin1')).toBe(found.stdout.toString('latin1'));
      }),
      { numRuns: draws(25) },
    );
  });
});
