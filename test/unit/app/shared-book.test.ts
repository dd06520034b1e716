import { describe, expect, it } from 'vitest';
import { SharedBook } from '../../../src/app/shared-book.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { MemoryBookStore } from '../../../src/adapters/memory/memory-book-store.ts';

type Book = readonly string[];

const rules = {
  name: 'book of words',
  empty: [] as Book,
  merge: (a: Book, b: Book): Book => [...new Set([...a, ...b])].toSorted(),
  saysMore: (book: Book, known: Book): boolean => book.some((word) => !known.includes(word)),
};
const jobId = 'words-0123456789ab' as JobId;
const minuteMs = 60_000;

describe('a book that jobs share', () => {
  it('is written again with what was learned while it was written', async () => {
    const store = new MemoryBookStore<Book>([]);
    let meanwhile = (): void => undefined;
    const shared: SharedBook<Book> = new SharedBook(
      {
        read: () => store.read(),
        write: (book, version) => {
          meanwhile();
          return store.write(book, version);
        },
      },
      rules,
      { info: () => undefined, warn: () => undefined },
    );
    const now = epochMs(minuteMs);
    shared.take(['one'], now);
    meanwhile = () => {
      shared.take(['two'], now);
    };
    await shared.keep(jobId, now, true);
    meanwhile = () => undefined;
    await shared.keep(jobId, now, true);
    expect(await store.read()).toEqual({ book: ['one', 'two'], version: 2 });
    await shared.keep(jobId, now, true);
    expect((await store.read()).version).toBe(2);
  });

  it('is written once a minute for a job that goes on, and at once for one that has ended', async () => {
    const store = new MemoryBookStore<Book>([]);
    const shared = new SharedBook(store, rules, { info: () => undefined, warn: () => undefined });
    const versions: number[] = [];
    const keep = async (word: string, seconds: number, isOver: boolean): Promise<void> => {
      shared.take([word], epochMs(1_000 * seconds));
      await shared.keep(jobId, epochMs(1_000 * seconds), isOver);
      versions.push((await store.read()).version);
    };
    await keep('a', 0, false);
    await keep('b', 59, false);
    await keep('c', 60, false);
    await keep('d', 61, true);
    expect(versions).toEqual([1, 1, 2, 3]);
  });

  it('can be neither read nor written, and what was learned here counts all the same', async () => {
    const refused = (): Promise<never> => Promise.reject(new Error('no table'));
    const warnings: string[] = [];
    const log = { info: () => undefined, warn: (what: string) => warnings.push(what) };
    const shared = new SharedBook<Book>({ read: refused, write: refused }, rules, log);
    await shared.open(epochMs(0));
    shared.take(['a'], epochMs(0));
    await shared.keep(jobId, epochMs(0), true);
    expect(shared.current).toEqual(['a']);
    expect(warnings).toEqual(['book of words not read', 'book of words not written']);
  });
});
