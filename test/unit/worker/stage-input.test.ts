import { describe, expect, it } from 'vitest';
import type { ObjectStore } from '../../../src/ports/object-store.ts';
import { frameOf } from '../../../src/worker/framing.ts';
import type { TaskContext } from '../../../src/worker/operator.ts';
import { attemptIdOf } from '../../../src/contracts/ids.ts';
import { latin1, namesIn } from '../../support/worker-fixtures.ts';
import { WorkerOfTest } from '../../support/worker-stage.ts';

const upstream = (pattern: 'all-to-all' | 'many-to-one') =>
  ({ kind: 'stage', stage: 'map', pattern, producerTasks: 3, producerPartitions: 1 }) as const;

/** Frames of keys, each with its producer as value. */
const framesOf = (producer: string, keys: readonly string[]): Buffer =>
  Buffer.concat(keys.map((key) => frameOf(latin1(key), latin1(producer))));

function keeping(found: [string, string][]): (context: TaskContext) => Promise<void> {
  return async ({ inputs }) => {
    for (const input of inputs) {
      for await (const batch of input.records()) {
        // Kept past the next batch: the views must stay as they are.
        await Promise.resolve();
        found.push(
          ...batch.map(({ key, value }): [string, string] => [
            key.toString('latin1'),
            value.toString('latin1'),
          ]),
        );
      }
    }
  };
}

describe('an input from another stage', () => {
  it('merges all-to-all data by key, equal keys in order of producer', async () => {
    const worker = new WorkerOfTest();
    const segments = [
      await worker.putData('map', 0, framesOf('0', ['a', 'b', 'b', 'z'])),
      await worker.putData('map', 1, framesOf('1', ['', 'b', 'ba'])),
      await worker.putData('map', 2, framesOf('2', ['a', 'b'])),
    ];
    const found: [string, string][] = [];
    expect(
      await worker.run({ run: keeping(found), inputs: [{ planned: upstream('all-to-all'), segments }] }),
    ).toBe('done');
    expect(found).toEqual([
      ['', '1'],
      ['a', '0'],
      ['a', '2'],
      ['b', '0'],
      ['b', '0'],
      ['b', '1'],
      ['b', '2'],
      ['ba', '1'],
      ['z', '0'],
    ]);
    expect((await worker.results())[0]).toMatchObject({
      recordsIn: 9,
      bytesIn: segments.reduce((sum, { length }) => sum + length, 0),
    });
  });

  it('keeps the order of producers and of emission for other patterns', async () => {
    const worker = new WorkerOfTest();
    const segments = [
      await worker.putData('map', 0, framesOf('0', ['z', 'a'])),
      await worker.putData('map', 1, framesOf('1', ['m'])),
    ];
    const found: [string, string][] = [];
    await worker.run({ run: keeping(found), inputs: [{ planned: upstream('many-to-one'), segments }] });
    expect(found).toEqual([
      ['z', '0'],
      ['a', '0'],
      ['m', '1'],
    ]);
  });

  it('merges more segments than its memory holds, through scratch files that it removes', async () => {
    const worker = new WorkerOfTest();
    const segments = [];
    const expected: [string, string][] = [];
    for (let task = 0; task < 450; task++) {
      const keys = Array.from(
        { length: 20 },
        (_, index) => `key-${String((index * 37 + task) % 991).padStart(4, '0')}`,
      ).toSorted();
      expected.push(...keys.map((key): [string, string] => [key, String(task)]));
      segments.push(await worker.putData('map', task, framesOf(String(task), keys)));
    }
    const found: [string, string][] = [];
    expect(
      await worker.run({ run: keeping(found), inputs: [{ planned: upstream('all-to-all'), segments }] }),
    ).toBe('done');
    expect(found).toEqual(
      expected.toSorted((left, right) => (left[0] < right[0] ? -1 : left[0] > right[0] ? 1 : 0)),
    );
    expect(await namesIn(worker.scratchRoot)).toEqual([]);
  });

  it('gives records as lines, with a TAB before a value that is there', async () => {
    const worker = new WorkerOfTest();
    const frames = Buffer.concat([frameOf(latin1('a'), latin1('1')), frameOf(latin1('b'), latin1(''))]);
    const segments = [await worker.putData('map', 0, frames)];
    const lines: string[] = [];
    const run = async ({ inputs: [input] }: TaskContext): Promise<void> => {
      for await (const block of input?.blocks() ?? []) lines.push(block.bytes.toString('latin1'));
    };
    await worker.run({ run, inputs: [{ planned: upstream('many-to-one'), segments }] });
    expect(lines.join('')).toBe('a\t1\nb\n');
  });

  it('reads damaged bytes once more, and then fails the attempt, naming whose output is lost', async () => {
    const worker = new WorkerOfTest();
    const segments = [await worker.putData('map', 7, framesOf('7', ['a', 'b']))];
    const stage = { run: keeping([]), inputs: [{ planned: upstream('all-to-all'), segments }] };
    expect(await worker.run(stage, 0, { objects: damaging(worker.objects, 1) })).toBe('done');
    expect(await worker.run({ ...stage, name: 'next' }, 0, { objects: damaging(worker.objects, 2) })).toBe(
      'failed',
    );
    expect((await worker.attempt(attemptIdOf('next', 0, 0)))?.failure).toEqual({
      cause: 'input-lost',
      message: 'output of map/7/0 is not what was written (CRC-32)',
      lost: [{ attemptId: 'map/7/0', how: 'damaged', offset: 0, length: 8, crc: 2_304_691_538 }],
    });
  });

  it('fails where the data is gone, naming whose output that was', async () => {
    const worker = new WorkerOfTest();
    const segments = [{ task: 3, attempt: 1, offset: 0, length: 5, crc: 1 }];
    await worker.run({ run: keeping([]), inputs: [{ planned: upstream('all-to-all'), segments }] });
    expect((await worker.attempt(attemptIdOf('work', 0, 0)))?.failure).toEqual({
      cause: 'input-lost',
      message: 'output of map/3/1 is gone',
      lost: [{ attemptId: 'map/3/1', how: 'missing', offset: 0, length: 5, crc: 1 }],
    });
  });
});

/** Turns a bit of the first `times` reads of intermediate data. */
function damaging(objects: ObjectStore, times: number): ObjectStore {
  let left = times;
  return new Proxy(objects, {
    get(target, property) {
      if (property !== 'readAll') {
        const value: unknown = Reflect.get(target, property, target);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      }
      const readAll: ObjectStore['readAll'] = async (ref, range) => {
        const bytes = new Uint8Array(await target.readAll(ref, range));
        if (ref.key.includes('/data/') && left-- > 0) bytes[3] = (bytes[3] ?? 0) ^ 1;
        return bytes;
      };
      return readAll;
    },
  });
}
