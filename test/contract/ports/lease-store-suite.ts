import { describe, expect, it } from 'vitest';
import type { LeaseStore } from '../../../src/ports/job-store.ts';
import { at, freshJobId, seconds, tally } from './builders.ts';

/** What every lease store must do. */
export function describeLeaseStore(name: string, make: () => LeaseStore | Promise<LeaseStore>): void {
  describe(`${name} as a lease store`, () => {
    it('gives a free lease with epoch 1 and refuses it to others while it lasts', async () => {
      const store = await make();
      const jobId = freshJobId();
      expect(await store.acquire(jobId, 'a', at(0), seconds(10))).toEqual({ kind: 'acquired', epoch: 1 });
      expect(await store.acquire(jobId, 'b', at(9), seconds(10))).toEqual({ kind: 'held', until: at(10) });
    });

    it('gives a lease that ran out to another, with a higher epoch, and the first one has lost it', async () => {
      const store = await make();
      const jobId = freshJobId();
      await store.acquire(jobId, 'a', at(0), seconds(10));
      expect(await store.acquire(jobId, 'b', at(10), seconds(10))).toEqual({ kind: 'acquired', epoch: 2 });
      expect(await store.renew(jobId, 'a', 1, at(30))).toBe('lost');
      expect(await store.acquire(jobId, 'c', at(15), seconds(10))).toEqual({ kind: 'held', until: at(20) });
    });

    it('gives a lease again to its owner, whose older epoch is lost then', async () => {
      const store = await make();
      const jobId = freshJobId();
      await store.acquire(jobId, 'a', at(0), seconds(10));
      expect(await store.acquire(jobId, 'a', at(1), seconds(10))).toEqual({ kind: 'acquired', epoch: 2 });
      expect(await store.renew(jobId, 'a', 1, at(30))).toBe('lost');
      expect(await store.renew(jobId, 'a', 2, at(30))).toBe('renewed');
    });

    it('lasts as long as it is renewed for', async () => {
      const store = await make();
      const jobId = freshJobId();
      await store.acquire(jobId, 'a', at(0), seconds(10));
      await store.renew(jobId, 'a', 1, at(60));
      expect(await store.acquire(jobId, 'b', at(59), seconds(10))).toEqual({ kind: 'held', until: at(60) });
    });

    it('tells the next holder, and nobody after, of a lease that was released in order', async () => {
      const store = await make();
      const jobId = freshJobId();
      await store.acquire(jobId, 'a', at(0), seconds(10));
      await store.release(jobId, 'a', 1, 'in-order');
      const inOrder = { kind: 'acquired', epoch: 2, inOrder: true };
      expect(await store.acquire(jobId, 'b', at(1), seconds(10))).toEqual(inOrder);
      // Its own repetition no more: what it has begun since is not known to have ended.
      expect(await store.acquire(jobId, 'b', at(2), seconds(10))).toEqual({ kind: 'acquired', epoch: 3 });
      // Nor from one that held it before.
      await store.release(jobId, 'a', 1, 'in-order');
      expect(await store.acquire(jobId, 'c', at(20), seconds(10))).toEqual({ kind: 'acquired', epoch: 4 });
    });

    it('lets others in at once after release, with a higher epoch', async () => {
      const store = await make();
      const jobId = freshJobId();
      await store.acquire(jobId, 'a', at(0), seconds(10));
      await store.release(jobId, 'a', 1);
      expect(await store.renew(jobId, 'a', 1, at(30))).toBe('lost');
      expect(await store.acquire(jobId, 'b', at(1), seconds(10))).toEqual({ kind: 'acquired', epoch: 2 });
    });

    it('goes at once to one that follows an owner who is known to be gone, and to nobody by another name', async () => {
      const store = await make();
      const jobId = freshJobId();
      await store.acquire(jobId, 'dead', at(0), seconds(3_600));
      expect(await store.acquire(jobId, 'b', at(1), seconds(10), 'other')).toMatchObject({ kind: 'held' });
      expect(await store.acquire(jobId, 'b', at(1), seconds(10), 'dead')).toEqual({
        kind: 'acquired',
        epoch: 2,
      });
      expect(await store.renew(jobId, 'dead', 1, at(30))).toBe('lost');
    });

    it('is not released by one that lost it', async () => {
      const store = await make();
      const jobId = freshJobId();
      await store.acquire(jobId, 'a', at(0), seconds(10));
      await store.acquire(jobId, 'b', at(10), seconds(10));
      await store.release(jobId, 'a', 1);
      await store.release(jobId, 'b', 1);
      expect(await store.renew(jobId, 'b', 2, at(40))).toBe('renewed');
    });

    it('does not renew what was never acquired', async () => {
      const store = await make();
      expect(await store.renew(freshJobId(), 'a', 1, at(10))).toBe('lost');
    });

    it('goes to exactly one of twenty racing owners', async () => {
      const store = await make();
      const jobId = freshJobId();
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, rival) => store.acquire(jobId, `owner-${rival}`, at(0), seconds(10))),
      );
      expect(tally(answers.map(({ kind }) => kind))).toEqual({ acquired: 1, held: 19 });
      for (const answer of answers) if (answer.kind === 'held') expect(answer.until).toBe(at(10));
    });
  });
}
