import type { EpochMs } from '../contracts/units.ts';

/** A book as it was read, and the version on which a write of it is conditional; 0 before the first. */
export interface StoredBook<Book> {
  readonly book: Book;
  readonly version: number;
}

/** What all jobs write into together, for each other: one small record. */
export interface BookStore<Book> {
  /** Consistent. Empty at first, and where it cannot be read. */
  read(): Promise<StoredBook<Book>>;
  /** Takes the place of the version that was read. `refused`: another was written since; it is to be read anew. */
  write(book: Book, replaces: number, now: EpochMs): Promise<'written' | 'refused'>;
}
