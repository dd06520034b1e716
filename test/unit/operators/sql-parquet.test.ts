import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MemoryClock } from '../../../src/adapters/memory/memory-clock.ts';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { jobSpecSchema } from '../../../src/contracts/job-spec.ts';
import type { SourceSegment } from '../../../src/contracts/plan.ts';
import { splitObjects } from '../../../src/core/model/splits.ts';
import { Engine } from '../../../src/operators/duckdb/engine.ts';
import { sql } from '../../../src/operators/sql.ts';
import { AttemptMeter } from '../../../src/worker/attempt-meter.ts';
import { sourceInput } from '../../../src/worker/task-input.ts';
import { runTask } from '../../support/operator-bench.ts';

const { signal } = new AbortController();

/** A Parquet file of a query, and the segments of its pieces. */
async function parquet(query: string, { rowGroup = 2_048, splitBytes = 20_000 } = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'parquet-'));
  try {
    const engine = await Engine.open({ scratchDir: dir, signal });
    await engine.run(`COPY (${query}) TO '${dir}/a' (FORMAT parquet, ROW_GROUP_SIZE ${String(rowGroup)})`);
    engine.close();
    return await stored(await readFile(join(dir, 'a')), splitBytes);
  } finally {
    await rm(dir, { recursive: true });
  }
}

/** As Thrift's compact protocol writes a whole number: zigzag, seven bits a byte. */
function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value * 2;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
}

/** What a file tells of its columns: row group, first byte of the data, of the dictionary, and of the filter, and its length. */
async function columnsOf(path: string, dir: string): Promise<readonly (readonly number[])[]> {
  const engine = await Engine.open({ scratchDir: dir, signal });
  const fields = ['row_group_id', 'data_page_offset', 'dictionary_page_offset', 'bloom_filter_offset'];
  const numbers = [...fields, 'bloom_filter_length'].map((name) => `coalesce(${name}, 0)::DOUBLE`).join(', ');
  const found: number[][] = [];
  const query = `SELECT ${numbers} FROM parquet_metadata('${path}') ORDER BY row_group_id, column_id`;
  for await (const rows of engine.rows(query)) found.push(...rows.map((row) => row.map(Number)));
  engine.close();
  return found;
}

/**
 * The file with the filters of each row group behind its data, as parquet-rs lays them: DuckDB lays all of them behind the last
 * one. Offsets are of as many bytes in the footer as before.
 */
function withFiltersBetween(bytes: Buffer, columns: readonly (readonly number[])[]): Buffer {
  const footer = bytes.length - 8 - bytes.readUInt32LE(bytes.length - 8);
  const filters = columns.filter(([, , , filter = 0]) => filter > 0);
  const starts = filters.map(([group]) =>
    Math.min(
      ...columns
        .filter(([g]) => g === group)
        .flatMap(([, data = 0, dictionary = 0]) => (dictionary > 0 ? [data, dictionary] : [data])),
    ),
  );
  const firstFilter = filters[0]?.[3] ?? 0;
  const moved = new Map<number, number>();
  const parts = [bytes.subarray(0, starts[0])];
  let shift = 0;
  for (const [at, [group, , , filter = 0, length = 0]] of filters.entries()) {
    const end = starts[at + 1] ?? firstFilter;
    parts.push(bytes.subarray(starts[at], end), bytes.subarray(filter, filter + length));
    for (const [, data = 0, dictionary = 0] of columns.filter(([g]) => g === group))
      for (const place of [data, dictionary]) moved.set(place, place + shift);
    moved.set(filter, end + shift);
    shift += length;
  }
  const tail = Buffer.from(bytes.subarray(footer));
  for (let at = 0; at < tail.length; at++) {
    const [from, to] =
      [...moved].find(([place]) => place >= 8_192 && tail.indexOf(varint(place), at) === at) ?? [];
    if (from === undefined || to === undefined) continue;
    varint(to).copy(tail, at);
    at += 2;
  }
  return Buffer.concat([...parts, tail]);
}

