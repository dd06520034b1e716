import { copyPlain } from '../../lib/copy-plain.ts';
import type { BookStore, StoredBook } from '../../ports/book-store.ts';

/** A book in memory. */
export class MemoryBookStore<Book> implements BookStore<Book> {
  private stored: StoredBook<Book>;

  constructor(empty: Book) {
    this.stored = { book: empty, version: 0 };
  }

  read(): Promise<StoredBook<Book>> {
    return Promise.resolve(this.stored);
  }

  write(book: Book, replaces: number): Promise<'written' | 'refused'> {
    if (replaces !== this.stored.version) return Promise.resolve('refused');
    this.stored = { book: copyPlain(book), version: replaces + 1 };
    return Promise.resolve('written');
  }
}
