import { expect, it } from 'vitest';
import type { AttemptStore, TaskSpace } from '../../../src/ports/attempt-store.ts';
import { at, attempt, freshJobId, progress, resultOf } from './builders.ts';

const freshSpace = (): TaskSpace => ({ jobId: freshJobId(), shards: 3 });
const place = { node: 'node', zone: 'zone' };

/** What is promised of results whose output is gone. */
export function describeLosses(make: () => AttemptStore | Promise<AttemptStore>): void {
  it('lets a result take the place of the one that it names, and of no other', async () => {
    const store = await make();
    const space = freshSpace();
    const [first, second, third] = [0, 1, 2].map((number) => attempt(0, number));
    if (first === undefined || second === undefined || third === undefined) throw new Error('three');
    expect(await store.commit(space, resultOf(first, at(1)))).toBe('won');
    expect(await store.commit(space, resultOf(second, at(2)))).toBe('lost');
    expect(await store.commit(space, resultOf(second, at(2)), undefined, first)).toBe('won');
    // A second copy that was to replace the first, a late twin of the first, and a repetition.
    expect(await store.commit(space, resultOf(third, at(3)), undefined, first)).toBe('lost');
    expect(await store.commit(space, resultOf(first, at(1)))).toBe('lost');
    expect(await store.commit(space, resultOf(second, at(2)), undefined, first)).toBe('won');
    expect((await store.all(space)).results).toEqual([resultOf(second, at(2))]);
    expect(await store.commit(space, resultOf(third, at(4)), undefined, second)).toBe('won');
    expect((await store.all(space)).results).toEqual([resultOf(third, at(4))]);
  });

  it('keeps a result as a replica beside the one that took the place it was to take', async () => {
    const store = await make();
    const space = freshSpace();
    await store.commit(space, resultOf(attempt(0), at(1)));
    await store.commit(space, resultOf(attempt(0, 1), at(2)), 'replica', attempt(0));
    expect(await store.commit(space, resultOf(attempt(0, 2), at(3)), 'replica', attempt(0))).toBe('kept');
    const { results, replicas } = await store.all(space);
    expect([results, replicas]).toEqual([[resultOf(attempt(0, 1), at(2))], [resultOf(attempt(0, 2), at(3))]]);
  });

  it('is first where nothing is there to be replaced', async () => {
    const store = await make();
    const space = freshSpace();
    expect(await store.commit(space, resultOf(attempt(0, 1), at(2)), undefined, attempt(0))).toBe('won');
  });

  it('lets one of many win that are to take one place', async () => {
    const store = await make();
    const space = freshSpace();
    await store.commit(space, resultOf(attempt(0), at(1)));
    const rivals = [1, 2, 3, 4].map((number) => attempt(0, number));
    const answers = await Promise.all(
      rivals.map((id) => store.commit(space, resultOf(id, at(2)), undefined, attempt(0))),
    );
    expect(answers.toSorted()).toEqual(['lost', 'lost', 'lost', 'won']);
    expect((await store.all(space)).results).toEqual([
      resultOf(rivals[answers.indexOf('won')] ?? attempt(0), at(2)),
    ]);
  });

  it('tells on which attempt a part of the output was noted as gone, however it has ended', async () => {
    const store = await make();
    const space = freshSpace();
    await store.create(space, attempt(0), at(1));
    await store.claim(space, attempt(0), place, at(2));
    await store.end(space, attempt(0), { state: 'done', progress: progress(1) }, at(3));
    expect(await store.noteOutputLost(space, attempt(0), at(4))).toBe(1);
    expect(await store.noteOutputLost(space, attempt(0), at(4))).toBe(2);
    expect(await store.noteOutputLost(space, attempt(1), at(4))).toBe(0); // Never created: nothing is made of it.
    const { attempts, unreadable } = await store.all(space);
    expect(unreadable ?? []).toEqual([]);
    expect(attempts).toEqual([expect.objectContaining({ state: 'done', outputLostAt: at(4) })]);
  });

  it('tells which outputs an attempt did not find', async () => {
    const store = await make();
    const space = freshSpace();
    await store.create(space, attempt(0), at(1));
    await store.claim(space, attempt(0), place, at(2));
    const failure = {
      cause: 'input-lost',
      message: 'output of map/3/1 is gone',
      lost: [{ attemptId: attempt(3, 1), how: 'missing', offset: 10, length: 5, crc: 4_294_967_295 }],
    } as const;
    await store.end(space, attempt(0), { state: 'failed', progress: progress(1), failure }, at(3));
    expect((await store.read(space, [attempt(0)], 'records')).attempts[0]?.failure).toEqual(failure);
  });
}
