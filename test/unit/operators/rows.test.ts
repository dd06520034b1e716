import { describe, expect, it } from 'vitest';
import { builtinJob } from '../../../src/operators/builtin-jobs.ts';
import { addExactly, roundSum } from '../../../src/operators/exact-sum.ts';
import { operators } from '../../../src/operators/registry.ts';
import { recordsOf, runJob, runTask, seeded, sourceOf } from '../../support/operator-bench.ts';

const sales = {
  's3://bucket/sales.csv': Buffer.from('shop,price\nx,1.5\n"y,z",9007199254740993\nx,\ny,2\nx,-3\n"y,z",1\n'),
};
const join = (parts: Buffer[]): string => Buffer.concat(parts).toString();

describe('groupby', () => {
  it('writes CSV with one header, quotes what needs it, and sums whole numbers exactly', async () => {
    const job = builtinJob('groupby', {
      inputs: Object.keys(sales),
      key: 'shop',
      partitions: 1,
      aggregates: [
        { op: 'count' },
        { op: 'sum', column: 'price' },
        { op: 'max', column: 'price', as: 'top' },
      ],
    });
    expect(join(await runJob(job, sales))).toBe(
      'shop,count,sum_price,top\nx,3,-1.5,1.5\ny,1,2,2\n"y,z",2,9007199254740994,9007199254740993\n',
    );
  });

  it('writes NDJSON where it is told to, null where there is nothing to aggregate', async () => {
    const files = {
      's3://bucket/a': Buffer.from('{"k":null}\n{"k":1,"v":0.1}\n{"k":1,"v":0.2}\n{"v":null}\n{"k":"1"}\n'),
    };
    const job = builtinJob('groupby', {
      inputs: Object.keys(files),
      format: 'ndjson',
      key: 'k',
      partitions: 1,
      aggregates: [
        { op: 'sum', column: 'v' },
        { op: 'avg', column: 'v' },
        { op: 'count', column: 'v' },
      ],
    });
    expect(join(await runJob(job, files))).toBe(
      '{"k":"1","sum_v":null,"avg_v":null,"count_v":0}\n' +
        '{"k":1,"sum_v":0.30000000000000004,"avg_v":0.15000000000000002,"count_v":2}\n' +
        '{"k":null,"sum_v":null,"avg_v":null,"count_v":0}\n',
    );
  });

  it('fails on a value that is no number, and on a column that a CSV file does not have', async () => {
    const job = (column: string) =>
      builtinJob('groupby', {
        inputs: Object.keys(sales),
        key: 'price',
        aggregates: [{ op: 'sum', column }],
      });
    await expect(runJob(job('shop'), sales)).rejects.toThrow('column "shop" must hold numbers');
    await expect(runJob(job('cost'), sales)).rejects.toThrow('no column "cost"; the columns are shop, price');
  });

  it.each([
    [{ key: [], aggregates: [{ op: 'count' }] }, 'options.key'],
    [{ key: 'a', aggregates: [] }, 'options.aggregates'],
    [{ key: 'a', aggregates: [{ op: 'median', column: 'b' }] }, 'options.aggregates.0.op'],
    [{ key: 'a', aggregates: [{ op: 'sum' }] }, 'options.aggregates.0.column'],
    [{ key: 'a', aggregates: [{ op: 'count', as: 'a' }] }, 'options.aggregates.0.as'],
    [{ key: 'a', aggregates: [{ op: 'count' }], keys: 'b' }, 'options.keys'],
  ])('refuses %j', (options, field) => {
    expect(() => {
      operators['groupby-map'].check(options);
    }).toThrow(field);
  });
});

describe('exact sums', () => {
  it('do not depend on order, and round once', () => {
    const terms = [1e16, 1, -1e16, 0.1, 0.2, -0.3, 1e-30, 2 ** 53, 1];
    const sum = (list: number[]): number => {
      const parts: number[] = [];
      for (const term of list) addExactly(parts, term);
      return roundSum(parts);
    };
    expect(sum(terms)).toBe(9007199254740994);
    expect(sum(terms.toReversed())).toBe(9007199254740994);
    expect(sum([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])).toBe(1);
    expect(sum([])).toBe(0);
  });
});

const people = { 's3://bucket/people.csv': Buffer.from('id,name\n1,Ann\n2,Bo\n,Cy\n') };
const orders = {
  's3://bucket/orders.ndjson': Buffer.from('{"id":1,"name":"tea"}\n{"id":"2","name":"jam"}\n{"name":"x"}\n'),
};

