import { parse } from 'csv-parse/sync';
import { describe, expect, it } from 'vitest';
import { MemoryClock } from '../../../src/adapters/memory/memory-clock.ts';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import type { SourceSegment } from '../../../src/contracts/plan.ts';
import { sql } from '../../../src/operators/sql.ts';
import { AttemptMeter } from '../../../src/worker/attempt-meter.ts';
import { sourceInput } from '../../../src/worker/task-input.ts';
import { runTask } from '../../support/operator-bench.ts';
import { putSource } from '../../support/worker-fixtures.ts';

const { signal } = new AbortController();

interface Wish {
  readonly query: string;
  readonly output: 'csv' | 'ndjson';
  readonly columns?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** What tasks write, laid end to end, of which each reads one of these files. */
async function written(files: readonly (string | Buffer)[], options: Wish): Promise<string> {
  const objects = new MemoryObjectStore();
  const segments: SourceSegment[] = [];
  for (const [index, text] of files.entries()) {
    const place = { bucket: 'in', key: `${String(index)}.ndjson` };
    segments.push(await putSource(objects, place, Buffer.from(text)));
  }
  let all = '';
  for (const [task, own] of segments.entries()) {
    const source = sourceInput({
      ...{ format: 'ndjson', header: true, onBadRecord: 'skip', first: segments[0], segments: [own] },
      reading: { objects, signal, onBytes: () => undefined },
      meter: new AttemptMeter(new MemoryClock(), signal, () => 0),
    });
    const { text } = await runTask(sql, { ...options }, [source], { task, tasks: segments.length });
    all += text.toString();
  }
  return all;
}

const star = { query: 'SELECT * FROM input', output: 'csv' } as const;
const lines = (...records: readonly object[]): string =>
  records.map((record) => `${JSON.stringify(record)}\n`).join('');

describe('CSV of several tasks by a star over NDJSON', { timeout: 60_000 }, () => {
  it('has the fields of the first file in its order in all parts, and nothing where a record has none', async () => {
    const files = [lines({ a: 1, b: 'x' }), lines({ b: 'y', a: 2 }), lines({ a: 3 }), lines({ b: 'z' })];
    expect(await written(files, star)).toBe('a,b\n1,x\n2,y\n3,\n,z\n');
  });

  it('gives no part other columns where a task has no record, or records without fields', async () => {
    const files = [lines({ a: 1, b: 'x' }), '\n', lines({}), lines({ a: 2, b: 'y' })];
    const text = await written(files, star);
    expect(parse(text, { columns: true })).toEqual([
      { a: '1', b: 'x' },
      { a: '', b: '' },
      { a: '2', b: 'y' },
    ]);
  });

  it('knows the fields of all records at the begin of the first file, and of its first however long that is', async () => {
    const long = 'l'.repeat(100_000);
    const sparse = lines({ a: 1 }, { b: 'x' });
    expect(await written([sparse, lines({ b: 'y' })], star)).toBe('a,b\n1,\n,x\n,y\n');
    const first = `not JSON\n\n${lines({ long, a: 1 })}`;
    expect(await written([first, lines({ a: 2 })], star)).toBe(`long,a\n${long},1\n,2\n`);
  });

  it('fails where a record has a field that the first file does not begin with, and tells what to do', async () => {
    const files = [lines({ a: 1 }), lines({ a: 2, b: 'y' })];
    await expect(written(files, star)).rejects.toThrow(
      'the records of input have different fields: "b" is not among a, with which its first file begins; name columns in options.query, or "b" in options.columns.input',
    );
    // Of the first file itself, too: its own parts, and those of others, lack it.
    const late = `${lines({ a: 1 })}${lines({ a: 2 }).repeat(10_000)}${lines({ a: 3, b: 'y' })}`;
    await expect(written([late, lines({ a: 2 })], star)).rejects.toThrow('"b" is not among a,');
    await expect(written(['\n', lines({ a: 2 })], star)).rejects.toThrow(
      'the records of input have different fields: "a" is not among those with which its first file begins, since it has none;',
    );
  });

  it('passes over what cannot be written at the begin of the first file, as its reader does', async () => {
    const files = ['{"a":1}\n{"a":"\\ud800","b":1}\n', lines({ a: 2 })];
    expect(await written(files, star)).toBe('a\n1\n2\n');
  });

  it('puts no null in the place of a value where records have so little in common that they become a map', async () => {
    const odd = Array.from({ length: 1_000 }, (_, at) => ({
      a: at,
      [`f${String(at)}`]: 1,
      [`g${String(at)}`]: 2,
    }));
    const files = [lines({ a: 1, b: 2 }), lines(...odd)];
    await expect(written(files, { ...star, query: 'SELECT a FROM input' })).rejects.toThrow(
      /column "a" not found.*options\.columns names more/,
    );
    await expect(written(files, star)).rejects.toThrow('the records of input have different fields: "json"');
    expect(await written(files, { ...star, query: 'SELECT count(*) AS n, count(b) AS b FROM input' })).toBe(
      'n,b\n1,1\n1000,0\n',
    );
    const columns = { input: { a: 'BIGINT' } };
    const summed = { ...star, query: 'SELECT sum(a) AS a FROM input', columns };
    expect(await written(files, summed)).toBe('a\n1\n499500\n');
  });

  it('goes by what the options name', async () => {
    const columns = { input: { b: 'VARCHAR', n: 'BIGINT' } };
    const files = [lines({ a: 1 }), lines({ n: 7, a: 2, b: 'y' }), '\n', lines({ b: 'z' })];
    expect(await written(files, { ...star, columns })).toBe('a,b,n\n1,,\n2,y,7\n,z,\n');
    expect(await written(['\n', lines({ n: 7, b: 'y' })], { ...star, columns })).toBe('b,n\ny,7\n');
  });

  it('leaves alone what names its columns, one task, and lines of JSON', async () => {
    const files = [lines({ a: 1 }), lines({ b: 'y', a: 2 })];
    expect(await written(files, { ...star, query: 'SELECT a + 1 AS n FROM (SELECT * FROM input)' })).toBe(
      'n\n2\n3\n',
    );
    expect(await written(files.slice(1), star)).toBe('b,a\ny,2\n');
    expect(await written(files, { ...star, output: 'ndjson' })).toBe('{"a":1}\n{"b":"y","a":2}\n');
  });

  it('finds by name what the first file has, with its type, where a task has no such record', async () => {
    const files = [lines({ a: 1, price: 2.5 }), lines({ a: 2 }), ''];
    const query = 'SELECT a, price * 2 AS twice FROM input';
    expect(await written(files, { ...star, query })).toBe('a,twice\n1,5.0\n2,\n');
  });
});

it('takes no record without fields for a value of the only column of NDJSON that the options name', async () => {
  const columns = { input: { a: 'VARCHAR' } };
  expect(await written([lines({}, {})], { ...star, output: 'ndjson', columns })).toBe(
    '{"a":null}\n{"a":null}\n',
  );
});
