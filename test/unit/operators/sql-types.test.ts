import { describe, expect, it } from 'vitest';
import { operators } from '../../../src/operators/registry.ts';
import { runJob, runTask, seeded, sourceOf } from '../../support/operator-bench.ts';

const { sql } = operators;

/** Rows that a join of two stages gives, whose keys are of these types, by a shuffle to seven tasks. */
async function joined(left: string, right: string): Promise<number> {
  const side = (name: string, type: string) => ({
    name,
    operator: 'sql' as const,
    options: { query: `SELECT id::${type} AS id FROM input`, partitionBy: ['id'] },
    partitions: 7,
    inputs: [{ s3: [`s3://bucket/${name}.csv`], format: 'csv' as const }],
  });
  const read = (stage: string) => ({ stage, pattern: 'all-to-all' as const });
  const query = 'SELECT a.id FROM a JOIN b ON a.id = b.id';
  const stages = [
    side('a', left),
    side('b', right),
    { name: 'both', operator: 'sql' as const, options: { query }, inputs: [read('a'), read('b')] },
  ];
  const ids = Array.from({ length: 100 }, (_, at) => `${String(at - 50)}\n`).join('');
  const text = Buffer.from(`id\n${ids}`);
  const parts = await runJob(
    { name: 'join', stages },
    { 's3://bucket/a.csv': text, 's3://bucket/b.csv': text },
  );
  return Buffer.concat(parts).toString().split('\n').filter(Boolean).length;
}

describe('rows of sql that go to the next stage', { timeout: 60_000 }, () => {
  it.each([
    ['INTEGER', 'INTEGER'],
    ['INTEGER', 'BIGINT'],
    ['BIGINT', 'DOUBLE'],
    ['DECIMAL(9, 2)', 'DECIMAL(18, 4)'],
    ['DECIMAL(9, 2)', 'BIGINT'],
    ['VARCHAR', 'BIGINT'],
  ])('meet those that are equal to them by SQL, be they %s and %s', async (left, right) => {
    expect(await joined(left, right)).toBe(100);
  });

  it('are told apart by all of their columns, NULL as well', async () => {
    const query = "SELECT nullif(k, 'k3') AS k, v FROM input";
    const rows = Array.from({ length: 3_000 }, (_, at) => `k${String(at % 7)},${String(at % 11)}\n`).join('');
    const input = sourceOf(Buffer.from(`k,v\n${rows}`), seeded(1), 'csv');
    const { collector } = await runTask(sql, { query, partitionBy: ['k', 'v'] }, [input], {
      partitions: 4,
      isFinal: false,
    });
    for (let partition = 0; partition < 4; partition++)
      expect(collector.sorted(partition, sql, {}).length).toBeGreaterThan(1);
  });
});

describe('NDJSON as a table', { timeout: 60_000 }, () => {
  const select = async (query: string, lines: string[], options = {}) => {
    const input = sourceOf(Buffer.from(`${lines.join('\n')}\n`), seeded(1), 'ndjson');
    return (await runTask(sql, { query, ...options }, [input])).text.toString();
  };

  it('leaves texts as they are, that look like dates, times or UUIDs as well', async () => {
    const line =
      '{"d":"2024-01-01","t":"2024-01-01T10:00:00Z","u":"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11","h":"1:02:03","deep":{"DATE":"2024-1-1","list":["2024-01-01T00:00:00Z"]}}';
    expect(await select('SELECT * FROM input', [line])).toBe(`${line}\n`);
  });

  it('has the columns that are said, of their types, where no record of a task has them', async () => {
    const lines = ['{"k":1,"d":"2024-01-02"}', '{"k":2.5,"d":"2024-01-03"}'];
    const query = 'SELECT k, c, year(d) AS y, typeof(n) AS n FROM input ORDER BY k';
    const columns = { input: { c: 'VARCHAR', d: 'DATE', n: 'DECIMAL(9, 2)' } };
    expect(await select(query, lines, { columns })).toBe(
      '{"k":1.0,"c":null,"y":2024,"n":"DECIMAL(9,2)"}\n{"k":2.5,"c":null,"y":2024,"n":"DECIMAL(9,2)"}\n',
    );
  });

  it('says what to do where a query names a column that no record of a task has', async () => {
    await expect(select('SELECT k, c FROM input', ['{"k":1}'])).rejects.toThrow(
      /^options\.query: .*"c" not found.*options\.columns/,
    );
  });

  it.each([
    [{ input: { k: 'NONE' } }, /^options\.columns\.input: .*NONE/],
    [{ other: { k: 'BIGINT' } }, /^options\.columns\.other must be the name of a table: input/],
    [{ input: { k: 1 } }, /^options\.columns must be/],
    [['k'], /^options\.columns must be/],
  ])('refuses %j as columns', async (columns, words) => {
    await expect(select('SELECT k FROM input', ['{"k":1}'], { columns })).rejects.toThrow(words);
  });

  it('names the value that is not of the type that was said', async () => {
    const columns = { input: { k: 'BIGINT' } };
    await expect(select('SELECT k FROM input', ['{"k":"x"}'], { columns })).rejects.toThrow(
      /^options\.query: the query fails: .*"x"/,
    );
  });

  it('is for NDJSON alone', async () => {
    const input = sourceOf(Buffer.from('k\n1\n'), seeded(1), 'csv');
    const options = { query: 'SELECT k FROM input', columns: { input: { k: 'BIGINT' } } };
    await expect(runTask(sql, options, [input])).rejects.toThrow(
      /^options\.columns\.input is for NDJSON alone/,
    );
  });
});
