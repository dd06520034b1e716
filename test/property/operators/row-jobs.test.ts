import { DatabaseSync } from 'node:sqlite';
import type { SQLInputValue, SQLOutputValue } from 'node:sqlite';
import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { builtinJob } from '../../../src/operators/builtin-jobs.ts';
import { linesOf, runJob } from '../../support/operator-bench.ts';
import { draws } from '../../support/draws.ts';

type Value = string | number | null;
type Table = readonly Readonly<Record<string, Value>>[];

const arbText = fc.oneof(
  fc.constantFrom(
    'a',
    'b',
    'A',
    'two words',
    'com,ma',
    'quo"te',
    'é',
    '1',
    '01',
    'line\nbreak',
    '\u2028',
    '__proto__',
  ),
  fc.string({ maxLength: 4 }).map((text) => text.replaceAll(/[\0\r]/g, '')),
);
const arbNumber = fc.oneof(
  fc.integer({ min: -1000, max: 1000 }),
  fc.integer({ min: -(2 ** 52), max: 2 ** 52 }),
  fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e6, max: 1e6 }),
);
const arbSales: fc.Arbitrary<Table> = fc.array(
  fc.record({
    shop: fc.option(arbText, { freq: 4 }),
    day: fc.option(fc.integer({ min: 1, max: 3 }), { freq: 4 }),
    price: fc.option(arbNumber, { freq: 4 }),
  }),
  { maxLength: 40 },
);
const arbShape = fc.record({
  partitions: fc.integer({ min: 1, max: 6 }),
  seed: fc.integer(),
  pieces: fc.integer({ min: 1, max: 3 }),
});

/** A table of SQLite without type affinity, so that values stay what they are. */
function tableOf(db: DatabaseSync, name: string, columns: readonly string[], rows: Table): void {
  db.exec(`CREATE TABLE ${name} (${columns.join(', ')})`);
  const insert = db.prepare(`INSERT INTO ${name} VALUES (${columns.map(() => '?').join(', ')})`);
  for (const row of rows) insert.run(...columns.map((column): SQLInputValue => whole(row[column] ?? null)));
}

/** Whole numbers as SQL integers: a JavaScript number would be a float to SQLite. */
const whole = (value: Value): SQLInputValue =>
  typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : value;

const quoted = (value: Value): string => `"${String(value ?? '').replaceAll('"', '""')}"`;

function filesOf(
  rows: Table,
  columns: readonly string[],
  format: 'csv' | 'ndjson',
  pieces: number,
  name: string,
) {
  const files: Record<string, Buffer> = {};
  for (let at = 0; at < pieces; at++) {
    const part = rows.filter((_, index) => index % pieces === at);
    const lines =
      format === 'ndjson'
        ? part.map((row) => JSON.stringify(row))
        : [
            columns.join(','),
            ...part.map((row) => columns.map((column) => quoted(row[column] ?? null)).join(',')),
          ];
    files[`s3://bucket/${name}-${String(at)}`] = Buffer.from(lines.map((line) => `${line}\n`).join(''));
  }
  return files;
}

const rowsOfParts = (parts: readonly Buffer[]): Record<string, Value>[] =>
  linesOf(Buffer.concat(parts)).map((line) => JSON.parse(line.toString()) as Record<string, Value>);

/** Rows in an order of their own, for comparison of sets. */
const inOrder = (rows: readonly object[]): string[] =>
  rows.map((row) => JSON.stringify(Object.entries(row))).sort();

const aggregates = [
  { op: 'count' },
  { op: 'count', column: 'price', as: 'priced' },
  { op: 'sum', column: 'price' },
  { op: 'min', column: 'price' },
  { op: 'max', column: 'price' },
  { op: 'avg', column: 'price' },
] as const;
const aggregateSql =
  'count(*) AS count, count(price) AS priced, sum(price) AS sum_price, min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price';

