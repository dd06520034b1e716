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

/** What tasks write, laid end to end, of which each reads the files that these queries make, one or several. */
async function written(
  tasks: readonly (string | readonly string[])[],
  options: { readonly query: string; readonly output: 'csv' | 'ndjson' },
): Promise<string> {
  const objects = new MemoryObjectStore();
  const segments: SourceSegment[][] = tasks.map(() => []);
  const files = tasks.flatMap((queries, task) => [queries].flat().map((query) => ({ query, task })));
  const dir = await mkdtemp(join(tmpdir(), 'parquet-'));
  try {
    const engine = await Engine.open({ scratchDir: dir, signal });
    for (const [index, { query, task }] of files.entries()) {
      const path = join(dir, String(index));
      await engine.run(`COPY (${query}) TO '${path}' (FORMAT parquet)`);
      const place = { bucket: 'in', key: `${String(index)}.parquet` };
      segments[task]?.push(await putSource(objects, place, await readFile(path)));
    }
    engine.close();
  } finally {
    await rm(dir, { recursive: true });
  }
  let all = '';
  for (const [task, own] of segments.entries()) {
    const source = sourceInput({
      ...{ format: 'parquet', header: true, onBadRecord: 'fail', first: segments[0]?.[0], segments: own },
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
    expect(await written([wide, narrow], { ...star, output: 'ndjson' })).toBe(
      '{"a":1,"b":"x","c":2.5}\n{"a":5,"b":null,"c":6.5}\n',
    );
  });

  it('know one of a type that has no text, as DuckDB writes a UNION', async () => {
    const union = "SELECT 1 AS a, 'x'::UNION(n INTEGER, s VARCHAR) AS u";
    const query = 'SELECT a, u IS NULL AS none, typeof(u) AS t FROM input';
    expect(await written([union, narrow], { query, output: 'csv' })).toBe(
      'a,none,t\n1,false,"STRUCT(UTINYINT, INTEGER, VARCHAR)"\n5,true,"STRUCT(UTINYINT, INTEGER, VARCHAR)"\n',
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

  const more = "SELECT 'z' AS d, 'w' AS b, 7.5::DOUBLE AS c, 8 AS a";
  it.each([
    ['SELECT a, b FROM input ORDER BY a', 'a,b\n1,x\n5,\n5,\n8,w\n'],
    ["SELECT a FROM input WHERE b >= 'a' ORDER BY a", 'a\n1\n8\n'],
    ['SELECT count(b) AS n FROM input', 'n\n1\n1\n'],
    ['SELECT * EXCLUDE (b) FROM input WHERE a = 1', 'a,c\n1,2.5\n'],
  ])('give what the first has not where the query names it: %s', async (query, text) => {
    const tasks = [
      [narrow, wide],
      [narrow, query.includes('*') ? wide : more],
    ];
    const expected = query.includes('*') ? `${text}1,2.5\n` : text;
    expect(await written(tasks, { ...star, query })).toBe(expected);
  });

  it('are refused where the query has others of the first by a star, and lie in one order where it names all', async () => {
    const tasks = [
      [narrow, more],
      [narrow, "SELECT 1 AS a, 'x' AS b, 2.5::DOUBLE AS c, 'y' AS d"],
    ];
    await expect(written(tasks, { ...star, query: 'SELECT *, b FROM input' })).rejects.toThrow(
      'the files of input have different columns: "d" is not among a, c',
    );
    const query = 'SELECT *, b AS e, d AS f FROM input WHERE a <> 5';
    expect(await written(tasks, { ...star, query })).toBe('a,c,b,d,e,f\n8,7.5,w,z,w,z\n1,2.5,x,y,x,y\n');
  });
});
