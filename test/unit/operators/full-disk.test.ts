import { describe, expect, it, vi } from 'vitest';
import { duckDb } from '../../../src/operators/duckdb/engine.ts';
import { operators } from '../../../src/operators/registry.ts';
import { failureOf } from '../../../src/worker/failure-of.ts';
import { runTask, seeded, sourceOf } from '../../support/operator-bench.ts';

/** How a query fails where DuckDB says this when it is to write the result. */
async function failureWhere(said: string, options = {}): Promise<unknown> {
  const connection = duckDb()?.DuckDBConnection.prototype;
  if (connection === undefined) throw new Error('DuckDB is not installed');
  const run = Object.getOwnPropertyDescriptor(connection, 'run')?.value as (
    this: unknown,
    sql: string,
  ) => ReturnType<NonNullable<typeof connection>['run']>;
  const spy = vi.spyOn(connection, 'run').mockImplementation(function (this: unknown, sql) {
    return sql.startsWith('COPY') ? Promise.reject(new Error(said)) : run.call(this, sql);
  });
  try {
    const input = sourceOf(Buffer.from('id,text\n1,a\n'), seeded(1), 'csv');
    await runTask(operators.sql, { query: 'SELECT * FROM input', ...options }, [input]);
    return undefined;
  } catch (error) {
    return failureOf(error, 'operator');
  } finally {
    spy.mockRestore();
  }
}

describe('a query whose worker has trouble with its disk', { timeout: 60_000 }, () => {
  // As DuckDB says it on a file system of 1 MB.
  it.each([
    'Could not write file "/tmp/a/result": No space left on device',
    'Could not write file "/tmp/a/result": Disk quota exceeded',
    'Cannot open file "/tmp/a/result": Too many open files',
    'Could not read from file "/tmp/a/table0-0.csv": Input/output error',
  ])('is not to blame: %s', async (what) => {
    for (const output of ['csv', 'ndjson', 'parquet'])
      expect(await failureWhere(`IO Error: ${what}`, { output })).toEqual({
        cause: 'storage',
        message: `DuckDB could not use its scratch files: ${what}`,
      });
  });

  it.each([
    ['Invalid Input Error: No space left on device'],
    ['IO Error: Could not read enough bytes from file "/tmp/a/table0-0.parquet"'],
  ])('is to blame for what it says itself, and for what files hold: %s', async (said) => {
    expect(await failureWhere(said)).toMatchObject({
      cause: 'bad-input',
      message: expect.stringMatching(/^options\.query: the query fails: /) as string,
    });
  });
});
