import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { aggregateByEngine } from '../../../src/operators/duckdb/aggregate.ts';
import { groupbyOptions } from '../../../src/operators/groupby-options.ts';
import { groupbyMap, groupbyReduce } from '../../../src/operators/groupby.ts';
import { isPieceKey } from '../../../src/operators/packed-rows.ts';
import type { EngineSize, KeyValue, TaskContext, TaskInput } from '../../../src/worker/operator.ts';
import { recordsOf, runTask, seeded, sourceOf } from '../../support/operator-bench.ts';

const none: EngineSize = { memoryBytes: 0, threads: 1 };
/** Too little for DuckDB to hold anything. */
const tiny: EngineSize = { memoryBytes: 64 * 1024, threads: 1 };

const options = {
  key: 'k',
  aggregates: [
    { op: 'count' },
    { op: 'sum', column: 'v' },
    { op: 'min', column: 'v' },
    { op: 'avg', column: 'w' },
    { op: 'count', column: 'w', as: 'w_count' },
  ],
};

/** Many groups of two rows each; of those whose number 1,000 divides one value is beyond what is summed as it is. */
const manyGroups = 25_000;
const rows = (from: number, to: number): Buffer => {
  let text = 'k,v,w\n';
  for (let at = from; at < to; at++) {
    const value = at % 1_000 === 0 ? '1e300' : `${String(at % 7)}.25`;
    text += `"key ""${String(at % manyGroups)}""\té",${value},${at % 3 === 0 ? '' : String(at)}\n`;
  }
  return Buffer.from(text);
};

const sent = async (
  input: TaskInput,
  {
    task = 0,
    partitions = 1,
    engine,
    ...more
  }: {
    task?: number;
    partitions?: number;
    engine?: EngineSize;
    kept?: unknown;
    keep?: (state: unknown) => void;
  } = {},
): Promise<readonly KeyValue[][]> => {
  const { collector } = await runTask(groupbyMap, options, [input], { task, partitions, engine, ...more });
  return Array.from({ length: partitions }, (_, at) => collector.sorted(at, groupbyMap, options));
};
const csv = (bytes: Buffer): TaskInput => sourceOf(bytes, seeded(1), 'csv');
const merged = (tasks: readonly (readonly KeyValue[])[]): TaskInput =>
  recordsOf(
    'map',
    tasks.flat().sort((left, right) => left.key.compare(right.key)),
    seeded(2),
  );
const reduced = async (
  tasks: readonly (readonly KeyValue[])[],
  engine?: EngineSize,
  notes: string[] = [],
): Promise<string> =>
  (await runTask(groupbyReduce, options, [merged(tasks)], { engine, notes })).text.toString();

