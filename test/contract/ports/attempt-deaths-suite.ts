import { expect, it } from 'vitest';
import type { AttemptRecord, Failure } from '../../../src/contracts/records.ts';
import type { AttemptStore, TaskSpace, WorkerDeath } from '../../../src/ports/attempt-store.ts';
import { at, attempt, freshJobId, progress, resultOf } from './builders.ts';

const PLACE = { node: 'stream-1', zone: 'use1-az1' };
const freshSpace = (): TaskSpace => ({ jobId: freshJobId(), shards: 4 });

async function only(store: AttemptStore, space: TaskSpace): Promise<AttemptRecord | undefined> {
  return (await store.all(space)).attempts[0];
}

/** A worker that died, as the platform tells of it. */
const deathOf = (invocation: string, cause: Failure['cause'] = 'out-of-memory'): WorkerDeath => ({
  invocation,
  failure: { cause, message: 'signal: killed' },
});

/** What every attempt store must do when the platform tells it that a worker is gone. */
export function describeDeaths(make: () => AttemptStore | Promise<AttemptStore>): void {
  const claimed = async (): Promise<{ store: AttemptStore; space: TaskSpace }> => {
    const [store, space] = [await make(), freshSpace()];
    await store.create(space, attempt(0), at(1));
    await store.claim(space, attempt(0), { ...PLACE, invocation: 'request-1' }, at(2));
    return { store, space };
  };

  it('ends an attempt whose worker died, with why, and takes no word of it any more', async () => {
    const { store, space } = await claimed();
    expect(await only(store, space)).toMatchObject({ state: 'running', invocation: 'request-1' });
    expect(await store.recordDeath(space, attempt(0), deathOf('request-1'), at(3))).toBe('recorded');
    const dead = {
      state: 'lost',
      order: 'cancel',
      endedAt: at(3),
      failure: { cause: 'out-of-memory', message: 'signal: killed' },
    };
    expect(await only(store, space)).toMatchObject(dead);
    expect(await store.report(space, attempt(0), progress(400), at(4))).toBe('cancel');
    await store.end(space, attempt(0), { state: 'done', progress: progress(1_000) }, at(5));
    expect(await store.recordDeath(space, attempt(0), deathOf('request-1', 'timeout'), at(6))).toBe(
      'refused',
    );
    expect(await only(store, space)).toMatchObject(dead);
  });

  it('ends one that nobody has claimed, and then nobody can', async () => {
    const [store, space] = [await make(), freshSpace()];
    await store.create(space, attempt(0), at(1));
    expect(await store.recordDeath(space, attempt(0), deathOf('request-1', 'exited'), at(2))).toBe(
      'recorded',
    );
    expect(await store.claim(space, attempt(0), PLACE, at(3))).toBe('refused');
    // Whose death that was is known, so that it is nobody else's.
    expect(await only(store, space)).toMatchObject({ state: 'lost', invocation: 'request-1' });
  });

  it('ends one that rode with others only where the worker that died was at it', async () => {
    const { store, space } = await claimed();
    await store.create(space, attempt(1), at(2));
    const told = (id: number, invocation: string): Promise<'recorded' | 'refused'> =>
      store.recordDeath(space, attempt(id), deathOf(invocation), at(3), 'claimed');
    expect(await told(1, 'request-1')).toBe('refused');
    expect(await told(0, 'request-2')).toBe('refused');
    expect(await store.claim(space, attempt(1), PLACE, at(4))).toBe('claimed');
    // Who runs it does not say what of the platform does.
    expect(await told(1, 'request-1')).toBe('refused');
    expect(await told(0, 'request-1')).toBe('recorded');
    const { attempts } = await store.all(space);
    expect(attempts.map(({ attemptId, state }) => [attemptId, state]).toSorted()).toEqual([
      [attempt(0), 'lost'],
      [attempt(1), 'running'],
    ]);
  });

  it('leaves one alone that another worker has claimed, or that was never created', async () => {
    const { store, space } = await claimed();
    const before = await only(store, space);
    expect(await store.recordDeath(space, attempt(0), deathOf('request-2'), at(3))).toBe('refused');
    expect(await store.recordDeath(space, attempt(1), deathOf('request-1'), at(3))).toBe('refused');
    expect((await store.all(space)).attempts).toEqual([before]);
  });

  it('takes down why one has died that was given up before, from its own worker and once', async () => {
    const { store, space } = await claimed();
    await store.markLost(space, attempt(0), at(50));
    const lost = await only(store, space);
    expect(await store.recordDeath(space, attempt(0), deathOf('request-2'), at(60))).toBe('refused');
    expect(await only(store, space)).toEqual(lost);
    expect(await store.recordDeath(space, attempt(0), deathOf('request-1'), at(60))).toBe('recorded');
    expect(await store.recordDeath(space, attempt(0), deathOf('request-1', 'timeout'), at(61))).toBe(
      'refused',
    );
    expect(await only(store, space)).toEqual({
      ...lost,
      failure: { cause: 'out-of-memory', message: 'signal: killed' },
    });
    // Nobody had begun what was withdrawn.
    await store.create(space, attempt(1), at(1));
    await store.markLost(space, attempt(1), at(50), 'unclaimed');
    expect(await store.recordDeath(space, attempt(1), deathOf('request-3'), at(60))).toBe('refused');
  });

  it('explains none that was given up and has won its task after all', async () => {
    const { store, space } = await claimed();
    await store.markLost(space, attempt(0), at(50));
    expect(await store.commit(space, { ...resultOf(attempt(0), at(51)), progress: progress(9) })).toBe('won');
    expect(await store.recordDeath(space, attempt(0), deathOf('request-1', 'exited'), at(60))).toBe(
      'refused',
    );
  });

  it.each(['expired', 'declined'] as const)(
    'takes a launch that %s for lost only where nobody has claimed it',
    async (cause) => {
      const { store, space } = await claimed();
      expect(await store.recordDeath(space, attempt(0), deathOf('request-1', cause), at(3))).toBe('refused');
      await store.create(space, attempt(1), at(1));
      expect(await store.recordDeath(space, attempt(1), deathOf('request-2', cause), at(3))).toBe('recorded');
    },
  );

  it.each(['done', 'failed', 'cancelled'] as const)('changes nothing of one that is %s', async (state) => {
    const { store, space } = await claimed();
    await store.end(space, attempt(0), { state, progress: progress(7) }, at(3));
    const before = await only(store, space);
    expect(await store.recordDeath(space, attempt(0), deathOf('request-1'), at(4))).toBe('refused');
    expect(await only(store, space)).toEqual(before);
  });

  it('changes nothing of one that has won its task and then gone, as every task of Fargate does', async () => {
    const { store, space } = await claimed();
    const result = { ...resultOf(attempt(0), at(3)), progress: progress(9) };
    expect(await store.commit(space, result)).toBe('won');
    expect(await store.recordDeath(space, attempt(0), deathOf('request-1', 'exited'), at(4))).toBe('refused');
    expect(await only(store, space)).toMatchObject({ state: 'done', endedAt: at(3) });
    expect(await only(store, space)).not.toHaveProperty('failure');
  });

  it('ends one whose task another attempt has won', async () => {
    const { store, space } = await claimed();
    await store.commit(space, { ...resultOf(attempt(0, 1), at(3)), progress: progress(9) });
    expect(await store.recordDeath(space, attempt(0), deathOf('request-1', 'exited'), at(4))).toBe(
      'recorded',
    );
  });

  it('gives a launch up that nobody has claimed, and leaves one alone that somebody has', async () => {
    const store = await make();
    const space = freshSpace();
    for (const number of [0, 1, 2]) await store.create(space, attempt(number), at(1));
    await store.claim(space, attempt(1), PLACE, at(2));
    await store.claim(space, attempt(2), PLACE, at(2));
    await store.end(space, attempt(2), { state: 'done', progress: progress(9) }, at(3));
    expect(await store.markLost(space, attempt(0), at(4), 'unclaimed')).toBe('lost');
    expect(await store.markLost(space, attempt(0), at(5), 'unclaimed')).toBe('lost');
    expect(await store.markLost(space, attempt(1), at(4), 'unclaimed')).toBe('begun');
    expect(await store.markLost(space, attempt(2), at(4), 'unclaimed')).toBe('begun');
    expect(await store.claim(space, attempt(0), PLACE, at(6))).toBe('refused');
    expect(await store.report(space, attempt(1), progress(5), at(6))).toBe('continue');
    const { attempts } = await store.all(space);
    const states = attempts.map(({ attemptId, state }) => [attemptId, state]).toSorted();
    expect(states).toEqual([
      [attempt(0), 'lost'],
      [attempt(1), 'running'],
      [attempt(2), 'done'],
    ]);
  });
}