async function stored(bytes: Buffer, splitBytes = 20_000, key = 'a.parquet') {
  const objects = new MemoryObjectStore();
  await objects.write({ bucket: 'in', key }, bytes);
  const info = {
    bucket: 'in',
    key,
    sizeBytes: bytes.length,
    etag: (await objects.head({ bucket: 'in', key }))?.etag ?? '',
  };
  const pieces = splitObjects([info], { format: 'parquet', splitBytes, field: '' });
  return { objects, pieces, bytes };
}

const input = (objects: MemoryObjectStore, segments: readonly SourceSegment[]) => {
  const meter = new AttemptMeter(new MemoryClock(), signal, () => 0);
  const onBytes = (count: number): void => {
    meter.bytesRead += count;
  };
  const reading = { objects, signal, onBytes };
  const form = { format: 'parquet', header: true, onBadRecord: 'fail' } as const;
  return { meter, source: sourceInput({ ...form, segments, reading, meter }) };
};

/** What a query over each piece gives, one after the other. */
async function overPieces(file: Awaited<ReturnType<typeof parquet>>, query: string): Promise<unknown[]> {
  const rows: unknown[] = [];
  for (const segments of file.pieces) {
    const { source } = input(file.objects, segments);
    const { text } = await runTask(sql, { query }, [source]);
    rows.push(
      ...text
        .toString()
        .split('\n')
        .filter(Boolean)
        .map((line): unknown => JSON.parse(line)),
    );
  }
  return rows;
}

const numbers = "SELECT range AS n, 'text ' || range AS t, 'kind ' || (range % 5) AS kind FROM range(20000)";

