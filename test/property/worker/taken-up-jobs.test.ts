import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  type BuiltinJobOptions,
  builtinJob,
  type BuiltinJobName,
} from '../../../src/operators/builtin-jobs.ts';
import { draws } from '../../support/draws.ts';
import { InterruptedJob } from '../../support/interrupted-job.ts';

/** What lines are made of, by the format of the file. */
const words = fc.constantFrom(
  'a',
  'be',
  'é',
  '\u{1f600}',
  '0',
  '-1',
  '1e3',
  'aa',
  'zz top',
  'q'.repeat(3_000),
  '__proto__',
);
const seeds = fc.array(words, { minLength: 1, maxLength: 12 });
type Format = 'text' | 'csv' | 'ndjson';

interface DrawnFile {
  readonly seeds: readonly string[];
  readonly kilobytes: number;
  readonly isCrlf: boolean;
  readonly hasEnd: boolean;
  readonly hasMark: boolean;
  readonly isPacked: boolean;
  readonly huge: number;
  readonly bad: number;
}
const arbFile: fc.Arbitrary<DrawnFile> = fc.record({
  seeds,
  kilobytes: fc.constantFrom(0, 0.01, 3, 700, 1_500),
  isCrlf: fc.boolean(),
  hasEnd: fc.boolean(),
  hasMark: fc.boolean(),
  isPacked: fc.constantFrom(false, false, false, true),
  huge: fc.constantFrom(0, 0, 0, 300_000, 900_000),
  bad: fc.constantFrom(0, 0, 0, 97),
});

/** A file's text; every `bad`-th line is one that its format has not. */
function textOf(file: DrawnFile, format: Format): string {
  const eol = file.isCrlf ? '\r\n' : '\n';
  const lines: string[] = format === 'csv' ? ['k,v,"w"'] : [];
  let size = lines.join().length;
  for (let line = 0; size < file.kilobytes * 1_024; line++) {
    const one = file.seeds[line % file.seeds.length] ?? '';
    const other = file.seeds[(line * 7) % file.seeds.length] ?? '';
    const long = line === 40 && file.huge > 0 ? 'h'.repeat(file.huge) : '';
    const isBad = file.bad > 0 && line % file.bad === file.bad - 1;
    const text =
      format === 'text'
        ? `${one} ${String(line % 91)} ${other}${long}`
        : format === 'csv'
          ? isBad
            ? `too,many,fields,${one}`
            : `"${one}",${String(line % 5 === 0 ? '' : (line % 113) - 7.5)},${other}${long}`
          : isBad
            ? '{"k":'
            : JSON.stringify({
                k: line % 11 === 0 ? null : one,
                v: (line % 113) - 7.5,
                w: `${other}${long}`,
              });
    lines.push(text);
    size += text.length + 1;
  }
  const mark = file.hasMark && lines.length > 0 ? '\ufeff' : '';
  return `${mark}${lines.join(eol)}${file.hasEnd && lines.length > 0 ? eol : ''}`;
}

interface DrawnJob {
  readonly name: BuiltinJobName;
  readonly options: Omit<BuiltinJobOptions, 'inputs'>;
  readonly format: Format;
}
const agg = [
  { op: 'count' },
  { op: 'count', column: 'v', as: 'n' },
  { op: 'sum', column: 'v' },
  { op: 'min', column: 'v' },
  { op: 'max', column: 'v' },
  { op: 'avg', column: 'v' },
] as const;
const jobs: readonly DrawnJob[] = [
  { name: 'wordcount', options: {}, format: 'text' },
  { name: 'grep', options: { pattern: 'a|9$' }, format: 'text' },
  { name: 'grep', options: { pattern: 'A|9$', ignoreCase: true, invert: true }, format: 'text' },
  { name: 'grep', options: { pattern: '[a-z]+', count: true }, format: 'text' },
  { name: 'sort', options: {}, format: 'text' },
  { name: 'groupby', options: { key: 'k', aggregates: agg }, format: 'csv' },
  { name: 'groupby', options: { key: ['k', 'w'], aggregates: agg }, format: 'csv' },
  { name: 'groupby', options: { key: 'k', aggregates: agg }, format: 'ndjson' },
  { name: 'groupby', options: { key: ['w', 'k'], aggregates: agg, rows: 'csv' }, format: 'ndjson' },
];

/** What is cut where it is interrupted for sure, whatever is drawn. */
const large: DrawnFile = {
  seeds: ['a', 'be'],
  kilobytes: 1_500,
  isCrlf: false,
  hasEnd: true,
  hasMark: false,
  isPacked: false,
  huge: 0,
  bad: 0,
};
const usual = { partitions: 2, splitBytes: 1_048_576 * 64, hasEngine: false };

it('jobs whose tasks are interrupted anywhere, again and again, come to the same bytes and counts as unbroken ones', async () => {
  let takenUp = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...jobs),
      fc.array(arbFile, { minLength: 1, maxLength: 4 }),
      fc.record({
        partitions: fc.integer({ min: 1, max: 4 }),
        splitBytes: fc.constantFrom(1_048_576, 1_048_576 * 64),
        ats: fc.array(fc.integer({ min: -1, max: 9 }), { minLength: 1, maxLength: 3 }),
        hasEngine: fc.boolean(),
      }),
      async ({ name, options, format }, files, { partitions, splitBytes, ats, hasEngine }) => {
        const inputs: Record<string, Buffer> = {};
        for (const [index, file] of files.entries()) {
          const body = Buffer.from(textOf(file, format));
          inputs[`input/f${String(index)}${file.isPacked ? '.gz' : ''}`] = file.isPacked
            ? gzipSync(body)
            : body;
        }
        const isOfRows = format !== 'text';
        const spec = builtinJob(name, {
          ...options,
          inputs: Object.keys(inputs).map((key) => `s3://${key}`),
          ...(isOfRows ? { format, onBadRecord: 'skip' } : {}),
          ...(format === 'csv' ? { multiline: false } : {}),
          ...(name === 'grep' && options.count !== true ? {} : { partitions }),
          splitBytes,
        });
        const whole = await new InterruptedJob(inputs, hasEngine).run(spec, []);
        const job = new InterruptedJob(inputs, hasEngine);
        const broken = await job.run(spec, ats);
        takenUp += job.takenUp;
        expect(broken).toEqual(whole);
      },
    ),
    { numRuns: jobs.length + draws(60), examples: jobs.map((one) => [one, [large], { ...usual, ats: [1] }]) },
  );
  expect(takenUp).toBeGreaterThanOrEqual(jobs.length);
}, 900_000);
