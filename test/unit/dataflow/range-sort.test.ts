import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { emitBounds, sampleKeys, sendToShares } from '../../../src/dataflow/range-sort.ts';
import type { KeyValue, TaskContext, TaskInput } from '../../../src/worker/operator.ts';
import { draws } from '../../support/draws.ts';

interface Sent extends KeyValue {
  readonly partition: number;
}

const inputOf = (records: readonly KeyValue[]): TaskInput => ({
  kind: 'stage',
  format: 'text',
  blocks: () => {
    throw new Error('a sort reads records');
  },
  rows: () => {
    throw new Error('a sort reads records');
  },
  // In batches of three, whose memory is used again.
  async *records() {
    for (let at = 0; at < records.length; at += 3) {
      const batch = records.slice(at, at + 3).map(({ key, value }) => ({ key: Buffer.from(key), value }));
      yield await Promise.resolve(batch);
      for (const { key } of batch) key.fill(0);
    }
  },
});

/** What one task of a stage emits. */
async function emittedBy(
  run: (context: TaskContext) => Promise<void>,
  task: number,
  inputs: readonly (readonly KeyValue[])[],
  partitions = 1,
): Promise<readonly Sent[]> {
  const emitted: Sent[] = [];
  await run({
    stage: 'sort',
    task,
    partitions,
    options: {},
    inputs: inputs.map(inputOf),
    output: {
      emit: (key, value, partition = 0) => {
        emitted.push({ key: Buffer.from(key), value: Buffer.from(value), partition });
        return undefined;
      },
      write: () => undefined,
    },
    scratchDir: '/nowhere',
    environment: {},
    signal: new AbortController().signal,
    count: () => undefined,
  });
  return emitted;
}

/** The parts of the sorted records of some tasks: each merged by key, equal keys by task and in their order there. */
async function partsOf(
  tasks: readonly (readonly KeyValue[])[],
  parts: number,
): Promise<readonly KeyValue[][]> {
  const samples = await Promise.all(tasks.map((records, task) => emittedBy(sampleKeys, task, [records])));
  const bounds = await emittedBy((context) => emitBounds(context, parts), 0, [samples.flat()]);
  expect(bounds.length).toBeLessThan(parts);
  const sent = await Promise.all(
    tasks.map((records, task) => emittedBy(sendToShares, task, [records, bounds], parts)),
  );
  return Array.from({ length: parts }, (_, part) =>
    sent
      .flat()
      .filter(({ partition }) => partition === part)
      .sort((a, b) => a.key.compare(b.key)),
  );
}

/** Records of a task by their keys; values say where they come from. */
const recordsOf = (tasks: readonly (readonly string[])[]): KeyValue[][] =>
  tasks.map((keys, task) =>
    keys.map((key, number) => ({
      key: Buffer.from(key),
      value: Buffer.from(`${String(task)}.${String(number)}`),
    })),
  );
const textOf = ({ key, value }: KeyValue): string => `${key.toString()} ${value.toString()}`;

describe('the parts of a sort', () => {
  it('are one stable sort when laid end to end, whatever keys there are', async () => {
    const arbKeys = fc.array(fc.constantFrom('a', 'b', 'bb', 'c', '', 'hot', 'hot', 'hot'), {
      maxLength: 30,
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(arbKeys, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 1, max: 6 }),
        async (keys, parts) => {
          const tasks = recordsOf(keys);
          // The language's own sort is stable.
          const sorted = tasks.flat().sort((a, b) => a.key.compare(b.key));
          const made = await partsOf(tasks, parts);
          expect(made.flat().map(textOf)).toEqual(sorted.map(textOf));
        },
      ),
      { numRuns: draws(300) },
    );
  });

  it.each([
    ['one key for all', () => 'hot'],
    ['one key for six of ten', (at: number) => (at % 10 < 6 ? 'hot' : `k${String(at)}`)],
    ['two keys', (at: number) => (at % 3 === 0 ? 'a' : 'b')],
    ['no key twice', (at: number) => `k${String(at)}`],
  ])('are about as long as each other: %s', async (_, keyOf) => {
    for (const tasks of [1, 3])
      for (const parts of [2, 4, 7]) {
        const all = Array.from({ length: 9_000 }, (_each, at) => keyOf((at * 7919) % 9_000));
        const share = Math.ceil(all.length / tasks);
        const dealt = Array.from({ length: tasks }, (_each, task) =>
          all.slice(task * share, (task + 1) * share),
        );
        const sizes = (await partsOf(recordsOf(dealt), parts)).map(({ length }) => length);
        expect(Math.max(...sizes)).toBeLessThan((1.05 * all.length) / parts);
      }
  });
});
