import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryClock } from '../../../src/adapters/memory/memory-clock.ts';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { AccessDeniedError, StoreUnavailableError } from '../../../src/contracts/errors.ts';
import type { AttemptId, JobId } from '../../../src/contracts/ids.ts';
import { attemptDataKey, copyOrderKey } from '../../../src/contracts/keys.ts';
import { durationMs, type EpochMs } from '../../../src/contracts/units.ts';
import { bucketOfWorker } from '../../../src/contracts/worker-places.ts';
import { InputCheck, LostInputError } from '../../../src/worker/lost-inputs.ts';
import { PlaceTakenError } from '../../../src/worker/time-limit.ts';
import { stayForReaders } from '../../../src/worker/stay-for-readers.ts';

const jobId = 'sort-0123456789ab' as JobId;
const stageKey = `jobs/${jobId}/plans/nonce/stages/map.json`;
const attemptId = 'map/3/0' as AttemptId;
const key = attemptDataKey(jobId, attemptId);
const address = '10.0.0.7:7843';
const kept = { bucket: bucketOfWorker(address), key };
const moved = { bucket: 'data', key };
const bytes = Buffer.from('0123456789');
const stage = { bucket: 'data', key: stageKey };
const job = { jobId, stageKey };

let clock: MemoryClock;
let objects: MemoryObjectStore;
let askedAt: EpochMs | undefined;
let warned: string[];
let stop: AbortController;
/** How long answers under way might go on as it closed. */
let allowed: number | undefined;

beforeEach(async () => {
  clock = new MemoryClock();
  objects = new MemoryObjectStore();
  askedAt = undefined;
  warned = [];
  allowed = undefined;
  stop = new AbortController();
  await objects.write(kept, bytes);
  await objects.write(stage, Buffer.from('{}'));
});

/** One that stays; whether it has ended. */
function stays(keys: readonly string[] = [key]): { hasEnded: boolean } {
  const stay = { hasEnded: false };
  const log = { info: (): void => undefined, warn: (event: string) => void warned.push(event) };
  const keeper = {
    open: () => Promise.resolve(address),
    keys: () => keys,
    get askedAt() {
      return askedAt;
    },
    close: (answersMs = 0) => {
      allowed = answersMs;
      return Promise.resolve();
    },
  };
  const deps = { clock, objects, log, keeper, dataBucket: 'data', stopSignal: stop.signal };
  void stayForReaders(deps, job).then(() => (stay.hasEnded = true));
  return stay;
}

const after = (seconds: number): Promise<unknown> => clock.advance(durationMs(seconds * 1_000));
const text = async (ref: typeof moved): Promise<string> => Buffer.from(await objects.readAll(ref)).toString();

