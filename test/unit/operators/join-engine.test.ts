import { describe, expect, it } from 'vitest';
import { joinMap } from '../../../src/operators/join-map.ts';
import { joinProbe } from '../../../src/operators/join-probe.ts';
import { joinReduce } from '../../../src/operators/join.ts';
import type { EngineSize, KeyValue } from '../../../src/worker/operator.ts';
import { recordsOf, runTask, seeded, sourceOf } from '../../support/operator-bench.ts';

const none: EngineSize = { memoryBytes: 0, threads: 1 };
/** Too little for DuckDB to hold anything. */
const tiny: EngineSize = { memoryBytes: 64 * 1024, threads: 1 };

const people = Buffer.from('id,name\n1,Ann\n2,Bo\n3,Cy\n');
const orders = Buffer.from('id,what\n2,tea\n2,"jam, red"\n9,x\n3,\n');
const options = { leftKey: 'id', rightKey: 'id', output: 'csv' };

const sent = async (text: Buffer, task: number, engine?: EngineSize): Promise<KeyValue[]> => {
  const source = sourceOf(text, seeded(1), 'csv');
  const { collector } = await runTask(joinMap, { key: 'id' }, [source], { task, engine });
  return collector.sorted(0, joinMap, {});
};
const sides = async (engine?: EngineSize) => [
  recordsOf('left', await sent(people, 0, engine), seeded(2)),
  recordsOf('right', await sent(orders, 0, engine), seeded(3)),
];
const sorted = (text: Buffer): string[] => text.toString().split('\n').filter(Boolean).sort();
const joined = ['2,Bo,"jam, red"', '2,Bo,tea', '3,Cy,', 'id,name,what'];

describe('a join', () => {
  it('sends lines of CSV as they are, and not a record a row', async () => {
    const [announcement, piece, ...others] = await sent(people, 7);
    expect(announcement?.key).toHaveLength(0);
    expect(piece?.value.toString()).toBe('1,Ann\n2,Bo\n3,Cy\n');
    expect(others).toEqual([]);
  });

  it('sends those columns of CSV alone that are kept, and the key', async () => {
    const source = sourceOf(Buffer.from('a,id,b,c\n"x,1",1,"p ""q""",\n,"2",,y\n'), seeded(1), 'csv');
    const { records } = await runTask(joinMap, { key: 'id', columns: ['c', 'a'] }, [source]);
    expect(records.at(-1)?.value.toString()).toBe(',"x,1",1\ny,,"2"\n');
  });

  it('says in the log why it goes row by row, and only then', async () => {
    for (const [engine, said] of [
      [undefined, []],
      [none, ['DuckDB is not installed here: rows are joined one by one, which takes longer']],
      [
        tiny,
        [expect.stringMatching(/^DuckDB could not join the rows, which are joined one by one: .*memory/i)],
      ],
    ] as const) {
      const notes: string[] = [];
      const wanted = { ...options, maxHeldBytes: 0 };
      const { text } = await runTask(joinReduce, wanted, await sides(), { engine, notes });
      expect(sorted(text)).toEqual(joined);
      expect(notes).toEqual(said);
    }
  });

  it('takes rows that came one by one beside pieces', async () => {
    const [left, right] = await Promise.all([sent(people, 0), sent(orders, 0)]);
    const more = await sent(Buffer.from('id,name\n9,Di\n'), 1, none);
    const merged = [...left, ...more].sort((one, other) => one.key.compare(other.key));
    const inputs = [recordsOf('left', merged, seeded(2)), recordsOf('right', right, seeded(3))];
    const { text } = await runTask(joinReduce, options, inputs);
    expect(sorted(text)).toEqual([...joined, '9,Di,x'].sort());
  });

  it('pairs each of several rows of the empty key', async () => {
    const right = Buffer.from('id,m\n,1\n,2\n');
    const inputs = [
      recordsOf('left', await sent(Buffer.from('id,n\n,x\n,y\n'), 0), seeded(2)),
      recordsOf('right', await sent(right, 0), seeded(3)),
    ];
    const { text } = await runTask(joinReduce, options, inputs);
    expect(sorted(text)).toEqual([',x,1', ',x,2', ',y,1', ',y,2', 'id,n,m']);
  });

  it('keeps a byte order mark that is the begin of a text', async () => {
    const marked = Buffer.from('id\n\ufeff\n');
    for (const more of [{ output: 'csv' }, { output: 'csv', maxHeldBytes: 0 }, { output: 'ndjson' }]) {
      const inputs = [
        recordsOf('left', await sent(marked, 0), seeded(2)),
        recordsOf('right', await sent(marked, 0), seeded(3)),
      ];
      for (const engine of [undefined, none]) {
        const { text } = await runTask(joinReduce, { ...options, ...more }, inputs, { engine });
        expect(text.toString()).toBe(more.output === 'csv' ? 'id\n\ufeff\n' : '{"id":"\ufeff"}\n');
      }
    }
  });

  it('by broadcast keeps the order of the left-hand side', async () => {
    const left = Buffer.from(
      `id,n\n${Array.from({ length: 50 }, (_, n) => `${String((n * 7) % 5)},${String(n)}\n`).join('')}`,
    );
    const right = Buffer.from(`id,m\n${Array.from({ length: 500 }, (_, m) => `${String(m)},m\n`).join('')}`);
    const inputs = [sourceOf(left, seeded(1), 'csv'), recordsOf('right', await sent(right, 0), seeded(2))];
    const { text } = await runTask(joinProbe, { ...options, key: 'id' }, inputs);
    const numbers = text
      .toString()
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => Number(line.split(',')[1]));
    expect(numbers).toEqual(Array.from({ length: 50 }, (_, n) => n));
  });
});
