import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { job, type Key, read } from '../../../src/dataflow/index.ts';
import { runJob } from '../../../src/dataflow/testing.ts';

const sizes = [1, 2, 5].flatMap((tasks) => [1, 3].map((partitions) => ({ tasks, partitions })));
const lines = ['the cat', 'sat on', 'the mat', '', 'on the cat'];
const words = read.text().flatMap((line) => line.split(' ').filter((word) => word !== ''));

describe.each(sizes)('on $tasks tasks and $partitions partitions', (options) => {
  it('maps, filters and expands', async () => {
    const upper = job(
      'upper',
      words
        .filter((word) => word !== 'on')
        .map((word) => word.toUpperCase())
        .write.text(),
    );
    const { text, records } = await runJob(upper, lines, options);
    expect(text).toBe('THE\nCAT\nSAT\nTHE\nMAT\nTHE\nCAT\n');
    expect(records).toHaveLength(7);
  });

  it('reduces by key, combined before the shuffle or not', async () => {
    const counted = [
      ['cat', 2],
      ['mat', 1],
      ['on', 2],
      ['sat', 1],
      ['the', 3],
    ];
    const reduced = words.map((word): [string, number] => [word, 1]).keyBy(([word]) => word);
    const pairs = job(
      'reduced',
      reduced
        .reduce(([word, a], [, b]) => [word, a + b])
        .map(([, pair]) => pair)
        .write.ndjson(),
    );
    const { zero, add } = { zero: () => 0, add: (sum: number) => sum + 1 };
    const keyed = words.keyBy((word) => word);
    const merged = job('merged', keyed.aggregate({ zero, add, merge: (a, b) => a + b }).write.ndjson());
    const plain = job('plain', keyed.aggregate({ zero, add }).write.ndjson());
    for (const each of [pairs, merged, plain]) {
      expect([...(await runJob(each, lines, options)).records].sort()).toEqual(counted);
    }
  });

  it('groups', async () => {
    const grouped = job('grouped', words.groupBy((word) => word.length).write.ndjson());
    const { records } = await runJob(grouped, lines, options);
    expect([...records].sort(([a], [b]) => a - b)).toEqual([
      [2, ['on', 'on']],
      [3, ['the', 'cat', 'sat', 'the', 'mat', 'the', 'cat']],
    ]);
  });

  it.each([false, true])('joins (broadcast: %s), inner and left', async (broadcast) => {
    const orders = read.csv({ input: 'orders', columns: ['id', 'customer'] });
    const names = read.ndjson<{ id: number; name: string }>({ input: 'customers' });
    const left = orders.keyBy(({ customer }) => customer);
    const right = names.keyBy(({ id }) => String(id));
    const rows = (how: 'inner' | 'left') =>
      job(
        'joined',
        (how === 'inner' ? left.join(right, { broadcast }) : left.join(right, { broadcast, how: 'left' }))
          .map(([key, [order, customer]]) => ({ key, id: order.id, name: customer?.name ?? 'nobody' }))
          .write.csv(['id', 'key', 'name']),
      );
    const inputs = {
      orders: [
        { id: 'a', customer: '1' },
        { id: 'b', customer: '2' },
        { id: 'c', customer: '1' },
        { id: 'd', customer: '9' },
      ],
      customers: [
        { id: 1, name: 'Ann, of A' },
        { id: 2, name: 'Bo' },
        { id: 2, name: 'Bea' },
      ],
    };
    const sorted = (text: string): string[] => text.trimEnd().split('\n').sort();
    const inner = ['a,1,"Ann, of A"', 'b,2,Bea', 'b,2,Bo', 'c,1,"Ann, of A"', 'id,key,name'];
    expect(sorted((await runJob(rows('inner'), inputs, options)).text)).toEqual(inner);
    const withLeft = [...inner.slice(0, 4), 'd,9,nobody', 'id,key,name'];
    expect(sorted((await runJob(rows('left'), inputs, options)).text)).toEqual(withLeft);
  });

  it('sorts', async () => {
    const numbers = Array.from({ length: 500 }, (_, index) => ({ n: (index * 7919) % 499, index }));
    const expected = numbers.toSorted((a, b) => a.n - b.n).map(({ n, index }) => [n, index]);
    const source = read.ndjson<{ n: number; index: number }>();
    const up = job(
      'up',
      source
        .sortBy(({ n }) => n)
        .map(({ n, index }) => [n, index])
        .write.ndjson(),
    );
    expect((await runJob(up, numbers, options)).records).toEqual(expected);
    const down = job(
      'down',
      source
        .sortBy(({ n }) => [n, 'x'], { descending: true, parts: 1 })
        .map(({ n }) => n)
        .write.ndjson(),
    );
    expect((await runJob(down, numbers, options)).records).toEqual(expected.map(([n]) => n).reverse());
  });

  it('takes the top, the first of equal ones', async () => {
    const top = job(
      'top',
      words
        .map((word, { input }) => [word, input?.name])
        .top(3, ([word]) => word?.length ?? 0)
        .map(([word]) => word)
        .write.ndjson(),
    );
    expect((await runJob(top, lines, options)).records).toEqual(['the', 'cat', 'sat']);
  });

  it('reads what several steps share once, and goes round and round', async () => {
    const edges = read.text().map((line) => {
      const [from = '', to = ''] = line.split(' ');
      return { from, to };
    });
    const links = edges
      .groupBy(({ from }) => from)
      .map(([from, to]): [string, string[]] => [from, to.map((edge) => edge.to)]);
    let ranks = links.map(([node]): [string, number] => [node, 1]);
    const linked = links.keyBy(([node]) => node);
    for (let round = 0; round < 2; round++) {
      ranks = linked
        .join(ranks.keyBy(([node]) => node))
        .flatMap(([, [[, to], [, rank]]]) => to.map((node): [string, number] => [node, rank / to.length]))
        .keyBy(([node]) => node)
        .aggregate({ zero: () => 0.15, add: (sum, [, share]) => sum + 0.85 * share });
    }
    const { records } = await runJob(
      job('ranks', ranks.sortBy(([node]) => node).write.ndjson()),
      ['a b', 'a c', 'b c', 'c a'],
      options,
    );
    // By hand: after one round a = 1, b = 0.575, c = 1.425; after two:
    expect(records.map(([node, rank]) => [node, Math.round(rank * 1e6) / 1e6])).toEqual([
      ['a', 1.36125],
      ['b', 0.575],
      ['c', 1.06375],
    ]);
  });

  it('joins records with themselves', async () => {
    const keyed = words.keyBy((word) => word.length);
    const pairs = job(
      'pairs',
      keyed
        .join(keyed)
        .filter(([, [a, b]]) => a < b)
        .map(([, pair]) => pair.join('-'))
        .keyBy((pair) => pair)
        .reduce((a) => a)
        .map(([key]) => key)
        .write.text(),
    );
    expect((await runJob(pairs, lines, options)).text.trimEnd().split('\n').sort()).toEqual([
      'cat-mat',
      'cat-sat',
      'cat-the',
      'mat-sat',
      'mat-the',
      'sat-the',
    ]);
  });

  it('counts, also by what was taken out of the context, and carries what JSON would not', async () => {
    const values = words.map((word, { count, progress }) => {
      count('words');
      count('twos', 2);
      progress(0.5);
      return { word, at: new Date(word.length), set: new Set([word]), nothing: undefined, nan: NaN, big: 7n };
    });
    const odd = job(
      'odd',
      values
        .sortBy(({ word }) => word)
        .filter(({ word }) => word === 'mat')
        .write.text(({ word, at, set, nan, big, ...rest }) =>
          [word, at.getTime(), [...set], nan, big, 'nothing' in rest].join(' '),
        ),
    );
    const { text, counters } = await runJob(odd, lines, options);
    expect(text).toBe('mat 3 mat NaN 7 true\n');
    expect(counters).toEqual({ words: 9, twos: 18 });
  });

  it('gives no input a sound output', async () => {
    const totals = job(
      'none',
      words
        .keyBy((word) => word)
        .reduce((a) => a)
        .sortBy(([key]) => key)
        .map(([key]) => ({ key }))
        .write.csv(['key']),
    );
    expect((await runJob(totals, [], options)).text).toBe('key\n');
  });
});

