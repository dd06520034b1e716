import type { LossBook } from '../core/policy/mantri/loss-book.ts';
import type { BookStore } from './book-store.ts';

/** What jobs have seen of lost outputs, for those that come after. */
export type LossBookStore = BookStore<LossBook>;
