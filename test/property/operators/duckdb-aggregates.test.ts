import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { groupbyMap, groupbyReduce } from '../../../src/operators/groupby.ts';
import { builtinJob } from '../../../src/operators/builtin-jobs.ts';
import { linesOf, recordsOf, runJob, runTask, seeded, sourceOf } from '../../support/operator-bench.ts';
import { draws } from '../../support/draws.ts';

const arbNumber = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e6, max: 1e6 }).map((value) => value.toFixed(4)),
  fc
    .double({ noNaN: true, noDefaultInfinity: true, min: -1e-4, max: 1e-4 })
    .map((value) => value.toFixed(13)),
  fc.bigInt({ min: -(10n ** 39n), max: 10n ** 39n }).map(String),
  fc.integer().map(String),
  fc.constantFrom(
    '',
    '-0',
    '1.',
    '.5',
    '-.5',
    '+7',
    ' 8 ',
    '1e3',
    '007',
    '0.1',
    '0.2',
    '999999999999999',
    '1.e2',
    '1e-13',
    '9e-14',
    '1e-400',
    '0.99999999999999999999',
    '1e15',
    '\t2',
  ),
);
const arbBad = fc.constantFrom(
  'nan',
  'inf',
  '1_000',
  '0x10',
  '-',
  '.',
  '1,5',
  'NULL',
  '1-2',
  '--1',
  'e5',
  '1e',
  '1 2',
  '1_0',
  '-inf',
  'Infinity',
  '1d',
  '1f',
  ' ',
  '1e+',
  '+-5',
  ' +-.5e1',
);
const arbRows = fc.array(fc.tuple(fc.constantFrom('a', 'b', '', 'é"', 'NULL', '\uFEFF'), arbNumber), {
  maxLength: 30,
});

const aggregates = ['count', 'sum', 'avg', 'min', 'max'].map((op) => ({ op, column: 'v' }));
const options = { key: 'k', aggregates };
const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;
const csv = (rows: readonly (readonly string[])[]): Buffer =>
  Buffer.from(`k,v\n${rows.map((row) => `${row.map(quoted).join(',')}\n`).join('')}`);

/** What both halves of a group-by make of CSV: row by row, or as bytes up to so many groups and by DuckDB from then on. */
async function grouped(text: Buffer, byRow: boolean, maxHeldGroups = 0): Promise<string> {
  const source = sourceOf(text, seeded(1), 'csv');
  if (byRow) delete source.csv;
  const { collector } = await runTask(groupbyMap, { ...options, maxHeldGroups }, [source]);
  const records = collector.sorted(0, groupbyMap, options);
  const { text: result } = await runTask(groupbyReduce, options, [recordsOf('map', records, seeded(2))]);
  return result.toString();
}

describe('aggregates by DuckDB and as bytes', { timeout: 120_000 }, () => {
  it('are those that are computed row by row, to the last digit', async () => {
    await fc.assert(
      fc.asyncProperty(arbRows, fc.constantFrom(0, 2, 1_000), async (rows, maxHeldGroups) => {
        const text = csv(rows);
        expect(await grouped(text, false, maxHeldGroups)).toBe(await grouped(text, true));
      }),
      { numRuns: draws(150) },
    );
  });

  it('keep a byte order mark that a first value begins with', async () => {
    // Without quotes: they would stand before it.
    const text = Buffer.from('k,v\n\uFEFFa,1\na,2\n');
    expect(await grouped(text, false)).toBe(await grouped(text, true));
    expect(await grouped(text, false)).toContain('\uFEFFa');
  });

  it('refuse each kind of text that DuckDB alone takes for a number', async () => {
    for (const bad of ['+-5', '1_000', 'nan'])
      await expect(
        grouped(
          csv([
            ['a', '1'],
            ['a', bad],
          ]),
          false,
        ),
      ).rejects.toThrow('column "v" must hold numbers');
  });

  it('refuse what is no number by the same words', async () => {
    await fc.assert(
      fc.asyncProperty(arbRows, arbBad, async (rows, bad) => {
        const text = csv([...rows, ['a', bad]]);
        await expect(grouped(text, false, 1_000)).rejects.toThrow('column "v" must hold numbers');
        await expect(grouped(text, false)).rejects.toThrow('column "v" must hold numbers to be aggregated');
        await expect(grouped(text, true)).rejects.toThrow('column "v" must hold numbers to be aggregated');
      }),
      { numRuns: draws(30) },
    );
  });

  it('sums what 128 bits of units cannot hold', async () => {
    const text = csv(Array.from({ length: 40 }, () => ['k', '999999999999.5']).concat([['k', '1e300']]));
    expect(await grouped(text, false)).toBe(await grouped(text, true));
    const many = csv(Array.from({ length: 5_000 }, () => ['k', '9999999999999.5']));
    for (const held of [0, 1_000])
      expect(JSON.parse(await grouped(many, false, held))).toMatchObject({ sum_v: 49_999_999_999_997_500 });
  });
});

