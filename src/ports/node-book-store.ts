import type { NodeBook } from '../core/model/node-book.ts';
import type { BookStore } from './book-store.ts';

/** What is known of slow nodes, for all jobs. */
export type NodeBookStore = BookStore<NodeBook>;
