import { describe, expect, it } from 'vitest';
import { job, read } from '../../../src/dataflow/index.ts';
import { copyOfLent } from '../../../src/dataflow/lent-records.ts';
import { runJob } from '../../../src/dataflow/testing.ts';

interface Row {
  word: string;
  n: number;
}

/** All words of a line in one object, which is another record each time. */
function* wordsOf(line: string): Generator<Row> {
  const row: Row = { word: '', n: 0 };
  for (const word of line.split(' ')) {
    row.word = word;
    row.n++;
    yield row;
  }
}

const lines = ['a b c', 'b d'];

describe('records of a generator that yields one object again and again', () => {
  const skipping = read.text({ onBadRecord: 'skip' });
  const plain = read.text();
  it.each([
    ['are written', plain],
    ['are written where bad records are skipped', skipping],
  ])('%s as they were', async (_, source) => {
    const { text, records } = await runJob(job('x', source.flatMap(wordsOf).write.ndjson()), lines);
    const expected: readonly Row[] = [
      { word: 'a', n: 1 },
      { word: 'b', n: 2 },
      { word: 'c', n: 3 },
      { word: 'b', n: 1 },
      { word: 'd', n: 2 },
    ];
    expect(text).toBe(expected.map((row) => `${JSON.stringify(row)}\n`).join(''));
    expect(records).toEqual(expected);
  });

  it('are reduced as they were', async () => {
    const reduced = plain
      .flatMap(wordsOf)
      .keyBy(({ word }) => word)
      .reduce((left, right) => ({ word: left.word, n: 10 * left.n + right.n }));
    const { records } = await runJob(job('x', reduced.write.ndjson()), lines, { tasks: 1, partitions: 1 });
    expect(records).toEqual([
      ['a', { word: 'a', n: 1 }],
      ['b', { word: 'b', n: 21 }],
      ['c', { word: 'c', n: 3 }],
      ['d', { word: 'd', n: 2 }],
    ]);
  });

  it('are gathered by aggregate as they were, also behind a filter', async () => {
    const gathered = plain
      .flatMap(wordsOf)
      .filter(({ word }) => word !== 'd')
      .keyBy(() => 'all')
      .aggregate({
        zero: (): Row[] => [],
        add: (rows, row) => [...rows, row],
        merge: (left, right) => [...left, ...right],
      })
      .map(([, rows]) => rows.map(({ word, n }) => `${word}${String(n)}`).join(' '));
    const { text } = await runJob(job('x', gathered.write.text()), lines, { tasks: 1 });
    expect(text).toBe('a1 b2 c3 b1\n');
  });

  it('keep the list by which they are keyed', async () => {
    function* pairs(line: string): Generator<{ key: [string]; n: number }> {
      const row: { key: [string]; n: number } = { key: [''], n: 1 };
      for (const word of line.split(' ')) {
        row.key[0] = word;
        yield row;
      }
    }
    const counted = plain
      .flatMap(pairs)
      .keyBy(({ key }) => key)
      .aggregate({ zero: () => 0, add: (sum, { n }) => sum + n, merge: (a, b) => a + b });
    const { records } = await runJob(job('x', counted.write.ndjson()), lines, { tasks: 1, partitions: 1 });
    expect(records).toEqual([
      [['a'], 1],
      [['b'], 2],
      [['c'], 1],
      [['d'], 1],
    ]);
  });

  it('are the greatest as they were', async () => {
    const top = plain.flatMap(wordsOf).top(2, ({ word }) => word);
    const { records } = await runJob(job('x', top.write.ndjson()), lines);
    expect(records).toEqual([
      { word: 'd', n: 2 },
      { word: 'c', n: 3 },
    ]);
  });
});

describe('a copy of a record that is lent', () => {
  it('is of its own, down to its dates, maps and sets', () => {
    const make = () => ({
      list: [{ n: -0 }],
      at: new Date(5),
      map: new Map([['k', [1]]]),
      set: new Set([NaN]),
    });
    const lent = make();
    const copy = copyOfLent(lent);
    lent.list[0] = { n: 9 };
    lent.at.setTime(9);
    lent.map.get('k')?.push(9);
    lent.set.add(9);
    expect(copy).toStrictEqual(make());
  });

  it('has all that a function may ask of it', () => {
    const [match] = 'a=1'.matchAll(/(?<name>\w)=/g);
    expect(copyOfLent(match)).toStrictEqual(match);
    expect(copyOfLent(match)).not.toBe(match);
    const point = new (class {
      readonly x = 1;
    })();
    const holed: unknown[] = [];
    holed[2] = point;
    const copy = copyOfLent({ holed, point }) as { holed: unknown[]; point: unknown };
    expect(copy.point).toBe(point);
    expect(copy.holed).toStrictEqual(holed);
    expect(copyOfLent(JSON.parse('{"__proto__":{"a":1}}'))).toStrictEqual(
      JSON.parse('{"__proto__":{"a":1}}'),
    );
  });

  it('goes round in circles as the record does, and has once what that has twice', () => {
    const round: Record<string, unknown> = { word: 'a' };
    round['self'] = [round];
    const copy = copyOfLent(round) as { word: string; self: unknown[] };
    expect(copy).not.toBe(round);
    expect(copy.self[0]).toBe(copy);
    round['word'] = 'b';
    expect(copy.word).toBe('a');
    // Two ways to each of the next: a walk of every way would never end.
    let shared: unknown = { n: 1 };
    for (let level = 0; level < 100; level++) shared = [shared, shared];
    const [left, right] = copyOfLent(shared) as unknown[];
    expect(left).toBe(right);
  });

  it('is the record itself where it reaches too deep', () => {
    let deep: unknown = {};
    for (let level = 0; level < 1_000; level++) deep = [deep];
    expect(copyOfLent(deep)).toBe(deep);
  });
});

it('matches are reduced, ranked and skipped with their groups', async () => {
  const source = read.text({ onBadRecord: 'skip' });
  const matches = source.flatMap((line) => line.matchAll(/(?<name>\w)(?<n>\d)/g));
  const sums = matches
    .keyBy(({ groups }) => groups?.['name'] ?? '')
    .aggregate({
      zero: () => 0,
      add: (sum, { groups }) => sum + Number(groups?.['n']),
      merge: (a, b) => a + b,
    });
  expect((await runJob(job('x', sums.write.ndjson()), ['a1 b2', 'a3'], { partitions: 1 })).records).toEqual([
    ['a', 4],
    ['b', 2],
  ]);
});