it('orders keys of all kinds as it says', async () => {
  const keys: Key[] = [
    [1, 'b'],
    'b',
    '',
    0,
    -1,
    -Infinity,
    1e300,
    null,
    true,
    false,
    'a\0b',
    'a',
    'é',
    '😀',
    '\uffff',
    ['a'],
    ['a', 1],
    ['a\0'],
    ['ab'],
    [],
    2,
    10,
    1.5,
  ];
  const sorted = job(
    'keys',
    read
      .ndjson<{ key: Key }>()
      .sortBy(({ key }) => key)
      .map(({ key }) => key)
      .write.ndjson(),
  );
  const expected = [
    null,
    false,
    true,
    -Infinity,
    -1,
    0,
    1.5,
    2,
    10,
    1e300,
    '',
    'a',
    'a\0b',
    'b',
    'é',
    '\uffff',
    '😀',
    [],
    [1, 'b'],
    ['a'],
    ['a', 1],
    ['a\0'],
    ['ab'],
  ];
  expect(
    (
      await runJob(
        sorted,
        keys.map((key) => ({ key })),
      )
    ).records,
  ).toEqual(expected);
  const down = job(
    'keys',
    read
      .ndjson<{ key: Key }>()
      .sortBy(({ key }) => key, { descending: true })
      .map(({ key }) => key)
      .write.ndjson(),
  );
  expect(
    (
      await runJob(
        down,
        keys.map((key) => ({ key })),
      )
    ).records,
  ).toEqual(expected.reverse());
});

