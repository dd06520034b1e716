import { describe, expect, it } from 'vitest';
import type { AttemptStore, Inbox, Note, TaskSpace } from '../../../src/ports/attempt-store.ts';
import { at, attempt, freshJobId } from './builders.ts';

const note = (index: number, kind: Note['kind'] = 'end'): Note => ({ attemptId: attempt(index), kind });
const texts = ({ notes }: Inbox): readonly string[] =>
  notes.map(({ attemptId, kind }) => `${attemptId} ${kind}`).toSorted();

/** What the inboxes of every attempt store must do. */
export function describeInbox(name: string, make: () => AttemptStore | Promise<AttemptStore>): void {
  describe(`the inbox of ${name}`, () => {
    it.each([1, 100])('holds each note once until it is cleared, in a job of %d keys', async (shards) => {
      const store = await make();
      const space: TaskSpace = { jobId: freshJobId(), shards };
      expect(await store.told(space)).toEqual({ notes: [] });
      const indexes = Array.from({ length: 40 }, (_, index) => index);
      await Promise.all(indexes.map((index) => store.tell(space, note(index), at(1))));
      await store.tell(space, note(0), at(9));
      await store.tell(space, note(0, 'news'), at(2));
      const inbox = await store.told(space);
      expect(texts(inbox)).toEqual(
        [...indexes.map((index) => `map/${index}/0 end`), 'map/0/0 news'].toSorted(),
      );
      await store.tell(space, note(77), at(3));
      await store.clear(space, { notes: inbox.notes.filter(({ kind }) => kind === 'end') });
      expect(texts(await store.told(space))).toEqual(['map/0/0 news', 'map/77/0 end']);
      await store.clear(space, inbox);
      expect(texts(await store.told(space))).toEqual(['map/77/0 end']);
      await store.tell(space, note(0), at(60));
      expect(texts(await store.told(space))).toEqual(['map/0/0 end', 'map/77/0 end']);
      await store.clear(space, await store.told(space));
      expect(await store.told(space)).toEqual({ notes: [] });
    });

    it('leaves other jobs and the records of tasks alone', async () => {
      const store = await make();
      const [one, other] = [1, 1].map((shards) => ({ jobId: freshJobId(), shards }));
      if (one === undefined || other === undefined) throw new Error('no jobs');
      await store.create(one, attempt(0), at(1));
      await store.tell(one, note(0), at(1));
      expect(await store.told(other)).toEqual({ notes: [] });
      await store.clear(other, { notes: [note(0)] });
      expect(await store.told(other)).toEqual({ notes: [] });
      expect(texts(await store.told(one))).toEqual(['map/0/0 end']);
      const { attempts, ...rest } = await store.all(one);
      expect(attempts).toHaveLength(1);
      expect(rest).toEqual({ results: [], replicas: [] });
    });
  });
}