describe('a group-by of many groups', { timeout: 60_000 }, () => {
  const halves = [rows(0, manyGroups), rows(manyGroups, 2 * manyGroups)];

  it('sends pieces of lines, and one by one only what must be looked at', async () => {
    const [records = []] = await sent(csv(rows(0, manyGroups)));
    const pieces = records.filter(({ key }) => isPieceKey(key));
    expect(pieces.length).toBeGreaterThan(1);
    // The first groups of a task, of which it cannot know that there will be many, and those with a value beyond.
    expect(records.length - pieces.length).toBe(1_024 + manyGroups / 1_000 - 2);
    const lines = Buffer.concat(pieces.map(({ value }) => value))
      .toString()
      .split('\n');
    expect(lines).toContain(
      '["key \\"1025\\"\\té"]\t1\t1\t\t14987979559889010688\t\t3.25\t3.25\t1\t1025\t\t\t\t',
    );
  });

  it('sends few groups one by one, so that nobody needs an engine for them', async () => {
    const [records = []] = await sent(csv(rows(0, 500)));
    expect(records).toHaveLength(500);
    expect(records.some(({ key }) => isPieceKey(key))).toBe(false);
  });

  it('gives the same in two parts of one task, whose pieces all have keys of their own', async () => {
    let kept: unknown;
    const keep = (state: unknown): void => {
      kept = state;
    };
    const [left, right] = [halves[0] ?? Buffer.alloc(0), halves[1] ?? Buffer.alloc(0)];
    const [first = []] = await sent(csv(left), { keep });
    const [second = []] = await sent(csv(right), { kept, keep });
    const keys = [...first, ...second].map(({ key }) => key).filter(isPieceKey);
    expect(keys.length).toBeGreaterThan(2);
    expect(new Set(keys.map((key) => key.toString('latin1'))).size).toBe(keys.length);
    expect(kept).toEqual({ pieces: keys.length });
    // One that groups row by row sends none, and forgets none.
    await sent(csv(left), { kept, keep, engine: none });
    expect(kept).toEqual({ pieces: keys.length });
    const [other = []] = await sent(csv(right), { task: 1 });
    expect(await reduced([first, second])).toBe(await reduced([first, other]));
  });

  it('gives the same with an engine, without one, with one that is too small, and from both kinds of tasks', async () => {
    const [left = [], right = []] = [
      await sent(csv(halves[0] ?? Buffer.alloc(0))),
      await sent(csv(halves[1] ?? Buffer.alloc(0)), { task: 1 }),
    ].map(([records = []]) => records);
    const byRow = (await sent(csv(halves[1] ?? Buffer.alloc(0)), { task: 1, engine: none }))[0] ?? [];
    expect(byRow.some(({ key }) => isPieceKey(key))).toBe(false);
    const notes: string[][] = [[], [], [], []];
    const plain = await reduced(
      [(await sent(csv(halves[0] ?? Buffer.alloc(0)), { engine: none }))[0] ?? [], byRow],
      none,
      notes[0],
    );
    expect(plain.split('\n')).toHaveLength(manyGroups + 1);
    expect(plain).toContain('{"k":"key \\"1000\\"\\té","count":2,"sum_v":2e+300,"min_v":1e+300,');
    expect(await reduced([left, right], undefined, notes[1])).toBe(plain);
    expect(await reduced([left, byRow], undefined)).toBe(plain);
    expect(await reduced([left, right], none, notes[2])).toBe(plain);
    expect(await reduced([left, right], tiny, notes[3])).toBe(plain);
    expect(notes).toEqual([
      [],
      [],
      ['DuckDB is not installed here: groups are merged one by one, which takes longer'],
      [expect.stringMatching(/^DuckDB could not merge the groups, which are merged one by one: .*memory/i)],
    ]);
  });

  it('sends pieces to the partitions of their keys, where a task that groups by row sends them', async () => {
    const input = rows(0, manyGroups);
    const partitions = 3;
    const [pieces, records] = [
      await sent(csv(input), { partitions }),
      await sent(csv(input), { partitions, engine: none }),
    ];
    for (let at = 0; at < partitions; at++)
      expect(await reduced([pieces[at] ?? []])).toBe(await reduced([records[at] ?? []]));
  });

  it('adds up what 128 bits of units cannot hold, where each task could', async () => {
    const value = '9999999999999.5';
    const one = Array.from({ length: 11_000 }, (_, at) => `${String(at)},${value},1\n`).join('');
    const hot = `hot,${value},1\n`.repeat(2_000);
    const tasks = [];
    for (let task = 0; task < 3; task++)
      tasks.push((await sent(csv(Buffer.from(`k,v,w\n${one}${hot}`)), { task }))[0] ?? []);
    const text = await reduced(tasks);
    expect(text).toContain('{"k":"hot","count":6000,"sum_v":59999999999997000,');
    expect(text).toContain('{"k":"10999","count":3,"sum_v":29999999999998.5,');
  });

  it('says of a value that is no number what it says row by row', async () => {
    const bad = Buffer.concat([rows(0, manyGroups), Buffer.from('odd,12x,1\n')]);
    await expect(sent(csv(bad))).rejects.toThrow('column "v" must hold numbers to be aggregated, not "12x"');
  });

  it('holds no few groups together whose keys are long', async () => {
    const long = Array.from({ length: 6_000 }, (_, at) => `${String(1_000 + at)}${'x'.repeat(3_000)}`);
    const text = Buffer.from(`k,v,w\n${long.map((key) => `${key},2,1\n`).join('')}`);
    const tasks = [await sent(csv(text), { task: 0 }), await sent(csv(text), { task: 1 })];
    expect(tasks.flat(2).some(({ key }) => isPieceKey(key))).toBe(true);
    const notes: string[] = [];
    const parts = await reduced(
      tasks.map(([records = []]) => records),
      none,
      notes,
    );
    expect(notes).toEqual(['DuckDB is not installed here: groups are merged one by one, which takes longer']);
    const found = parts.trimEnd().split('\n');
    expect(found.map((line) => line.replaceAll('x', ''))).toEqual(
      long.map(
        (_, at) => `{"k":"${String(1_000 + at)}","count":2,"sum_v":4,"min_v":2,"avg_w":1,"w_count":2}`,
      ),
    );
  });

  it('is not by DuckDB where a group lists so much that its line could not be read', async () => {
    const text = (most: number): Buffer =>
      Buffer.from(
        `k,v,w\n${Array.from({ length: most }, (_, at) => `a,1e${String(100 + at)},1\n`).join('')}`,
      );
    const grouping = groupbyOptions(options);
    const lined = async (values: number, mostLineBytes: number): Promise<string> => {
      let found = '';
      const run = async (context: TaskContext): Promise<void> => {
        const [path = ''] = (await aggregateByEngine(context, grouping, undefined, mostLineBytes)) ?? [];
        found = await readFile(path, 'latin1');
      };
      await runTask({ check: () => undefined, run }, options, [csv(text(values))]);
      return found;
    };
    const whole = await lined(100, 2_000);
    expect(whole.length).toBeGreaterThan(800);
    expect(whole.length).toBeLessThan(2_000);
    const refusal = 'a group has too many values that are not summed';
    await expect(lined(200, 2_000)).rejects.toThrow(refusal);
    // No line is longer than what is asked for, however near it is.
    for (let most = whole.length - 20; most < whole.length; most += 5)
      await expect(lined(100, most)).rejects.toThrow(refusal);
  });

  it('counts groups and not pieces as records', async () => {
    let [out, into] = [0, 0];
    const input = rows(0, manyGroups);
    const { collector } = await runTask(groupbyMap, options, [csv(input)], {
      tally: (records) => {
        out += records.out ?? 0;
      },
    });
    const records = collector.sorted(0, groupbyMap, options);
    expect(out + records.length).toBe(manyGroups);
    await runTask(groupbyReduce, options, [merged([records])], {
      tally: (some) => {
        into += some.in ?? 0;
      },
    });
    expect(into + records.length).toBe(manyGroups);
  });

  it('loads no engine for a task that reads little, nor for few groups', async () => {
    const notesOf = async (name: string, text: Buffer, end: number): Promise<readonly string[]> => {
      const notes: string[] = [];
      const input = {
        ...csv(text),
        objects: [{ uri: `s3://bucket/${name}`, start: 0, end, isPacked: name.endsWith('.gz') }],
      };
      await runTask(groupbyMap, options, [input], { engine: tiny, notes });
      return notes;
    };
    const loaded = [expect.stringMatching(/^DuckDB could not group the rows/)];
    expect(await notesOf('little.csv', rows(0, 2_000), 3_000_000)).toEqual([]);
    expect(await notesOf('little.csv.gz', rows(0, 2_000), 3_000_000)).toEqual(loaded);
    expect(await notesOf('large.csv', rows(0, 2_000), 30_000_000)).toEqual(loaded);
    expect(await notesOf('large.csv', rows(0, 1_000), 30_000_000)).toEqual([]);
  });
});
