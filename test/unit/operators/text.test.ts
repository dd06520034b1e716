import { describe, expect, it, vi } from 'vitest';
import { InvalidInputError } from '../../../src/contracts/errors.ts';
import { jobSpecSchema, operatorNames } from '../../../src/contracts/job-spec.ts';
import { builtinJob } from '../../../src/operators/builtin-jobs.ts';
import type { BuiltinJobName, BuiltinJobOptions } from '../../../src/operators/builtin-jobs.ts';
import { CountTable, hashBytes } from '../../../src/operators/count-table.ts';
import { rankKey, unrankKey } from '../../../src/operators/rank.ts';
import { operators } from '../../../src/operators/registry.ts';
import { recordsOf, runTask, seeded, sourceOf } from '../../support/operator-bench.ts';

const records = (list: [string, string][]) =>
  recordsOf(
    'stage',
    list.map(([key, value]) => ({ key: Buffer.from(key), value: Buffer.from(value) })),
    seeded(3),
  );
const options: BuiltinJobOptions = { inputs: ['s3://bucket/in/'] };

describe('tokenize', () => {
  it('counts words longer than its table, and more words than it has room for', async () => {
    const huge = 'x'.repeat(9 * 1024 * 1024);
    const many = Array.from({ length: 300_000 }, (_, at) => `w${String(at)}`).join(' ');
    const text = Buffer.from(`${huge} a ${huge}\n${many} a\n`);
    const { records: emitted, counts } = await runTask(operators.tokenize, {}, [sourceOf(text, seeded(1))]);
    const totals = new Map<string, number>();
    for (const { key, value } of emitted) {
      const word = key.length > 100 ? 'huge' : key.toString();
      totals.set(word, (totals.get(word) ?? 0) + Number(value));
    }
    expect(totals.get('huge')).toBe(2);
    expect(totals.get('a')).toBe(2);
    expect(totals.get('w299999')).toBe(1);
    expect(totals.size).toBe(300_002);
    expect(counts).toEqual({ words: 300_004 });
  });

  it('tells apart strings of one hash', () => {
    const table = new CountTable({ arenaBytes: 100, maxEntries: 10 });
    const bytes = Buffer.from('abcd');
    table.add(bytes, 0, 2, 7);
    table.add(bytes, 2, 4, 7);
    table.add(bytes, 0, 2, 7);
    expect(Array.from(table.entries(), ([key, count]) => [key.toString(), count])).toEqual([
      ['ab', 2],
      ['cd', 1],
    ]);
    expect(hashBytes(bytes, 0, 2)).not.toBe(hashBytes(bytes, 2, 4));
  });
});

describe('sum-counts', () => {
  it('is exact beyond 2^53', async () => {
    const input = records([
      ['a', '9007199254740992'],
      ['a', '1'],
      ['b', '2'],
    ]);
    const { text } = await runTask(operators['sum-counts'], {}, [input]);
    expect(text.toString()).toBe('a\t9007199254740993\nb\t2\n');
  });

  it('fails on a value that is no count', async () => {
    await expect(runTask(operators['sum-counts'], {}, [records([['a', '1x']])])).rejects.toThrow(
      'decimal digits',
    );
  });
});

describe('ranked keys', () => {
  it('sort by falling count, then by key, and give both back', () => {
    const ranked = (
      [
        ['b', 2n],
        ['a', 2n],
        ['c', 18446744073709551615n],
        ['d', 10n],
      ] as const
    )
      .map(([key, count]) => rankKey(Buffer.from(key), count))
      .sort((left, right) => left.compare(right));
    expect(ranked.map((key) => [unrankKey(key).key.toString(), unrankKey(key).count])).toEqual([
      ['c', 18446744073709551615n],
      ['d', 10n],
      ['a', 2n],
      ['b', 2n],
    ]);
  });
});

async function* one<T>(item: T): AsyncGenerator<T> {
  yield item;
}

