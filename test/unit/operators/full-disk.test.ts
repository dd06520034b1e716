import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { duckDb } from '../../../src/operators/duckdb/engine.ts';
import { pieceKey } from '../../../src/operators/packed-rows.ts';
import { operators } from '../../../src/operators/registry.ts';
import { failureOf } from '../../../src/worker/failure-of.ts';
import type { Operator, TaskInput } from '../../../src/worker/operator.ts';
import { recordsOf, runTask, seeded, sourceOf } from '../../support/operator-bench.ts';

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

/** The operator in a scratch directory where a file of that name finds its disk full. */
const withFull = (operator: Operator, name: string): Operator => ({
  ...operator,
  run: async (context) => {
    await symlink('/dev/full', join(context.scratchDir, name));
    await operator.run(context);
  },
});

const csv = (text: string): TaskInput => sourceOf(Buffer.from(text), seeded(1), 'csv');

/** What the tasks of a stage send to the first partition. */
async function sentBy(
  operator: Operator,
  options: Record<string, unknown>,
  text: string,
): Promise<TaskInput> {
  const { collector } = await runTask(operator, options, [csv(text)]);
  return recordsOf('before', [...collector.sorted(0, operator, options)], seeded(1));
}

const failing = (running: Promise<unknown>): Promise<unknown> =>
  running.then(
    () => 'it did not fail',
    (error: unknown) => failureOf(error, 'operator'),
  );

describe('an operator whose worker has its scratch disk full', () => {
  const full = { cause: 'storage', message: 'ENOSPC: no space left on device, write' };

  it('is not to blame where it joins', async () => {
    const side = (): Promise<TaskInput> => sentBy(operators['join-map'], { key: 'id' }, 'id,name\n1,Ann\n');
    const options = { leftKey: 'id', rightKey: 'id', output: 'csv' };
    for (const name of ['left-0.lines', 'right-0.lines']) {
      const inputs = [await side(), await side()];
      expect(await failing(runTask(withFull(operators['join-reduce'], name), options, inputs))).toEqual(full);
    }
  });

  it('is not to blame where it groups, or lays files for a query', async () => {
    const options = { key: 'id', aggregates: [{ op: 'count' }] };
    const key = pieceKey({ task: 0, schema: 0, number: 0, rows: 1, isPlain: true });
    const groups = recordsOf('before', [{ key, value: Buffer.from('["1"]\t1\n') }], seeded(1));
    const merging = withFull(operators['groupby-reduce'], 'groups.lines');
    expect(await failing(runTask(merging, options, [groups]))).toEqual(full);
    const query = withFull(operators.sql, 'table0-0.csv');
    const asking = runTask(query, { query: 'SELECT * FROM input' }, [csv('id\n1\n')]);
    expect(await failing(asking)).toEqual(full);
  });

  it('is to blame where it is the user’s own code, whose files are its own matter', () => {
    const error = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    expect(failureOf(error, 'user-code')).toEqual({ ...full, cause: 'user-code' });
    expect(failureOf(error, 'runtime')).toEqual(full);
  });
});
