import { expect, it } from 'vitest';
import type { AttemptRecord } from '../../../src/contracts/records.ts';
import type { AttemptStore, TaskSpace } from '../../../src/ports/attempt-store.ts';
import { at, attempt, freshJobId, progress, resultOf } from './builders.ts';

const PLACE = { node: 'stream-1', zone: 'use1-az1' };
const freshSpace = (): TaskSpace => ({ jobId: freshJobId(), shards: 4 });

/** How every attempt store must be read. */
export function describeReading(make: () => AttemptStore | Promise<AttemptStore>): void {
  it('reads the records of the attempts named, and with them what their tasks have come to', async () => {
    const store = await make();
    const space = freshSpace();
    const ids = [0, 1, 2, 3].map((index) => attempt(index));
    for (const id of [...ids, attempt(1, 1)]) await store.create(space, id, at(1));
    await store.commit(space, resultOf(attempt(1), at(2)));
    await store.commit(space, resultOf(attempt(1, 1), at(3)), 'replica');
    await store.commit(space, resultOf(attempt(2), at(2)));
    const asked = [attempt(1), attempt(1), attempt(1, 1), attempt(3), attempt(9)];
    const { attempts, ...nothing } = await store.read(space, asked, 'records');
    expect(attempts.map(({ attemptId }) => attemptId).toSorted()).toEqual(['map/1/0', 'map/1/1', 'map/3/0']);
    expect(nothing).toEqual({ results: [], replicas: [] });
    const all = await store.read(space, asked, 'outputs');
    expect(all.attempts).toHaveLength(3);
    expect(all.results).toEqual([resultOf(attempt(1), at(2))]);
    expect(all.replicas).toEqual([resultOf(attempt(1, 1), at(3))]);
    const ended = await store.read(space, asked, 'results');
    expect({ ...ended, attempts: ended.attempts.length }).toEqual({ ...all, attempts: 3, replicas: [] });
    expect(await store.read(space, [], 'outputs')).toEqual({ attempts: [], results: [], replicas: [] });
  });

  it('reads more attempts than one request takes', async () => {
    const store = await make();
    const space = freshSpace();
    const ids = Array.from({ length: 250 }, (_, index) => attempt(index));
    await Promise.all(ids.map((id) => store.create(space, id, at(1))));
    await Promise.all(ids.map((id) => store.commit(space, resultOf(id, at(2)))));
    const { attempts, results } = await store.read(space, ids, 'outputs');
    expect([attempts.length, results.length]).toEqual([250, 250]);
    expect((await store.all(space)).attempts).toHaveLength(250);
  });

  it('has a running attempt end with its own result, where that says what it has done in all', async () => {
    const store = await make();
    const space = freshSpace();
    for (const number of [0, 1, 2]) {
      await store.create(space, attempt(3, number), at(1));
      await store.claim(space, attempt(3, number), PLACE, at(2));
    }
    await store.markLost(space, attempt(3, 2), at(4));
    const result = { ...resultOf(attempt(3), at(5)), progress: progress(1_000) };
    expect(await store.commit(space, result)).toBe('won');
    const states = ({ attempts }: { readonly attempts: readonly AttemptRecord[] }): readonly unknown[] =>
      attempts
        .toSorted((a, b) => (a.attemptId < b.attemptId ? -1 : 1))
        .map(({ state, beat, endedAt, progress: done }) => [state, beat, endedAt, done?.bytesRead]);
    const expected = [
      ['done', 2, at(5), 1_000],
      ['running', 1, undefined, undefined],
      ['lost', 1, at(4), undefined],
    ];
    const ids = [0, 1, 2].map((number) => attempt(3, number));
    expect(states(await store.all(space))).toEqual(expected);
    expect(states(await store.read(space, ids, 'outputs'))).toEqual(expected);
    expect((await store.read(space, ids, 'outputs')).results).toEqual([result]);
    expect((await store.read(space, [attempt(3)], 'records')).attempts[0]?.state).toBe('running');
  });

  it('answers a worker its orders', async () => {
    const store = await make();
    const space = freshSpace();
    expect(await store.orders(space, attempt(0))).toBe('cancel');
    await store.create(space, attempt(0), at(1));
    expect(await store.orders(space, attempt(0))).toBe('cancel');
    await store.claim(space, attempt(0), PLACE, at(2));
    expect(await store.orders(space, attempt(0))).toBe('continue');
    await store.orderCancel(space, attempt(0));
    expect(await store.orders(space, attempt(0))).toBe('cancel');
  });

  it('reads more than a page of a megabyte', async () => {
    const store = await make();
    const space = { jobId: freshJobId(), shards: 1 };
    const partitions = { lengths: new Array<number>(1_000).fill(1), crcs: new Array<number>(1_000).fill(2) };
    const indexes = Array.from({ length: 200 }, (_, index) => index);
    await Promise.all(
      indexes.map((index) => store.commit(space, resultOf(attempt(index), at(1), { partitions }))),
    );
    expect((await store.all(space)).results).toHaveLength(200);
  });

  it('keeps the tasks of two jobs apart', async () => {
    const store = await make();
    const [one, other] = [freshSpace(), freshSpace()];
    await store.create(one, attempt(0), at(1));
    expect(await store.create(other, attempt(0), at(1))).toBe('created');
    expect((await store.all(one)).attempts).toHaveLength(1);
  });
}