describe('sort', () => {
  it('cuts even shares of its samples, each cut once, but those that fall among very many equal ones', async () => {
    const keys = Array.from({ length: 100 }, (_, at) => String(at).padStart(2, '0'));
    const run = async (list: string[]) =>
      (
        await runTask(operators.bounds, { partitions: 4 }, [records(list.map((key) => [key, '']))])
      ).records.map(({ key, value }) => [key.toString(), ...new Uint32Array(Uint8Array.from(value).buffer)]);
    expect(await run(keys.toReversed())).toEqual([['25'], ['50'], ['75']]);
    expect(await run(keys.map(() => 'same'))).toEqual(Array(3).fill(['same', 25, 25, 25, 25]));
    // Twelve of a hundred, half a partition: the cut at 50 falls among them, six of them before it.
    const twelve = keys.map((key) => (key >= '44' && key < '56' ? '50' : key));
    expect(await run(twelve)).toEqual([['25'], ['50', 6, 6], ['75']]);
    expect(await run([])).toEqual([]);
  });

  it('samples about one line in so many bytes, from end to end', async () => {
    const text = Buffer.from(
      Array.from({ length: 1_000 }, (_, at) => `${String(at).padStart(9, '0')}\n`).join(''),
    );
    const { records: emitted } = await runTask(operators.sample, { everyBytes: 1_000 }, [
      sourceOf(text, seeded(1)),
    ]);
    expect(emitted.map(({ key }) => Number(key.toString()))).toEqual([
      50, 150, 250, 350, 450, 550, 650, 750, 850, 950,
    ]);
  });

  it('looks for the ends of a line once, however many of its samples fall into it', async () => {
    const bytes = Buffer.from(`first\n${'x'.repeat(100_000)}\nlast\n`);
    const source = { ...sourceOf(bytes, seeded(1)), blocks: () => one({ bytes, file: 'file', offset: 0 }) };
    const searches = [vi.spyOn(bytes, 'indexOf'), vi.spyOn(bytes, 'lastIndexOf')];
    const { records: emitted } = await runTask(operators.sample, { everyBytes: 1_000 }, [source]);
    expect(emitted.map(({ key }) => key.toString())).toEqual(Array(100).fill('x'.repeat(1_024)));
    expect(searches.map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
  });
});

describe('built-in jobs', () => {
  it.each<[BuiltinJobName, Partial<BuiltinJobOptions>, string[]]>([
    ['wordcount', {}, ['tokenize', 'sum-counts']],
    ['grep', { pattern: 'x' }, ['grep']],
    ['grep', { pattern: 'x', count: true }, ['grep-count', 'sum-counts', 'top-counts']],
    [
      'sort',
      { deadline: '10m', worker: { kind: 'fargate' } },
      ['sample', 'bounds', 'range-partition', 'merge-lines'],
    ],
    ['groupby', { key: 'a', aggregates: [{ op: 'count' }] }, ['groupby-map', 'groupby-reduce']],
    ['join', { right: ['s3://bucket/r'], leftKey: 'a' }, ['join-map', 'join-map', 'join-reduce']],
    ['join', { right: ['s3://bucket/r'], leftKey: 'a', broadcast: true }, ['join-map', 'join-probe']],
  ])('expands %s %j into a spec whose options its operators accept', (name, more, expected) => {
    const spec = jobSpecSchema.parse(builtinJob(name, { ...options, ...more }));
    expect(spec.stages.map(({ operator }) => operator)).toEqual(expected);
    for (const stage of spec.stages) operators[stage.operator ?? 'exec'].check(stage.options);
  });

  it.each<[BuiltinJobName, Partial<BuiltinJobOptions>, string]>([
    ['wordcount', { inputs: [] }, 'inputs'],
    ['wordcount', { pattern: 'x' }, 'pattern'],
    ['grep', {}, 'pattern'],
    ['grep', { pattern: 'x', count: true, invert: true }, 'invert'],
    ['groupby', { aggregates: [{ op: 'count' }] }, 'key'],
    ['groupby', { key: 'a' }, 'aggregates'],
    ['groupby', { key: 'a', aggregates: [{ op: 'count' }], format: 'text' }, 'format'],
    ['join', { leftKey: 'a' }, 'right'],
    ['join', { right: ['s3://bucket/r'] }, 'leftKey'],
    ['join', { right: ['s3://bucket/r'], leftKey: 'a', format: 'ndjson', rows: 'csv' }, 'leftColumns'],
    ['join', { right: ['s3://bucket/r'], leftKey: 'a', rightFormat: 'ndjson' }, 'rightColumns'],
  ])('refuses %s %j and names the option', (name, more, field) => {
    let error: unknown;
    try {
      builtinJob(name, { ...options, ...more });
    } catch (cause) {
      error = cause;
    }
    if (!(error instanceof InvalidInputError)) throw new Error('not refused', { cause: error });
    expect(error.details).toEqual({ field });
  });

  it('has an operator for each name that a spec may use', () => {
    expect(Object.keys(operators).sort()).toEqual([...operatorNames].sort());
  });
});

it('says in the spec of a built-in job whatever it was given of time, dollars and slots', () => {
  const terms: Omit<BuiltinJobOptions, 'inputs'> = {
    ...{ deadline: '5m', deadlineKind: 'hard', admission: 'best-effort', budget: 1, onBudget: 'stop' },
    ...{ guaranteedSlots: 2, weight: 3, policy: 'late' },
  };
  expect(builtinJob('wordcount', { inputs: ['s3://b/a'], ...terms })).toMatchObject(terms);
});
