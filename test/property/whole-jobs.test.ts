import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BuiltinJobOptions, builtinJob, type BuiltinJobName } from '../../src/operators/builtin-jobs.ts';
import { coreutils, countWords } from '../support/coreutils.ts';
import { type HostedJob, MemoryHost } from '../support/memory-host.ts';

/** Bytes that texts trip over: line ends of both kinds, NULs, tabs, invalid UTF-8, few distinct words. */
const word = fc.constantFrom(
  'a',
  'b',
  'the',
  'Zebra',
  'é',
  '\u0000',
  '\xff',
  '10',
  '-',
  'x'.repeat(300),
  'a.b',
  '[',
);
const gap = fc.constantFrom(' ', '\n', '\n\n', '\r\n', '\t', '\v', '\f', '  ', '\r');
const text = fc
  .array(fc.tuple(word, gap), { maxLength: 60 })
  .chain((pairs) =>
    fc.boolean().map((end) => Buffer.from(pairs.flat().join('') + (end ? '' : 'last'), 'latin1')),
  );
const texts = fc.array(fc.oneof(text, fc.constant(Buffer.alloc(0))), { minLength: 1, maxLength: 4 });
const shape = fc.record({
  splitBytes: fc.constantFrom(7, 64, 1_000_000),
  partitions: fc.integer({ min: 1, max: 5 }),
});

async function runJob(
  name: BuiltinJobName,
  files: readonly Buffer[],
  options: Partial<BuiltinJobOptions>,
): Promise<HostedJob> {
  const host = new MemoryHost({ sortMemoryBytes: 64 * 1024 });
  const inputs = [];
  for (const [index, body] of files.entries()) inputs.push(await host.put(`in/${index}`, body));
  const hosted = await host.run(builtinJob(name, { inputs, ...options }));
  expect(hosted.job.error).toBeUndefined();
  expect(hosted.keys.filter((key) => !key.startsWith(`output/${hosted.job.jobId}/`))).toEqual([]);
  return hosted;
}

const lines = (output: Buffer): string[] => output.toString('latin1').split('\n').slice(0, -1);
const endLine = (file: Buffer): Buffer =>
  file.length === 0 || file.at(-1) === 10 ? file : Buffer.concat([file, Buffer.from('\n')]);

describe('whole jobs', () => {
  it('wordcount gives the counts of tr, sort and uniq', async () => {
    await fc.assert(
      fc.asyncProperty(texts, shape, async (files, options) => {
        const { output } = await runJob('wordcount', files, options);
        expect(lines(output).toSorted()).toEqual(countWords(files).split('\n').slice(0, -1).toSorted());
      }),
      { numRuns: 40 },
    );
  });

  it('sort gives the bytes of sort', async () => {
    await fc.assert(
      fc.asyncProperty(texts, shape, async (files, options) => {
        const { output } = await runJob('sort', files, options);
        expect(output.equals(coreutils('sort', [], Buffer.concat(files.map(endLine))))).toBe(true);
      }),
      { numRuns: 40 },
    );
  });

  it('grep gives the bytes of grep, in the order of files', async () => {
    const pattern = fc.constantFrom('a', '^the', 'a.b', '[0-9]+$', 'x{3,}', '(b|the) ', '\\[', '', 'Z.*a');
    await fc.assert(
      fc.asyncProperty(texts, shape, pattern, async (files, options, each) => {
        const { output } = await runJob('grep', files, { splitBytes: options.splitBytes, pattern: each });
        const expected = coreutils('grep', ['-ahE', '-e', each], Buffer.concat(files.map(endLine)));
        expect(output.equals(expected)).toBe(true);
      }),
      { numRuns: 40 },
    );
  });

  it('carries lines of a megabyte and more partitions than keys', async () => {
    const long = Buffer.concat([
      Buffer.alloc(1_100_000, 'y'),
      Buffer.from('\nshort\n'),
      Buffer.alloc(1_000_000, 'x'),
    ]);
    const sorted = await runJob('sort', [long, Buffer.from('one\n')], { partitions: 6, splitBytes: 100_000 });
    expect(
      sorted.output.equals(coreutils('sort', [], Buffer.concat([endLine(long), Buffer.from('one\n')]))),
    ).toBe(true);
    const counted = await runJob('wordcount', [Buffer.from('key key\nkey')], { partitions: 7 });
    expect(counted.output.toString()).toBe('key\t3\n');
  });

  it('gives the same output when launches are delivered twice, late or never', async () => {
    await fc.assert(
      fc.asyncProperty(
        texts,
        fc.array(fc.constantFrom('once', 'twice', 'never'), { minLength: 40, maxLength: 40 }),
        async (files, fates) => {
          const host = new MemoryHost();
          let launch = 0;
          host.deliver = async (run, payload) => {
            const fate = payload.attemptId.endsWith('/0')
              ? (fates[launch++ % fates.length] ?? 'once')
              : 'once';
            if (fate === 'never') return;
            await Promise.all(fate === 'twice' ? [run(), run()] : [run()]);
          };
          const inputs = [];
          for (const [index, body] of files.entries()) inputs.push(await host.put(`in/${index}`, body));
          const { output, job, keys } = await host.run(
            builtinJob('wordcount', { inputs, splitBytes: 64, partitions: 2 }),
          );
          expect(job.state).toBe('succeeded');
          expect(lines(output).toSorted()).toEqual(countWords(files).split('\n').slice(0, -1).toSorted());
          expect(keys.filter((key) => !key.startsWith(`output/${job.jobId}/`))).toEqual([]);
        },
      ),
      { numRuns: 8 },
    );
  });

  it('fails on a bad record with file and line, and leaves nothing', async () => {
    const host = new MemoryHost();
    const good = await host.put('in/good.csv', Buffer.from('k,v\na,1\n'));
    const bad = await host.put('in/bad.csv', Buffer.from('k,v\na,1\nb,2,3\n'));
    const spec = builtinJob('groupby', {
      inputs: [good, bad],
      format: 'csv',
      key: 'k',
      aggregates: [{ op: 'count' }],
    });
    const { job, keys } = await host.run(spec);
    expect(job.state).toBe('failed');
    expect(job.error?.message).toMatch(/in\/bad\.csv:3: /);
    expect(keys).toEqual([]);
    const skipping = await host.run(
      builtinJob('groupby', {
        inputs: [good, bad],
        format: 'csv',
        key: 'k',
        aggregates: [{ op: 'count' }],
        onBadRecord: 'skip',
      }),
    );
    expect(skipping.job).toMatchObject({ state: 'succeeded', counters: { skippedRecords: 1 } });
  });
});
