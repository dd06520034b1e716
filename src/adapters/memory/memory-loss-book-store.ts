import { copyPlain } from '../../lib/copy-plain.ts';
import type { LossBook } from '../../core/policy/mantri/loss-book.ts';
import type { LossBookStore, StoredLossBook } from '../../ports/loss-book-store.ts';

/** The loss book in memory. */
export class MemoryLossBookStore implements LossBookStore {
  private stored: StoredLossBook = { book: [], version: 0 };

  read(): Promise<StoredLossBook> {
    return Promise.resolve(this.stored);
  }

  write(book: LossBook, replaces: number): Promise<'written' | 'refused'> {
    if (replaces !== this.stored.version) return Promise.resolve('refused');
    this.stored = { book: copyPlain(book), version: replaces + 1 };
    return Promise.resolve('written');
  }
}
