import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { TaskInput } from '../../../src/worker/operator.ts';
import { failureOf } from '../../../src/worker/failure-of.ts';
import { operators } from '../../../src/operators/registry.ts';
import { recordsOf, runJob, runTask, seeded, sourceOf } from '../../support/operator-bench.ts';

const { sql } = operators;
const orders = Buffer.from('id,customer,amount\n1,a,10.50\n2,b,3\n3,a,0.25\n4,"c,""d",\n');
const countAll = 'SELECT count(*) AS n FROM input';
const source = () => sourceOf(orders, seeded(1), 'csv');
const run = async (query: string, options = {}) =>
  (await runTask(sql, { query, output: 'ndjson', ...options }, [source()])).text.toString();

describe('sql', { timeout: 60_000 }, () => {
  it('selects from the files of its input, whose columns are texts', async () => {
    const query = `SELECT customer, sum(nullif(amount, '')::DECIMAL(9, 2)) AS total FROM input GROUP BY ALL ORDER BY 1`;
    expect(await run(query)).toBe(
      '{"customer":"a","total":10.75}\n{"customer":"b","total":3.00}\n{"customer":"c,\\"d","total":null}\n',
    );
    expect(await run(`${query};`, { output: 'csv' })).toBe('customer,total\na,10.75\nb,3.00\n"c,""d",\n');
  });

  it('names tables as it is told, and knows the columns of a file without rows', async () => {
    const inputs = [source(), sourceOf(Buffer.from('id,name\n'), seeded(1), 'csv')];
    const query = 'SELECT count(*) AS n, count(p.name) AS named FROM o LEFT JOIN p ON o.customer = p.id';
    const { text } = await runTask(sql, { query, tables: ['o', 'p'] }, inputs);
    expect(text.toString()).toBe('{"n":4,"named":0}\n');
  });

  it('has the columns of the first file first, also in tasks that read others', async () => {
    const query = 'SELECT * FROM input ORDER BY id';
    const at = async (task: number, text: string): Promise<string> => {
      const own = sourceOf(Buffer.from(text), seeded(1), 'csv');
      const input = { ...own, firstColumns: () => Promise.resolve(['id', 'name']) };
      return (await runTask(sql, { query, output: 'csv' }, [input], { task })).text.toString();
    };
    expect(await at(0, 'id,name\n1,a\n')).toBe('id,name\n1,a\n');
    expect(await at(1, 'name,id\nb,2\n')).toBe('2,b\n');
    expect(await at(2, 'id\n3\n')).toBe('3,\n');
  });

  it('fails where a later file has a column of its own that the result would have, and only there', async () => {
    const at = async (query: string, task: number, texts: readonly string[], tasks = 2): Promise<string> => {
      const own = sourceOf(Buffer.from(texts[task] ?? ''), seeded(1), 'csv');
      const input = { ...own, firstColumns: () => Promise.resolve(['id', 'x']) };
      return (await runTask(sql, { query, output: 'csv' }, [input], { task, tasks })).text.toString();
    };
    const files = ['id,x\n1,10\n', 'id,X,extra\n2,20,no\n'];
    expect(await at('SELECT * FROM input', 0, files)).toBe('id,x\n1,10\n');
    await expect(at('SELECT * FROM input', 1, files)).rejects.toThrow(
      'the files of input have different columns: "extra" is not among id, x',
    );
    // In whatever order the two kinds of files are read by one task of several.
    await expect(at('SELECT * FROM input', 0, ['id,x,extra\n2,20,no\n'])).rejects.toThrow('"extra"');
    await expect(at('SELECT input AS row FROM input', 1, files)).rejects.toThrow('"extra"');
    expect(await at('SELECT x, id FROM input', 1, files)).toBe('20,2\n');
    expect(await at('SELECT count(*) AS n FROM input -- all', 1, files)).toBe('1\n');
    // Of what a query names itself, a task without it says so.
    expect(await at('SELECT id, extra FROM input', 1, files)).toBe('2,no\n');
    expect(await at("SELECT id FROM input WHERE extra = 'no'", 1, files)).toBe('2\n');
    await expect(at('SELECT id, extra FROM input', 0, files)).rejects.toThrow(/options\.query: .*extra/);
    await expect(at('SELECT *, none FROM input', 1, files)).rejects.toThrow(/options\.query: .*none/);
    expect(await at('SELECT * FROM input', 0, ['id,x,extra\n2,20,no\n'], 1)).toBe('id,x,extra\n2,20,no\n');
  });

  it.each([
    ['SELECT * EXCLUDE (extra), upper(extra) AS e FROM input ORDER BY id', 'id,x,e\n1,,P\n2,q,R\n'],
    ['SELECT *, extra AS e FROM input ORDER BY id', 'id,x,extra,e\n1,,p,p\n2,q,r,r\n'],
  ])('knows a column once that several of the files of a task have: %s', async (query, text) => {
    const at = async (second: string): Promise<string> => {
      const files = ['id,extra\n1,p\n', `x,${second},id\nq,r,2\n`];
      const sources = files.map((file) => sourceOf(Buffer.from(file), seeded(1), 'csv'));
      const csv = async function* (): ReturnType<NonNullable<TaskInput['csv']>> {
        for (const own of sources) yield* own.csv?.() ?? [];
      };
      const input = { ...source(), csv, firstColumns: () => Promise.resolve(['id', 'x']) };
      return (await runTask(sql, { query, output: 'csv' }, [input], { tasks: 2 })).text.toString();
    };
    expect(await at('extra')).toBe(text);
    expect(await at('EXTRA')).toBe(text);
  });

  it('writes a column that a later file has besides where each row says what its columns are', async () => {
    const own = sourceOf(Buffer.from('id,x,extra\n2,20,no\n'), seeded(1), 'csv');
    const input = { ...own, firstColumns: () => Promise.resolve(['id', 'x']) };
    const { text } = await runTask(sql, { query: 'SELECT * FROM input' }, [input], { task: 1, tasks: 2 });
    expect(text.toString()).toBe('{"id":"2","x":"20","extra":"no"}\n');
  });

  it('keeps a byte order mark that the first value begins with', async () => {
    const rows = sourceOf(Buffer.from('\uFEFFa\n\uFEFFx\ny\n'), seeded(1), 'csv');
    const { text } = await runTask(sql, { query: 'SELECT a, length(a) AS n FROM input' }, [rows]);
    expect(text.toString()).toBe('{"a":"\uFEFFx","n":2}\n{"a":"y","n":1}\n');
  });

  it('reads NDJSON by what its values are', async () => {
    const rows = sourceOf(Buffer.from('{"a":1,"b":[1,2]}\n{"a":2.5,"c":"x"}\n'), seeded(1), 'ndjson');
    const { text } = await runTask(sql, { query: 'SELECT sum(a) AS s, max(c) AS c FROM input' }, [rows]);
    expect(text.toString()).toBe('{"s":3.5,"c":"x"}\n');
  });

  it('sends rows to the next stage by partitionBy, all of a key to one task, with the columns where there are none', async () => {
    const rows = Array.from({ length: 5_000 }, (_, at) => `k${String(at % 7)},${String(at)}\n`).join('');
    const input = sourceOf(Buffer.from(`k,v\n${rows}`), seeded(1), 'csv');
    const options = { query: 'SELECT k, v::BIGINT AS v FROM input', partitionBy: ['k'] };
    const { collector } = await runTask(sql, options, [input], { partitions: 16, isFinal: false });
    const sums: unknown[] = [];
    for (let partition = 0; partition < 16; partition++) {
      const records = collector.sorted(partition, sql, {});
      const query = 'SELECT k, sum(v)::BIGINT AS v, count(*) AS n FROM map GROUP BY k';
      const { text } = await runTask(sql, { query }, [recordsOf('map', records, seeded(1))]);
      sums.push(
        ...text
          .toString()
          .split('\n')
          .filter(Boolean)
          .map((line): unknown => JSON.parse(line)),
      );
    }
    const expected = Array.from({ length: 7 }, (_, key) => {
      const own = Array.from({ length: 5_000 }, (_, at) => at).filter((at) => at % 7 === key);
      return { k: `k${String(key)}`, v: own.reduce((sum, at) => sum + at, 0), n: own.length };
    });
    expect(sums).toHaveLength(7);
    expect(sums).toEqual(expect.arrayContaining(expected));
  });

  it('counts rows as records, and neither the pieces that they travel in nor lines of Parquet', async () => {
    const seen = { in: 0, out: 0 };
    const tally = (records: { readonly in?: number; readonly out?: number }): void => {
      seen.in += records.in ?? 0;
      seen.out += records.out ?? 0;
    };
    const options = { query: 'SELECT id, customer FROM input', partitionBy: ['id'] };
    const { records } = await runTask(sql, options, [source()], { partitions: 8, isFinal: false, tally });
    // Each partition gets the columns, and some rows.
    expect(records.length).toBeGreaterThan(8);
    expect(seen.out + records.length).toBe(4);
    const query = { query: 'SELECT * FROM map WHERE id::INTEGER > 1', output: 'parquet' };
    const { text, collector } = await runTask(sql, query, [recordsOf('map', records, seeded(1))], { tally });
    expect(seen.in + records.length).toBe(4);
    expect(collector.told).toBe(3);
    expect(seen.out + records.length).toBe(4);
    expect(text.subarray(-4).toString()).toBe('PAR1');
  });

  it('runs as stages of a job', async () => {
    const files = { 's3://bucket/a.csv': orders };
    const stages = [
      {
        name: 'first',
        operator: 'sql',
        options: { query: 'SELECT customer, amount FROM input', partitionBy: ['customer'] },
        partitions: 3,
        inputs: [{ s3: Object.keys(files), format: 'csv' }],
      },
      {
        name: 'second',
        operator: 'sql',
        options: { query: 'SELECT customer, count(*) AS n FROM first GROUP BY ALL' },
        inputs: [{ stage: 'first', pattern: 'all-to-all' }],
      },
    ] as const;
    const parts = await runJob({ name: 'two', stages: JSON.parse(JSON.stringify(stages)) }, files);
    const lines = Buffer.concat(parts).toString().split('\n').filter(Boolean).sort();
    expect(lines).toEqual([
      '{"customer":"a","n":2}',
      '{"customer":"b","n":1}',
      '{"customer":"c,\\"d","n":1}',
    ]);
  });

  it.each([
    ['', 'options.query'],
    ['DROP TABLE input', 'options.query must be one SELECT'],
    ["ATTACH '/tmp/x.db'", 'options.query must be one SELECT'],
    ["COPY input TO '/tmp/x'", 'options.query must be one SELECT'],
    ['INSTALL httpfs', 'options.query must be one SELECT'],
    ['LOAD httpfs', 'options.query must be one SELECT'],
    ['SET enable_external_access = true', 'options.query must be one SELECT'],
    ['PRAGMA database_list', 'options.query must be one SELECT'],
    ['/* SELECT */ CALL pragma_version()', 'options.query must be one SELECT'],
  ])('refuses %j where a job is submitted', (query, words) => {
    expect(() => {
      sql.check({ query });
    }).toThrow(words);
  });

  it.each([
    ['/* a */ -- b\n/* c * / */ SELECT 1', true],
    ['\n/* a /* b */ c */\tselect 1', true],
    ['/***/(SELECT 1)', true],
    ['--SELECT 1\n --\nWITH a AS (SELECT 1) FROM a', true],
    ['-- SELECT 1', false],
    ['/* SELECT 1', false],
    ['/* a */ */ SELECT 1', false],
    ['- SELECT 1', false],
  ])('looks behind the comments of %j for a query', (query, isQuery) => {
    const check = (): void => {
      sql.check({ query });
    };
    if (isQuery) expect(check).not.toThrow();
    else expect(check).toThrow('options.query must be one SELECT');
  });

  it('refuses thousands of comments before what is no query in no time', () => {
    const startedMs = performance.now();
    for (const comment of ['/**/', '/*', '--\n', ' '])
      expect(() => {
        sql.check({ query: `${comment.repeat(15_000)}x` });
      }).toThrow('options.query must be one SELECT');
    expect(performance.now() - startedMs).toBeLessThan(5_000);
  });

  it.each([
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM read_text('/proc/self/environ')",
    "SELECT * FROM read_blob('../../../../etc/passwd')",
    "SELECT * FROM read_csv('https://example.com/x.csv')",
    "SELECT * FROM read_parquet('s3://bucket/key')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT getenv('HOME')",
    "SELECT 1; ATTACH '/tmp/x.db'",
    "SELECT 1; COPY (SELECT 1) TO '/tmp/outrider-escaped'",
    'SELECT 1; SET enable_external_access = true',
    "SELECT 1) TO '/tmp/outrider-escaped'; --",
    'WITH a AS (SELECT 1) INSERT INTO input SELECT * FROM a',
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM parquet_metadata('/etc/passwd')",
    "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
    'SELECT * FROM elsewhere',
  ])('refuses %j with one clear error', async (query) => {
    await expect(run(query)).rejects.toThrow(/^options\.query(:| must be one SELECT)/);
  });

  it.each<[string, string, TaskInput]>([
    [
      'what a query holds',
      'SELECT list(a.k || b.k) AS n FROM input a, input b',
      sourceOf(
        Buffer.from(`k\n${Array.from({ length: 3_000 }, (_, at) => `key${String(at)}\n`).join('')}`),
        seeded(1),
        'csv',
      ),
    ],
    [
      'a long record of CSV',
      countAll,
      sourceOf(Buffer.from(`k\n${'x'.repeat(9_000_000)}\n`), seeded(1), 'csv'),
    ],
    [
      'a long record of NDJSON',
      countAll,
      sourceOf(Buffer.from(`{"k":"${'x'.repeat(9_000_000)}"}\n`), seeded(1), 'ndjson'),
    ],
  ])(
    'fails for want of memory, which a larger worker has, and so says in one line: %s',
    async (_, query, input) => {
      const engine = { memoryBytes: 8 * 1024 * 1024, threads: 1 };
      const failure = await runTask(sql, { query }, [input], { engine }).then(
        () => undefined,
        (error: unknown) => failureOf(error, 'operator'),
      );
      expect(failure).toEqual({
        cause: 'out-of-memory',
        message: expect.stringMatching(
          /^DuckDB has too little memory on a worker of this size \(8 MiB\): (could not|failed to) allocate [^*]*$/,
        ) as unknown,
      });
    },
  );

  it.each<[string, string, string, RegExp]>([
    ['half a character', '{"k":"\\ud800","v":1}', 'bad-record', /^a text or name has half a character/],
    ['a name with half a character', '{"\\udfff":1}', 'bad-record', /^a text or name has half a character/],
    [
      'more levels than DuckDB takes',
      `{"k":${'['.repeat(900)}1${']'.repeat(900)}}`,
      'bad-input',
      /^the rows of input make no table: Binder Error: Max expression depth/,
    ],
  ])(
    'says of NDJSON with %s that it cannot read it, and names no file of its own',
    async (_, line, cause, words) => {
      const input = sourceOf(Buffer.from(`${line}\n`), seeded(1), 'ndjson');
      const error: unknown = await runTask(sql, { query: 'SELECT k FROM input' }, [input]).catch(
        (thrown: unknown) => thrown,
      );
      const failure = failureOf(error, 'operator');
      expect(failure).toEqual({ cause, message: expect.stringMatching(words) as unknown });
      expect(failure.message).not.toContain(tmpdir());
    },
  );

  it('tells where a value is not of its column without a name of a scratch file', async () => {
    const input = sourceOf(Buffer.from('{"k":1}\n{"k":"x"}\n'), seeded(1), 'ndjson');
    const options = { query: 'SELECT k FROM input', columns: { input: { k: 'BIGINT' } } };
    await expect(runTask(sql, options, [input])).rejects.toThrow(
      'options.query: the query fails: Invalid Input Error: JSON transform error in what this task reads of inputs[0], in line 2: Failed to cast value to numerical',
    );
  });

  it('leaves out what has half a character where bad records are left out', async () => {
    const lines = '{"k":"a"}\n{"k":"\\ud800","other":1}\n{"k":"\\\\ud800"}\n';
    let left = 0;
    const input = {
      ...sourceOf(Buffer.from(lines), seeded(1), 'ndjson'),
      onBadValue: () => {
        left++;
      },
    };
    const { text } = await runTask(sql, { query: 'SELECT * FROM input' }, [input]);
    expect([text.toString(), left]).toEqual(['{"k":"a"}\n{"k":"\\\\ud800"}\n', 1]);
  });

  it.each(['extension', 'secret', 'interrupts'])(
    'names a column %s that is not there as any other',
    async (column) => {
      await expect(run(`SELECT ${column} FROM input`)).rejects.toThrow(
        new RegExp(`^options\\.query: the query fails: Binder Error: .*"${column}" not found`),
      );
    },
  );

  it('writes no log where a query would have one', async () => {
    const path = join(tmpdir(), `outrider-sql-log-${String(process.pid)}`);
    await run(`SELECT * FROM enable_logging(storage = 'file', storage_path = '${path}')`).catch(
      () => undefined,
    );
    expect(existsSync(path)).toBe(false);
  });
});
