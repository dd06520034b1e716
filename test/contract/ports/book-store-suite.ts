import { expect, it } from 'vitest';
import type { BookStore } from '../../../src/ports/book-store.ts';
import { at } from './builders.ts';

/** Jobs of tests live soon after 1970, where items expire at once: here what they write is of a time at which it does not. */
export const lasting = <Book>(store: BookStore<Book>): BookStore<Book> => ({
  read: () => store.read(),
  write: (told, replaces) => store.write(told, replaces, at(10)),
});

/** What a store of any book must do. `make` gives an empty one. */
export function itKeepsABook<Book>(
  make: () => BookStore<Book> | Promise<BookStore<Book>>,
  { book, empty }: { readonly book: Book; readonly empty: Book },
): void {
  it('is empty at first, and gives back what was written', async () => {
    const store = await make();
    expect(await store.read()).toEqual({ book: empty, version: 0 });
    expect(await store.write(book, 0, at(3))).toBe('written');
    expect(await store.read()).toEqual({ book, version: 1 });
    expect(await store.write(empty, 0, at(3))).toBe('refused');
  });

  it('is written by one of those who have read the same, however many try', async () => {
    const store = await make();
    const tries = await Promise.all(Array.from({ length: 8 }, () => store.write(book, 0, at(3))));
    expect(tries.filter((each) => each === 'written')).toHaveLength(1);
    expect((await store.read()).version).toBe(1);
  });
}
