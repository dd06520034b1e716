import { describe, expect, it } from 'vitest';
import { joinMap } from '../../../src/operators/join-map.ts';
import { joinProbe } from '../../../src/operators/join-probe.ts';
import { joinReduce } from '../../../src/operators/join.ts';
import type { EngineSize, KeyValue, TaskInput } from '../../../src/worker/operator.ts';
import { recordsOf, runTask, seeded, sourceOf } from '../../support/operator-bench.ts';

const people = 'id,name\n1,Ann\n2,Bo\n';
const orders = 'id,what\n2,tea\n';
const noPeople = 'id,name\n';
const noOrders = 'id,what\n';
const header = 'id,name,what\n';

const engines: Readonly<Record<string, EngineSize | undefined>> = {
  'by DuckDB or in memory': undefined,
  'row by row': { memoryBytes: 0, threads: 1 },
  'with too little memory for DuckDB': { memoryBytes: 64 * 1024, threads: 1 },
};

const source = (text: string) => sourceOf(Buffer.from(text), seeded(1), 'csv');

/** What a task of one side sends, of its own file. */
async function sentBy(texts: readonly string[], task: number, engine?: EngineSize): Promise<KeyValue[]> {
  const input = source(texts[task] ?? '');
  const { collector } = await runTask(joinMap, { key: 'id' }, [input], { task, engine });
  return [...collector.sorted(0, joinMap, {})];
}

/** What tasks of one side send, one file each. */
async function sent(texts: readonly string[], engine?: EngineSize): Promise<KeyValue[]> {
  const all: KeyValue[] = [];
  for (const task of texts.keys()) all.push(...(await sentBy(texts, task, engine)));
  return all.sort((one, other) => one.key.compare(other.key));
}

async function* batchesOf(batches: readonly (readonly KeyValue[])[]): AsyncGenerator<readonly KeyValue[]> {
  for (const batch of batches) yield await Promise.resolve(batch);
}

describe.each(Object.keys(engines))('a join into CSV of a side without records, %s', (name) => {
  const engine = engines[name];
  const options = { leftKey: 'id', rightKey: 'id', output: 'csv' };

  const shuffled = async (lefts: readonly string[], rights: readonly string[], task = 0): Promise<string> => {
    const inputs = [
      recordsOf('left', await sent(lefts, engine), seeded(2)),
      recordsOf('right', await sent(rights, engine), seeded(3)),
    ];
    return (await runTask(joinReduce, options, inputs, { task, engine })).text.toString();
  };
  const broadcast = async (
    left: string | TaskInput,
    rights: readonly string[],
    task = 0,
  ): Promise<string> => {
    const inputs = [
      typeof left === 'string' ? source(left) : left,
      recordsOf('right', await sent(rights, engine), seeded(3)),
    ];
    return (await runTask(joinProbe, { ...options, key: 'id' }, inputs, { task, engine })).text.toString();
  };

  it.each([
    ['right-hand', people, noOrders],
    ['left-hand', noPeople, orders],
    ['either', noPeople, noOrders],
  ])('has its header where the %s side has a header alone', async (_, left, right) => {
    expect(await shuffled([left], [right])).toBe(header);
    expect(await shuffled([left], [right], 1)).toBe('');
    expect(await broadcast(left, [right])).toBe(header);
    expect(await broadcast(left, [right], 1)).toBe('');
  });

  it('has it where one of several files has a header alone, whatever that is', async () => {
    for (const empty of [noPeople, 'name,id\n', 'id,age\n']) {
      expect(await shuffled([empty, people], [noOrders, orders])).toBe(`${header}2,Bo,tea\n`);
      expect(await shuffled([people, empty], [orders, noOrders])).toBe(`${header}2,Bo,tea\n`);
    }
    expect(await broadcast(people, [noOrders, orders])).toBe(`${header}2,Bo,tea\n`);
    expect(await broadcast(people, [orders, noOrders])).toBe(`${header}2,Bo,tea\n`);
  });

  it('has none where a side has nothing at all, of which nobody knows the columns', async () => {
    expect(await shuffled([people], [''])).toBe('');
    expect(await broadcast(people, [''])).toBe('');
  });

  it('writes one order of columns in all parts of a cut side whose first file has a header alone', async () => {
    const files = ['id,name\n', 'name,id\nAnn,1\n', 'id,name\n2,Bo\n'];
    const rights = recordsOf('right', await sent(['id,what\n1,tea\n2,rum\n'], engine), seeded(3));
    const part = async (from: number, to: number): Promise<string> => {
      const all = await Promise.all(files.map((_, task) => sentBy(files, task, engine)));
      const own = all.slice(from, to).flat();
      const left: TaskInput = {
        ...recordsOf(
          'left',
          own.sort((one, other) => one.key.compare(other.key)),
          seeded(2),
        ),
        ...(from === 0 ? {} : { head: () => batchesOf(all.slice(0, from)) }),
      };
      return (await runTask(joinReduce, options, [left, rights], { task: from, engine })).text.toString();
    };
    expect(await part(0, 2)).toBe('name,id,what\nAnn,1,tea\n');
    expect(await part(2, 3)).toBe('Bo,2,rum\n');
  });

  // Each task of the broadcast form has its share of the left-hand side, and writes a part of its own.
  it('has one order of columns in all parts of a broadcast, that of the first file', async () => {
    const whole = (text: string): TaskInput => ({
      ...source(text),
      firstColumns: () => Promise.resolve(['id', 'name']),
    });
    expect(await broadcast(whole(noPeople), [orders])).toBe(header);
    expect(await broadcast(whole('name,id\nBo,2\n'), [orders], 1)).toBe('2,Bo,tea\n');
    expect(await broadcast(whole('id\n2\n'), [orders], 1)).toBe('2,,tea\n');
    await expect(broadcast(whole('id,age\n2,7\n'), [orders], 1)).rejects.toThrow(
      'the files of one side of a join have different columns: "age" is not among id, name',
    );
  });
});
