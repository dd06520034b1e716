import { copyPlain } from '../../lib/copy-plain.ts';
import type { NodeBook } from '../../core/model/node-book.ts';
import type { NodeBookStore, StoredNodeBook } from '../../ports/node-book-store.ts';

/** The node book in memory. */
export class MemoryNodeBookStore implements NodeBookStore {
  private stored: StoredNodeBook = { book: [], version: 0 };

  read(): Promise<StoredNodeBook> {
    return Promise.resolve(this.stored);
  }

  write(book: NodeBook, replaces: number): Promise<'written' | 'refused'> {
    if (replaces !== this.stored.version) return Promise.resolve('refused');
    this.stored = { book: copyPlain(book), version: replaces + 1 };
    return Promise.resolve('written');
  }
}
