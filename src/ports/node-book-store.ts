import type { EpochMs } from '../contracts/units.ts';
import type { NodeBook } from '../core/model/node-book.ts';

/** The book as it was read, and the version on which a write of it is conditional; 0 before the first. */
export interface StoredNodeBook {
  readonly book: NodeBook;
  readonly version: number;
}

/** What is known of slow nodes, for all jobs: one small record. */
export interface NodeBookStore {
  /** Consistent. Empty at first, and where it cannot be read. */
  read(): Promise<StoredNodeBook>;
  /** Takes the place of the version that was read. `refused`: another was written since; it is to be read anew. */
  write(book: NodeBook, replaces: number, now: EpochMs): Promise<'written' | 'refused'>;
}
