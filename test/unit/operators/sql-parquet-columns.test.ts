import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { describe, expect, it } from 'vitest';
import { MemoryClock } from '../../../src/adapters/memory/memory-clock.ts';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import type { SourceSegment } from '../../../src/contracts/plan.ts';
import { Engine } from '../../../src/operators/duckdb/engine.ts';
import { sql } from '../../../src/operators/sql.ts';
import { AttemptMeter } from '../../../src/worker/attempt-meter.ts';
import { sourceInput } from '../../../src/worker/task-input.ts';
import { runTask } from '../../support/operator-bench.ts';
import { putSource } from '../../support/worker-fixtures.ts';

const { signal } = new AbortController();

/** What tasks write that read a file each, made by these queries, laid end to end. */
async function written(
  queries: readonly string[],
  options: { readonly query: string; readonly output: 'csv' | 'ndjson' },
): Promise<string> {
  const objects = new MemoryObjectStore();
  const segments: SourceSegment[] = [];
  const dir = await mkdtemp(join(tmpdir(), 'parquet-'));
  try {
    const engine = await Engine.open({ scratchDir: dir, signal });
    for (const [index, query] of queries.entries()) {
      const path = join(dir, String(index));
      await engine.run(`COPY (${query}) TO '${path}' (FORMAT parquet)`);
      segments.push(
        await putSource(objects, { bucket: 'in', key: `${String(index)}.parquet` }, await readFile(path)),
      );
    }
    engine.close();
  } finally {
    await rm(dir, { recursive: true });
  }
  let all = '';
  for (const [task, segment] of segments.entries()) {
    const source = sourceInput({
      ...{ format: 'parquet', header: true, onBadRecord: 'fail', first: segments[0], segments: [segment] },
      reading: { objects, signal, onBytes: () => undefined },
      meter: new AttemptMeter(new MemoryClock(), signal, () => 0),
    });
    all += (await runTask(sql, options, [source], { task, tasks: segments.length })).text.toString();
  }
  return all;
}

const wide = "SELECT 1 AS a, 'x' AS b, 2.5::DOUBLE AS c";
const turned = 'SELECT 3.5::DOUBLE AS c, \'y\' AS "B", 4 AS a';
const narrow = 'SELECT 5 AS a, 6.5::DOUBLE AS c';
const star = { query: 'SELECT * FROM input', output: 'csv' } as const;

describe('Parquet files with their columns in different orders', () => {
  it.each([
    ['a,b,c', [wide, turned, narrow]],
    ['c,B,a', [turned, narrow, wide]],
    ['a,b,c', [wide, `${narrow} LIMIT 0`, turned, narrow]],
  ])('give their columns in the order of the first, %s', async (header, queries) => {
    const text = await written(queries, star);
    expect(text.split('\n')[0]).toBe(header);
    const rows = parse<Record<string, string>>(text, {
      columns: (names) => names.map((n) => n.toLowerCase()),
    });
    expect(rows.toSorted((left, right) => Number(left['a']) - Number(right['a']))).toEqual([
      { a: '1', b: 'x', c: '2.5' },
      { a: '4', b: 'y', c: '3.5' },
      { a: '5', b: '', c: '6.5' },
    ]);
  });

  it('know a column of the first that their own file has not, with its type', async () => {
    const query = "SELECT typeof(b) AS t, coalesce(b, '-') AS b FROM input";
    expect(await written([wide, narrow], { query, output: 'ndjson' })).toBe(
      '{"t":"VARCHAR","b":"x"}\n{"t":"VARCHAR","b":"-"}\n',
    );
  });

  it('are refused where the first has not all columns of CSV, and not where the query names its own', async () => {
    await expect(written([narrow, wide], star)).rejects.toThrow(
      'the files of input have different columns: "b" is not among a, c',
    );
    expect(await written([narrow, wide], { ...star, query: 'SELECT c, a FROM input' })).toBe(
      'c,a\n6.5,5\n2.5,1\n',
    );
    // Lines of JSON say themselves what their columns are.
    expect(await written([narrow, wide], { ...star, output: 'ndjson' })).toBe(
      '{"a":5,"c":6.5}\n{"a":1,"c":2.5,"b":"x"}\n',
    );
  });
});