describe('a Parquet source of an sql stage', () => {
  it('is cut at row groups, each of which one task reads', async () => {
    const file = await parquet(numbers);
    expect(file.pieces.length).toBeGreaterThan(5);
    const found = await overPieces(file, 'SELECT n::INTEGER AS n, t FROM input');
    expect(found).toEqual(Array.from({ length: 20_000 }, (_, n) => ({ n, t: `text ${String(n)}` })));
  });

  it('keeps types, and passes filters down to what is stored of each row group', async () => {
    const file = await parquet(numbers);
    const counted = await overPieces(
      file,
      "SELECT count(*)::INTEGER AS c FROM input WHERE kind = 'kind 3' AND n >= 100",
    );
    expect(counted.reduce<number>((sum, row) => sum + (row as { c: number }).c, 0)).toBe(3_980);
    expect(await overPieces(file, "SELECT t FROM input WHERE kind = 'nothing'")).toEqual([]);
    const [first] = await overPieces(file, 'SELECT typeof(n) AS n, typeof(t) AS t FROM input LIMIT 1');
    expect(first).toEqual({ n: 'BIGINT', t: 'VARCHAR' });
  });

  it('is filtered by what lies between row groups, also of those that other tasks read', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'parquet-'));
    try {
      const path = join(dir, 'a');
      const plain = await parquet(numbers);
      await writeFile(path, plain.bytes);
      const between = withFiltersBetween(plain.bytes, await columnsOf(path, dir));
      await writeFile(path, between);
      const columns = await columnsOf(path, dir);
      const places = columns.flatMap(([, data = 0, , filter = 0]) => (filter > 0 ? [data, filter] : []));
      expect(places.length).toBeGreaterThan(10);
      expect(places).toEqual(places.toSorted((a, b) => a - b));
      const file = await stored(between);
      expect(file.pieces.length).toBeGreaterThan(5);
      const found = await overPieces(file, "SELECT n::INTEGER AS n FROM input WHERE kind = 'kind 3'");
      expect(found).toEqual(Array.from({ length: 4_000 }, (_, at) => ({ n: 5 * at + 3 })));
      expect(await overPieces(file, "SELECT n FROM input WHERE kind = 'kind 33'")).toEqual([]);
    } finally {
      await rm(dir, { recursive: true });
    }
  });

  it('fetches a task’s own row groups and the footer, and counts rows and bytes', async () => {
    const file = await parquet(numbers);
    let [bytes, records] = [0, 0];
    for (const segments of file.pieces) {
      const { source, meter } = input(file.objects, segments);
      let fetched = 0;
      const files = (source.files ?? []).map((one) => ({
        ...one,
        async *read(start: number, end: number) {
          fetched += end - start;
          yield* one.read(start, end);
        },
      }));
      await runTask(sql, { query: 'SELECT sum(n) FROM input' }, [{ ...source, files }], {
        tally: ({ in: count = 0 }) => {
          records += count;
        },
      });
      // The end of the file is looked at in 64 KiB.
      expect(fetched).toBeLessThan(70_000 + 2 * 20_000);
      bytes += meter.bytesRead;
    }
    expect(records).toBe(20_000);
    expect(bytes).toBeLessThanOrEqual(2 * file.bytes.length);
  });

  it('knows its columns where no row group is its own, or there are no rows', async () => {
    const one = await parquet(numbers, { rowGroup: 100_000, splitBytes: 50_000 });
    expect(one.pieces.length).toBeGreaterThan(2);
    expect(await overPieces(one, 'SELECT count(*)::INTEGER AS c, max(kind) AS k FROM input')).toEqual([
      { c: 20_000, k: 'kind 4' },
      ...one.pieces.slice(1).map(() => ({ c: 0, k: null })),
    ]);
    // One has all of it to read, and the others nothing, whatever their bytes of the file.
    const tallies: [read: number, total: number][] = [];
    for (const segments of one.pieces) {
      const { source, meter } = input(one.objects, segments);
      meter.bytesTotal = segments.reduce((sum, { start, end }) => sum + end - start, 0);
      await runTask(sql, { query: 'SELECT count(*) FROM input' }, [source]);
      tallies.push([meter.bytesRead, meter.bytesTotal]);
    }
    const [first, ...others] = tallies;
    expect(others).toEqual(one.pieces.slice(1).map(() => [0, 0]));
    expect(first?.[0]).toBe(first?.[1]);
    expect(first?.[0]).toBeGreaterThan(0.9 * one.bytes.length);
    expect(first?.[0]).toBeLessThan(one.bytes.length);
    const none = await parquet(`${numbers} LIMIT 0`);
    expect(await overPieces(none, 'SELECT count(*)::INTEGER AS c, max(t) AS t FROM input')).toEqual([
      { c: 0, t: null },
    ]);
  });

  it.each([
    ['text', Buffer.from('n,t\n1,a\n'.repeat(10)), 'it does not end with PAR1'],
    ['nothing much', Buffer.from('PAR1'), 'it is too short'],
    [
      'a footer beyond its begin',
      Buffer.from('PAR1....\xff\xff\xff\x00PAR1', 'latin1'),
      'its footer is longer than the file',
    ],
    ['a footer of junk', Buffer.from('PAR1junk\x04\x00\x00\x00PAR1', 'latin1'), ''],
  ])('is refused by name where it is %s', async (_, bytes, why) => {
    const { objects, pieces } = await stored(bytes);
    const { source } = input(objects, pieces[0] ?? []);
    const run = runTask(sql, { query: 'SELECT * FROM input' }, [source]);
    await expect(run).rejects.toThrow(`s3://in/a.parquet is not a Parquet file that can be read: ${why}`);
  });

  it('is for sql alone', () => {
    const stage = (operator: string) => ({
      name: 'job',
      stages: [
        {
          name: 'a',
          operator,
          options: { query: 'SELECT 1' },
          inputs: [{ s3: ['s3://bucket/a.parquet'], format: 'parquet' }],
        },
      ],
    });
    expect(jobSpecSchema.safeParse(stage('sql')).success).toBe(true);
    const { error } = jobSpecSchema.safeParse(stage('tokenize'));
    expect(error?.issues[0]).toMatchObject({ path: ['stages', 0, 'inputs', 0, 'format'] });
    expect(error?.issues[0]?.message).toContain('Parquet is read by stages of the operator "sql" alone');
  });
});