function expectSameRows(got: Record<string, Value>[], expected: Record<string, SQLOutputValue>[]): void {
  const byKey = (rows: Record<string, SQLOutputValue>[]) =>
    new Map(
      rows.map((row) => [
        JSON.stringify([row['shop'], row['day'] === null ? null : Number(row['day'])]),
        row,
      ]),
    );
  const [left, right] = [byKey(got), byKey(expected)];
  expect([...left.keys()].sort()).toEqual([...right.keys()].sort());
  expect(got).toHaveLength(expected.length);
  for (const [key, row] of left) {
    for (const [name, value] of Object.entries(row)) {
      const want = right.get(key)?.[name] ?? null;
      if (name === 'shop' || name === 'day') continue;
      if (value === null || want === null) expect([name, value]).toEqual([name, want]);
      else if (typeof want === 'bigint') expect([name, BigInt(String(value))]).toEqual([name, want]);
      else
        expect(Math.abs(Number(value) - Number(want))).toBeLessThanOrEqual(
          1e-9 + 1e-12 * Math.abs(Number(want)),
        );
    }
  }
}

describe('groupby against SQLite', { timeout: 120_000 }, () => {
  it.each(['ndjson', 'csv'] as const)('gives what GROUP BY gives for %s', async (format) => {
    await fc.assert(
      fc.asyncProperty(arbSales, arbShape, async (sales, { partitions, seed, pieces }) => {
        const columns = ['shop', 'day', 'price'];
        // CSV has no null: an empty field is an empty text in a key, and nothing in an aggregate.
        const rows = format === 'csv' ? sales.map((row) => ({ ...row, shop: row['shop'] ?? '' })) : sales;
        const db = new DatabaseSync(':memory:');
        tableOf(db, 't', columns, rows);
        const select = db.prepare(`SELECT shop, day, ${aggregateSql} FROM t GROUP BY shop, day`);
        select.setReadBigInts(true);
        const files = filesOf(rows, columns, format, pieces, 'sales');
        const job = builtinJob('groupby', {
          inputs: Object.keys(files),
          format,
          key: ['shop', 'day'],
          aggregates,
          partitions,
          rows: 'ndjson',
        });
        const got = rowsOfParts(await runJob(job, files, seed));
        expectSameRows(
          got.map((row) => ({ ...row, day: row['day'] === '' ? null : (row['day'] ?? null) })),
          select.all(),
        );
        db.close();
      }),
      { numRuns: draws(100) },
    );
  });
});

const arbKeyed = (key: string, other: string): fc.Arbitrary<Table> =>
  fc.array(fc.record({ [key]: fc.option(arbText, { freq: 5 }), shared: arbText, [other]: arbText }), {
    maxLength: 25,
  });

describe('join against SQLite', { timeout: 120_000 }, () => {
  it.each([
    ['ndjson', false],
    ['ndjson', true],
    ['csv', false],
    ['csv', true],
  ] as const)('gives what JOIN … ON gives for %s, broadcast %s', async (format, broadcast) => {
    await fc.assert(
      fc.asyncProperty(arbKeyed('id', 'l'), arbKeyed('ref', 'r'), arbShape, async (lefts, rights, shape) => {
        const filled = (rows: Table, key: string): Table =>
          format === 'csv' ? rows.map((row) => ({ ...row, [key]: row[key] ?? '' })) : rows;
        const [left, right] = [filled(lefts, 'id'), filled(rights, 'ref')];
        const db = new DatabaseSync(':memory:');
        tableOf(db, 'a', ['id', 'shared', 'l'], left);
        tableOf(db, 'b', ['ref', 'shared', 'r'], right);
        const expected = db
          .prepare(
            'SELECT a.id, a.shared, a.l, b.ref, b.shared AS shared_right, b.r FROM a JOIN b ON a.id = b.ref',
          )
          .all();
        db.close();
        const leftFiles = filesOf(left, ['id', 'shared', 'l'], format, shape.pieces, 'left');
        const rightFiles = filesOf(right, ['ref', 'shared', 'r'], format, shape.pieces, 'right');
        const job = builtinJob('join', {
          inputs: Object.keys(leftFiles),
          right: Object.keys(rightFiles),
          format,
          leftKey: 'id',
          rightKey: 'ref',
          broadcast,
          ...(broadcast ? {} : { partitions: shape.partitions }),
        });
        const parts = await runJob(job, { ...leftFiles, ...rightFiles }, shape.seed);
        const got =
          format === 'csv'
            ? parse<Record<string, string>>(Buffer.concat(parts), { columns: true })
            : rowsOfParts(parts);
        expect(inOrder(got)).toEqual(inOrder(expected));
      }),
      { numRuns: draws(100) },
    );
  });
});
