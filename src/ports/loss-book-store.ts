import type { EpochMs } from '../contracts/units.ts';
import type { LossBook } from '../core/policy/mantri/loss-book.ts';

/** The book as it was read, and the version on which a write of it is conditional; 0 before the first. */
export interface StoredLossBook {
  readonly book: LossBook;
  readonly version: number;
}

/** What jobs have seen of lost outputs, for those that come after: one small record. */
export interface LossBookStore {
  /** Consistent. Empty at first, and where it cannot be read. */
  read(): Promise<StoredLossBook>;
  /** Takes the place of the version that was read. `refused`: another was written since; it is to be read anew. */
  write(book: LossBook, replaces: number, now: EpochMs): Promise<'written' | 'refused'>;
}