describe('join', () => {
  it.each([true, false])('joins CSV with NDJSON by the text of the keys, broadcast %s', async (broadcast) => {
    const job = builtinJob('join', {
      inputs: Object.keys(people),
      right: Object.keys(orders),
      format: 'csv',
      rightFormat: 'ndjson',
      rows: 'ndjson',
      leftKey: 'id',
      broadcast,
    });
    const lines = join(await runJob(job, { ...people, ...orders }))
      .split('\n')
      .filter(Boolean)
      .sort();
    expect(lines).toEqual([
      '{"id":"1","name":"Ann","name_right":"tea"}',
      '{"id":"2","name":"Bo","name_right":"jam"}',
    ]);
  });

  it.each([true, false])(
    'names right-hand fields by each left-hand record, or by the columns that are asked for (broadcast %s)',
    async (broadcast) => {
      const [left, right] = ['s3://bucket/left', 's3://bucket/right'];
      const files = {
        [left]: Buffer.from('{"id":1,"name":"a"}\n{"id":2}\n'),
        [right]: Buffer.from('{"id":1,"name":"A"}\n{"id":2,"name":"B"}\n'),
      };
      const rowsOf = async (leftColumns?: readonly string[]): Promise<string[]> => {
        const sides = { inputs: [left], right: [right], format: 'ndjson', leftKey: 'id', broadcast } as const;
        const job = builtinJob('join', { ...sides, ...(leftColumns === undefined ? {} : { leftColumns }) });
        return join(await runJob(job, files))
          .split('\n')
          .filter(Boolean)
          .sort();
      };
      expect(await rowsOf()).toEqual(['{"id":1,"name":"a","name_right":"A"}', '{"id":2,"name":"B"}']);
      expect(await rowsOf(['id', 'name'])).toEqual([
        '{"id":1,"name":"a","name_right":"A"}',
        '{"id":2,"name":null,"name_right":"B"}',
      ]);
    },
  );

  it('keeps the columns that are asked for, in that order, and writes a header though nothing matches', async () => {
    const job = builtinJob('join', {
      inputs: Object.keys(people),
      right: Object.keys(people),
      leftKey: 'id',
      leftColumns: ['name', 'id'],
      rightColumns: ['name'],
    });
    const text = join(await runJob(job, people));
    expect(text.split('\n')[0]).toBe('name,id,name_right');
    expect(text.split('\n').sort()).toEqual(['', 'Ann,1,Ann', 'Bo,2,Bo', 'Cy,,Cy', 'name,id,name_right']);
  });

  it('writes rows of a hot key to disk and loses none', async () => {
    const record = (side: string, at: number) => ({
      key: Buffer.from('"k"'),
      value: Buffer.from(JSON.stringify({ [side]: `${side}${String(at)}\u2028` })),
    });
    const rows = (side: string) => Array.from({ length: 30 }, (_, at) => record(side, at));
    const inputs = [recordsOf('l', rows('l'), seeded(1)), recordsOf('r', rows('r'), seeded(2))];
    const options = { leftKey: 'k', rightKey: 'k', maxGroupBytes: 100 };
    const { text } = await runTask(operators['join-reduce'], options, inputs);
    const lines = text.toString().split('\n').filter(Boolean);
    expect(lines).toHaveLength(900);
    expect(new Set(lines).size).toBe(900);
  });

  it('says to shuffle both sides instead where the right-hand side is too large to hold', async () => {
    const right = [{ key: Buffer.from('"k"'), value: Buffer.from('{"a":1}') }];
    const inputs = [sourceOf(Buffer.from('id\n1\n'), seeded(1), 'csv'), recordsOf('right', right, seeded(1))];
    const options = { key: 'id', leftKey: 'id', rightKey: 'id', maxTableBytes: 5 };
    await expect(runTask(operators['join-probe'], options, inputs)).rejects.toThrow(
      'shuffle both sides instead',
    );
  });
});

describe('rows with values that cannot be used', () => {
  const options = {
    key: ['k'],
    aggregates: [
      { op: 'sum', column: 'a' },
      { op: 'sum', column: 'b' },
    ],
  };
  const rows = Buffer.from('k,a,b\nx,1,2\nx,10,oops\ny,oops,5\nx,3,4\n');

  it('are left out whole where the input skips bad records, and counted', async () => {
    let skipped = 0;
    const input = { ...sourceOf(rows, seeded(1), 'csv'), onBadValue: () => skipped++ };
    const { collector } = await runTask(operators['groupby-map'], options, [input]);
    const sums = collector.records.map(({ key, value }) => [
      key.toString(),
      (JSON.parse(value.toString()) as { count: number; parts: number[] }[]).map(({ count, parts }) => [
        count,
        parts.reduce((sum, part) => sum + part, 0),
      ]),
    ]);
    // 1 + 3 and 2 + 4: nothing of the row that was left out, and no group that has no other rows.
    expect(sums).toEqual([
      [
        '["x"]',
        [
          [2, 4],
          [2, 6],
        ],
      ],
    ]);
    expect(skipped).toBe(2);
  });

  it('fail the task elsewhere', async () => {
    const input = sourceOf(rows, seeded(1), 'csv');
    await expect(runTask(operators['groupby-map'], options, [input])).rejects.toThrow(
      'column "b" must hold numbers to be aggregated, not "oops"',
    );
  });

  it('are no excuse for a column that is not there', async () => {
    const input = { ...sourceOf(rows, seeded(1), 'csv'), onBadValue: () => undefined };
    await expect(runTask(operators['groupby-map'], { ...options, key: ['z'] }, [input])).rejects.toThrow(
      'there is no column "z"',
    );
  });
});