it('tells keys of several types apart, and gives them back', async () => {
  const keys: Key[] = [1, '1', true, 'true', null, 'null', 0, -0, [1, 2], ['1', 2], '\0list'];
  const counted = job(
    'kinds',
    read
      .ndjson<{ key: Key }>()
      .keyBy(({ key }) => key)
      .aggregate({ zero: () => 0, add: (sum) => sum + 1, merge: (a, b) => a + b })
      .write.ndjson(),
  );
  const { records } = await runJob(
    counted,
    [...keys, ...keys].map((key) => ({ key })),
    { tasks: 3, partitions: 3 },
  );
  expect(new Map(records.map(([key, count]) => [JSON.stringify(key), count]))).toEqual(
    new Map([
      ['1', 2],
      ['"1"', 2],
      ['true', 2],
      ['"true"', 2],
      ['null', 2],
      ['"null"', 2],
      ['0', 4],
      ['[1,2]', 2],
      ['["1",2]', 2],
      ['"\\u0000list"', 2],
    ]),
  );
});

it('takes a record that expands to far more than memory would hold', async () => {
  function* many(): Generator<number> {
    for (let n = 0; n < 3_000_000; n++) yield n % 10;
  }
  const digits = job(
    'many',
    read
      .text()
      .flatMap(many)
      .keyBy((n) => n)
      .aggregate({ zero: () => 0, add: (sum) => sum + 1, merge: (a, b) => a + b })
      .sortBy(([n]) => n)
      .write.ndjson(),
  );
  expect((await runJob(digits, ['x'])).records).toEqual(Array.from({ length: 10 }, (_, n) => [n, 300_000]));
});

describe('records that functions cannot take', () => {
  const rows = [
    { word: 'a', n: 1 },
    { word: 7, n: 2 },
    { n: 3 },
    { word: 'b', n: 4 },
    null,
    { word: 'a', n: null },
  ];
  const readRows = (onBadRecord: 'fail' | 'skip') =>
    read.ndjson<{ word: string; n: { toFixed(): string } }>({ onBadRecord });

  it('are left out, whole, and counted, wherever before the shuffle they fail', async () => {
    for (const options of sizes) {
      const twice = readRows('skip')
        .flatMap(function* ({ word, n }) {
          yield word;
          yield `${word.toUpperCase()}${n.toFixed()}`;
        })
        .write.text();
      const { text, counters } = await runJob(job('twice', twice), rows, options);
      expect([text, counters]).toEqual(['a\nA1\nb\nB4\n', { skippedRecords: 4 }]);

      const keyed = readRows('skip')
        .keyBy(({ word }) => word.toUpperCase())
        .aggregate({ zero: () => '', add: (sum, { n }) => sum + n.toFixed(), merge: (a, b) => a + b });
      const summed = await runJob(job('summed', keyed.write.ndjson()), rows, options);
      expect(summed.records.toSorted()).toEqual([
        ['A', '1'],
        ['B', '4'],
      ]);
      expect(summed.counters).toEqual({ skippedRecords: 4 });
    }
  });

  it('fail the job where nobody said so, or where it is no record’s fault', async () => {
    const failing = readRows('fail').map(({ word }) => word.toUpperCase());
    await expect(runJob(job('failing', failing.write.ndjson()), rows)).rejects.toThrow(TypeError);
    const asynchronous = readRows('skip').map((row) => Promise.resolve(row) as unknown as string);
    await expect(runJob(job('async', asynchronous.write.text()), rows)).rejects.toThrow('must not be async');
    const unwritable = read.text({ onBadRecord: 'skip' }).map((line) => line.length as unknown as string);
    await expect(runJob(job('unwritable', unwritable.write.text()), ['a'])).rejects.toThrow(
      'write.text got a number',
    );
    const missing = read
      .text({ onBadRecord: 'skip' })
      .map((line) => readFileSync(`/no/such/file/${line}`, 'utf8'));
    await expect(runJob(job('missing', missing.write.text()), ['a'])).rejects.toThrow('ENOENT');
  });
});
