import { describe, expect, it } from 'vitest';
import { NotFoundError, StoreUnavailableError } from '../../../src/contracts/errors.ts';
import { attemptIdOf } from '../../../src/contracts/ids.ts';
import type { PlannedInput, StageSegment } from '../../../src/contracts/plan.ts';
import { exec } from '../../../src/operators/exec.ts';
import type { ByteRange, ObjectStore } from '../../../src/ports/object-store.ts';
import { frameOf } from '../../../src/worker/framing.ts';
import { BadRecordError, type TaskContext } from '../../../src/worker/operator.ts';
import { latin1 } from '../../support/worker-fixtures.ts';
import { type StageOfTest, WorkerOfTest } from '../../support/worker-stage.ts';

/** More than one batch: a worker of tests reads 256 bytes at a time, and hands on a thousand records at once. */
const keys = Array.from({ length: 3_000 }, (_, index) => `line-${String(index).padStart(4, '0')}`);
const frames = Buffer.concat(keys.map((key) => frameOf(latin1(key), latin1(''))));

const planned = {
  ...{ kind: 'stage', stage: 'map', pattern: 'many-to-one' },
  ...{ producerTasks: 2, producerPartitions: 1 },
} as const satisfies PlannedInput;

/** Flips a bit of the first key. */
function flipped(bytes: Uint8Array): Uint8Array {
  const spoilt = Uint8Array.from(bytes);
  spoilt[4] = (spoilt[4] ?? 0) ^ 1;
  return spoilt;
}

const isData = ({ key }: { readonly key: string }): boolean => key.includes('/data/');

/** Objects whose intermediate data is read by `read`, which is told where they begin and end. */
function readBy(
  worker: WorkerOfTest,
  read: (bytes: () => Promise<Uint8Array>, range: ByteRange) => Promise<Uint8Array>,
): { readonly objects: ObjectStore; readonly ranges: ByteRange[] } {
  const ranges: ByteRange[] = [];
  const readAll: ObjectStore['readAll'] = (ref, range, signal) => {
    const bytes = (): Promise<Uint8Array> => worker.objects.readAll(ref, range, signal);
    if (!isData(ref) || range === undefined) return bytes();
    ranges.push(range);
    return read(bytes, range);
  };
  const objects = Object.assign(Object.create(worker.objects) as ObjectStore, { readAll });
  return { objects, ranges };
}

/** A stage that reads the first records of its input and no more. */
const stopping = (
  segments: readonly StageSegment[],
  begin: (key: string) => void = () => undefined,
): StageOfTest => ({
  inputs: [{ planned, segments }],
  run: async ({ inputs: [input], output }: TaskContext) => {
    for await (const [first] of input?.records() ?? []) {
      if (first === undefined) continue;
      begin(first.key.toString('latin1'));
      await output.write(Buffer.concat([first.key, latin1('\n')]));
      return;
    }
  },
});

const lost = {
  cause: 'input-lost',
  message: 'output of map/0/0 is not what was written (CRC-32)',
};
const failureOf = async (worker: WorkerOfTest): Promise<unknown> =>
  (await worker.attempt(attemptIdOf('work', 0, 0)))?.failure;

/** What stage `map` wrote, a bit of which is another by now. */
async function spoilt(worker: WorkerOfTest, written = frames): Promise<StageSegment> {
  const { crc } = await worker.putData('map', 1, written);
  return { ...(await worker.putData('map', 0, flipped(written))), crc };
}

describe('an operator that reads the first of its records alone', () => {
  it('makes no result of a segment that is damaged', async () => {
    const worker = new WorkerOfTest();
    expect(await worker.run(stopping([await spoilt(worker)]))).toBe('failed');
    expect(await failureOf(worker)).toMatchObject(lost);
    expect(await worker.results()).toEqual([]);
  });

  it('makes none as a program either', async () => {
    const worker = new WorkerOfTest();
    // More than pipes hold.
    const many = Buffer.concat(Array.from({ length: 100 }, () => frames));
    const stage: StageOfTest = {
      inputs: [{ planned, segments: [await spoilt(worker, many)] }],
      options: { command: ['head', '-n', '1'] },
      run: (context) => exec.run(context),
    };
    expect(await worker.run(stage, 0, { sortMemoryBytes: 1024 * 1024 })).toBe('failed');
    expect(await failureOf(worker)).toMatchObject(lost);
  });

  it('makes none of bytes that were damaged on their way alone', async () => {
    const worker = new WorkerOfTest();
    const stage = stopping([await worker.putData('map', 0, frames)]);
    const { objects } = readBy(worker, async (bytes, { start }) =>
      start === 0 ? flipped(await bytes()) : bytes(),
    );
    expect(await worker.run(stage, 0, { objects })).toBe('failed');
    expect(await failureOf(worker)).toMatchObject(lost);
  });

  it('is not blamed for what it makes of such bytes', async () => {
    const worker = new WorkerOfTest();
    const stage = stopping([await worker.putData('map', 0, frames)], (key) => {
      if (key !== keys[0]) throw new BadRecordError(`${key} is no line`);
    });
    const { objects } = readBy(worker, async (bytes, { start }) =>
      start === 0 ? flipped(await bytes()) : bytes(),
    );
    expect(await worker.run(stage, 0, { objects })).toBe('failed');
    expect(await failureOf(worker)).toMatchObject(lost);
  });

  it('makes none where the rest is gone, or cannot be read', async () => {
    for (const [error, failure] of [
      [new NotFoundError('gone'), { cause: 'input-lost', message: 'output of map/0/0 is gone' }],
      [new StoreUnavailableError('reading fails'), { cause: 'storage', message: 'reading fails' }],
    ] as const) {
      const worker = new WorkerOfTest();
      const stage = stopping([await worker.putData('map', 0, frames)]);
      const { objects } = readBy(worker, (bytes, { end }) =>
        end < frames.length / 2 ? bytes() : Promise.reject(error),
      );
      expect(await worker.run(stage, 0, { objects })).toBe('failed');
      expect(await failureOf(worker)).toMatchObject(failure);
    }
  });

  it('is done where all is as it was written, of which each byte is read once', async () => {
    const worker = new WorkerOfTest();
    const segments = [await worker.putData('map', 0, frames), await worker.putData('map', 1, frames)];
    const { objects, ranges } = readBy(worker, (bytes) => bytes());
    expect(await worker.run(stopping(segments), 0, { objects })).toBe('done');
    // Of the second segment nothing was taken in.
    expect((await worker.results())[0]).toMatchObject({ bytesIn: frames.length });
    expect(ranges.filter(({ start }) => start === 0).length).toBeLessThanOrEqual(2);
    expect(new Set(ranges.map(({ start, end }) => `${String(start)}-${String(end)}`)).size).toBeGreaterThan(
      1,
    );
  });

  it('has a head, of which the worker wants the begin alone, read no further', async () => {
    const worker = new WorkerOfTest();
    const long = Buffer.concat(Array.from({ length: 4 }, () => frames));
    const head = { ...(await worker.putData('map', 0, long)), head: true as const };
    const stage: StageOfTest = {
      inputs: [{ planned, segments: [head, await worker.putData('map', 1, frames)] }],
      run: async ({ inputs: [input] }) => {
        for await (const batch of input?.head?.() ?? []) if (batch.length > 0) break;
        for await (const batch of input?.records() ?? []) if (batch.length === 0) break;
      },
    };
    const { objects, ranges } = readBy(worker, (bytes) => bytes());
    expect(await worker.run(stage, 0, { objects })).toBe('done');
    expect(Math.max(...ranges.map(({ end }) => end))).toBeLessThan(long.length);
  });
});