/** Groups enough that tasks send pieces, and that whoever merges them does so by DuckDB. */
const filler = Array.from({ length: 24_000 }, (_, at): [string, string] => [
  `filler ${String(at)}`,
  String(at * 1_000_003),
]);
const arbKey = fc.oneof(
  fc.constantFrom(
    '',
    ' ',
    '\\',
    '"',
    '\t',
    '\u0001',
    '\u000b',
    '\u001f',
    '\u007f',
    '\u2028',
    'é',
    '😀',
    'filler 7',
  ),
  fc.string({ unit: 'grapheme', maxLength: 3 }).map((text) => text.replaceAll(/[\0\r\n]/g, '')),
);
const arbTask = fc.array(fc.tuple(arbKey, fc.bigInt({ min: -(10n ** 17n), max: 10n ** 17n }).map(String)), {
  maxLength: 30,
});

describe('a group-by of many groups', { timeout: 300_000 }, () => {
  it('gives what GROUP BY gives, in byte order of keys', async () => {
    await fc.assert(
      fc.asyncProperty(arbTask, arbTask, async (left, right) => {
        const tasks = [
          [...left, ...filler],
          [...filler, ...right],
        ];
        const db = new DatabaseSync(':memory:');
        db.exec('CREATE TABLE t (k TEXT, v INTEGER)');
        const insert = db.prepare('INSERT INTO t VALUES (?, ?)');
        db.exec('BEGIN');
        for (const [key, value] of tasks.flat()) insert.run(key, BigInt(value));
        const select = db.prepare(
          'SELECT k, count(*) AS n, sum(v) AS s, min(v) AS l, max(v) AS m FROM t GROUP BY k',
        );
        select.setReadBigInts(true);
        const expected = select
          .all()
          .map(({ k, n, s, l, m }) => ({
            order: Buffer.from(JSON.stringify([k])),
            line: `{"k":${JSON.stringify(k)},"n":${String(n)},"s":${String(s)},"l":${String(l)},"m":${String(m)}}\n`,
          }))
          .sort((one, other) => one.order.compare(other.order));
        db.close();
        const job = builtinJob('groupby', {
          inputs: ['s3://bucket/0', 's3://bucket/1'],
          key: 'k',
          aggregates: [
            { op: 'count', as: 'n' },
            { op: 'sum', column: 'v', as: 's' },
            { op: 'min', column: 'v', as: 'l' },
            { op: 'max', column: 'v', as: 'm' },
          ],
          partitions: 1,
          rows: 'ndjson',
        });
        const files = { 's3://bucket/0': csv(tasks[0] ?? []), 's3://bucket/1': csv(tasks[1] ?? []) };
        const [part = Buffer.alloc(0)] = await runJob(job, files);
        expect(linesOf(part).map(String)).toEqual(expected.map(({ line }) => line));
      }),
      { numRuns: draws(12) },
    );
  });
});