describe('a worker that keeps an output', () => {
  it('ends at once where it keeps nothing', async () => {
    const stay = stays([]);
    await after(0);
    expect(stay.hasEnded).toBe(true);
  });

  it('stays until its job has ended, and leaves nothing then', async () => {
    const stay = stays();
    await after(300);
    expect(stay.hasEnded).toBe(false);
    await objects.remove('data', [stageKey]);
    await after(3);
    expect(stay.hasEnded).toBe(true);
    expect(await objects.head(moved)).toBeUndefined();
  });

  it('takes a refusal for the end of its job, and no answer for nothing', async () => {
    const head = objects.head.bind(objects);
    objects.head = () => Promise.reject(new StoreUnavailableError('no answer'));
    const stay = stays();
    await after(30);
    expect(stay.hasEnded).toBe(false);
    objects.head = (ref) => (ref.key === stageKey ? Promise.reject(new AccessDeniedError('403')) : head(ref));
    await after(3);
    expect(stay.hasEnded).toBe(true);
  });

  it('puts it into the data bucket once nobody has asked for ten minutes', async () => {
    const stay = stays();
    await after(500);
    askedAt = clock.now();
    await after(500);
    expect([stay.hasEnded, await objects.head(moved)]).toEqual([false, undefined]);
    await after(110);
    expect([stay.hasEnded, await text(moved)]).toEqual([true, '0123456789']);
  });

  it('puts it there at once when it is told to stop', async () => {
    const stay = stays();
    await after(1);
    stop.abort();
    await after(0);
    expect([stay.hasEnded, await text(moved)]).toEqual([true, '0123456789']);
  });

  it('lets answers go on that are under way for most of the rest of its notice', async () => {
    stays();
    await after(1);
    const write = objects.write.bind(objects);
    objects.write = async (ref, body, options) => {
      await clock.sleep(durationMs(20_000));
      return write(ref, body, options);
    };
    stop.abort(new PlaceTakenError('Spot needs its place', durationMs(120_000)));
    await after(30);
    expect(allowed).toBe(88_000);
  });

  it('lets answers go on no longer than it had stayed without a question, and not once its job has ended', async () => {
    stays();
    await after(610);
    expect(allowed).toBe(600_000);
    stays();
    await objects.remove('data', [stageKey]);
    await after(3);
    expect(allowed).toBe(0);
  });

  it('takes back what it has put there when its job has ended meanwhile', async () => {
    const write = objects.write.bind(objects);
    objects.write = async (ref, body, options) => {
      await objects.remove('data', [stageKey]);
      return write(ref, body, options);
    };
    const stay = stays();
    stop.abort();
    await after(3);
    expect([stay.hasEnded, await objects.head(moved)]).toEqual([true, undefined]);
  });

  it('makes the copy that is ordered, under a key of its own job alone, and stays', async () => {
    const copy = attemptDataKey(jobId, 'map/3/1000000' as AttemptId);
    const order = { bucket: 'data', key: copyOrderKey(stageKey, attemptId) };
    await objects.write(order, Buffer.from('output/part-00000'));
    stays();
    await after(10);
    expect(await objects.head({ bucket: 'data', key: 'output/part-00000' })).toBeUndefined();
    await objects.write(order, Buffer.from(copy));
    const stay = stays();
    await after(1);
    expect(await text({ bucket: 'data', key: copy })).toBe('0123456789');
    await after(10);
    expect([stay.hasEnded, warned]).toEqual([false, []]);
  });
});

describe('a reader that has missed what a worker kept', () => {
  it('asks the others that it reads from, and reports all that are gone at once', async () => {
    const segments = ['map/0/0', 'map/1/0', 'map/2/0', 'map/4/0'].map((producer) => ({
      ref: { bucket: bucketOfWorker(address), key: attemptDataKey(jobId, producer as AttemptId) },
      ...{ offset: 0, length: 4, crc: 1, producer },
    }));
    const [first, second, third, fourth] = segments;
    if (first === undefined || second === undefined || third === undefined || fourth === undefined)
      throw new Error('four pieces');
    await objects.write(second.ref, bytes);
    const onS3 = { ...fourth, ref: { ...fourth.ref, bucket: 'data' } };
    const check = new InputCheck();
    await check.askOthers(objects, [first, second, third, onS3], new AbortController().signal, 7);
    expect(check.failure()).toBeUndefined();
    check.lose(new LostInputError(first, 'unreachable'));
    await check.askOthers(objects, [first, second, third, onS3], new AbortController().signal, 7);
    expect(check.failure()?.lost?.map(({ attemptId: id, how }) => [id, how])).toEqual([
      ['map/0/0', 'unreachable'],
      ['map/2/0', 'missing'],
    ]);
  });

  it('asks others than the other readers of its stage do first, so that they find a mass loss together', async () => {
    const segments = Array.from({ length: 100 }, (_, task) => {
      const producer = `map/${task}/0` as AttemptId;
      return {
        ref: { bucket: bucketOfWorker(address), key: attemptDataKey(jobId, producer) },
        ...{ offset: 0, length: 4, crc: 1, producer },
      };
    });
    const [first] = segments;
    if (first === undefined) throw new Error('a hundred pieces');
    const named = new Set<string>();
    for (let reader = 0; reader < 10; reader++) {
      const check = new InputCheck();
      check.lose(new LostInputError(first, 'unreachable'));
      await check.askOthers(objects, segments, new AbortController().signal, reader);
      const lost = check.failure()?.lost ?? [];
      expect(lost).toHaveLength(16);
      for (const each of lost) named.add(each.attemptId);
    }
    expect(named.size).toBeGreaterThanOrEqual(90);
  });
});
