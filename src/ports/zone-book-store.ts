import type { ZoneBook } from '../core/model/zone-book.ts';
import type { BookStore } from './book-store.ts';

/** What is known of slow zones, for all jobs. */
export type ZoneBookStore = BookStore<ZoneBook>;
