import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryClock } from '../../../src/adapters/memory/memory-clock.ts';
import { MemoryAttemptStore } from '../../../src/adapters/memory/memory-attempt-store.ts';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { CopyQueue, type CopyNews, type QueuedCopy } from '../../../src/app/copy-queue.ts';
import { StoreUnavailableError } from '../../../src/contracts/errors.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { attempt, resultOf } from '../../support/job-states.ts';

const space = { jobId: 'words-0123456789ab' as JobId, shards: 1 };
const from = { bucket: 'data--use1-az1--x-s3', key: 'map/0/0' };
const to = { bucket: 'data', key: 'map/0/1000000' };
const whole = Buffer.from('0123456789');
const copy = { of: attempt('map/0/0'), from, to, result: resultOf('map/0/1000000', 5) };

let objects: MemoryObjectStore;
let attempts: MemoryAttemptStore;

/** The queue of a scheduler that may begin something as long as it holds its job. */
function queueWhile(mayBegin: () => boolean, clock = new MemoryClock()): CopyQueue {
  const log = { info: (): void => undefined, warn: (): void => undefined };
  return new CopyQueue({ objects, attempts, log, clock, mayBegin }, space);
}

/** Has all go on that waits for no clock: more turns than anything takes here. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 1_000; turns++) await Promise.resolve();
}

/** What becomes of the copy of an output of ten bytes. */
async function made(more: Partial<QueuedCopy> = {}): Promise<readonly CopyNews['outcome'][]> {
  const queue = queueWhile(() => true);
  queue.add({ ...copy, ...more });
  queue.add(copy);
  await queue.close();
  return queue.take().map(({ outcome }) => outcome);
}

const recorded = async (): Promise<readonly string[]> =>
  (await attempts.all(space)).replicas.map(({ attemptId }) => attemptId);

describe('a copy of an output', () => {
  beforeEach(async () => {
    objects = new MemoryObjectStore();
    attempts = new MemoryAttemptStore();
    await attempts.commit(space, resultOf('map/0/0', 4));
  });

  it('is recorded once it is there, and the same by whoever makes it again', async () => {
    await objects.write(from, whole);
    expect(await made()).toEqual(['kept']);
    expect(await made()).toEqual(['kept']);
    expect(Buffer.from(await objects.readAll(to))).toEqual(whole);
    expect(await recorded()).toEqual(['map/0/1000000']);
  });

  it('is not made of what is gone, or shorter than it was', async () => {
    expect(await made()).toEqual(['gone']);
    await objects.write(from, whole.subarray(0, 9));
    expect(await made()).toEqual(['short']);
    expect(await objects.head(to)).toBeUndefined();
    expect(await recorded()).toEqual([]);
  });

  it('is not believed that is shorter than what it would be of, and not written over', async () => {
    await objects.write(from, whole);
    await objects.write(to, whole.subarray(0, 5));
    expect(await made()).toEqual(['failed']);
    expect((await objects.head(to))?.sizeBytes).toBe(5);
    expect(await recorded()).toEqual([]);
  });

  it('is ordered of the worker that keeps its output, and recorded once it is there as a whole', async () => {
    const order = { bucket: 'data', key: 'orders/map/0/0' };
    await objects.write(to, whole.subarray(0, 9));
    expect(await made({ order, result: { ...copy.result, bytesOut: 10 } })).toEqual(['failed']);
    await objects.write(to, whole);
    expect(await made({ order, result: { ...copy.result, bytesOut: 10 } })).toEqual(['kept']);
    expect(Buffer.from(await objects.readAll(order)).toString()).toBe('map/0/1000000');
    expect(await recorded()).toEqual(['map/0/1000000']);
  });

  it('stays as it was made, whatever its output has become since', async () => {
    await objects.write(from, whole);
    expect(await made()).toEqual(['kept']);
    await objects.write(from, Buffer.from('9876543210'));
    expect(await made()).toEqual(['kept']);
    expect(Buffer.from(await objects.readAll(to))).toEqual(whole);
  });

  it('is left where the zone of its output does not answer', async () => {
    objects.head = () => Promise.reject(new StoreUnavailableError('head in S3 failed', {}));
    expect(await made()).toEqual(['failed']);
    expect(await recorded()).toEqual([]);
  });

  it('waits where the lease lapses, with those under way, and is made once it is held again', async () => {
    const ids = Array.from({ length: 20 }, (_, task) => attempt(`map/${task}/0`));
    const own = (id: string) => ({ bucket: 'data', key: id });
    let isHeld = true;
    let looks = 0;
    const queue = queueWhile(() => isHeld);
    for (const id of ids) {
      await attempts.commit(space, resultOf(id, 4));
      await objects.write(own(id), whole);
    }
    const head = objects.head.bind(objects);
    objects.head = (ref) => {
      // The scheduler sleeps as those that are under way look at their outputs.
      if (++looks === 8) isHeld = false;
      return head(ref);
    };
    for (const id of ids) {
      const copyId = id.replace(/0$/, '1000000');
      queue.add({ of: id, from: own(id), to: own(copyId), result: resultOf(copyId, 5) });
    }
    await settled();
    expect(queue.take()).toEqual([]);
    await settled();
    expect([queue.size, queue.take()]).toEqual([20, []]);
    isHeld = true;
    queue.take();
    await settled();
    expect(queue.take().map(({ outcome }) => outcome)).toEqual(ids.map(() => 'kept'));
    expect(queue.size).toBe(0);
    expect((await recorded()).length).toBe(20);
  });

  it.each(['head', 'copy'] as const)(
    'holds nobody up who leaves whose %s does not end, and is recorded by whoever makes it again alone',
    async (step) => {
      await objects.write(from, whole);
      const clock = new MemoryClock();
      const queue = queueWhile(() => true, clock);
      const real = objects[step].bind(objects) as (...args: readonly unknown[]) => Promise<never>;
      const told: (AbortSignal | undefined)[] = [];
      let goOn = (): void => undefined;
      const gate = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      objects[step] = async (...args: readonly unknown[]) => {
        told.push(args[2] as AbortSignal | undefined);
        await gate;
        return real(...args);
      };
      queue.add(copy);
      let isClosed = false;
      const closing = queue.close().then(() => (isClosed = true));
      await clock.advance(4_999);
      expect(isClosed).toBe(false);
      await clock.advance(1);
      await closing;
      if (step === 'copy') expect(told[0]?.aborted).toBe(true);
      goOn();
      await settled();
      expect(await recorded()).toEqual([]);
      if (step === 'head') expect(await objects.head(to)).toBeUndefined();
      expect(clock.sleeping).toBe(0);
      expect(await made()).toEqual(['kept']);
      expect(await recorded()).toEqual(['map/0/1000000']);
    },
  );
});
