import type { JobId } from '../contracts/ids.ts';
import { durationMs, elapsedMs, type EpochMs } from '../contracts/units.ts';
import type { BookStore, StoredBook } from '../ports/book-store.ts';
import type { Log } from '../ports/log.ts';

/** The book is read and written this often at most, but for ends of jobs that have learned something. */
const periodMs = durationMs(60_000);
/** Tries to write beside others who write it, too. */
const mostTries = 3;

/** What a book is made of. */
export interface BookRules<Book> {
  /** As the log calls it. */
  readonly name: string;
  readonly empty: Book;
  /** Both together, as of `now`, in whatever order and however often they are put together. */
  readonly merge: (a: Book, b: Book, now: EpochMs) => Book;
  /** Whether a book says anything that another does not. */
  readonly saysMore: (book: Book, known: Book) => boolean;
}

/**
 * What all jobs write into together, as one process knows it: read once a period, whatever jobs it serves, and written
 * where they have learned more. What is learned and not written yet is known here already. Never throws: a book that
 * cannot be read or written is as good as one that tells nothing.
 */
export class SharedBook<Book> {
  private readonly store: BookStore<Book>;
  private readonly rules: BookRules<Book>;
  private readonly log: Log;
  private known: StoredBook<Book>;
  private book: Book;
  private readAt: EpochMs | undefined;
  private writtenAt: EpochMs | undefined;
  private isWriting = false;

  constructor(store: BookStore<Book>, rules: BookRules<Book>, log: Log) {
    this.store = store;
    this.rules = rules;
    this.log = log;
    this.known = { book: rules.empty, version: 0 };
    this.book = rules.empty;
  }

  /** What is known by now. */
  get current(): Book {
    return this.book;
  }

  /** Reads the book, unless that was done a short while ago. */
  async open(now: EpochMs): Promise<void> {
    if (this.readAt !== undefined && elapsedMs(this.readAt, now) < periodMs) return;
    this.readAt = now;
    await this.takeStored(now);
  }

  /** Takes in what a job has learned. */
  take(learned: Book, now: EpochMs): void {
    this.book = this.rules.merge(this.book, learned, now);
  }

  /** Writes what was learned since, if it is time to; of a job that has ended at once. */
  async keep(jobId: JobId, now: EpochMs, isOver: boolean): Promise<void> {
    const isDue = isOver || this.writtenAt === undefined || elapsedMs(this.writtenAt, now) >= periodMs;
    if (!isDue || this.isWriting || !this.rules.saysMore(this.book, this.known.book)) return;
    this.isWriting = true;
    this.writtenAt = now;
    try {
      for (let tries = 0; tries < mostTries; tries++) {
        const { book } = this;
        const { version } = this.known;
        if ((await this.store.write(book, version, now)) === 'written') {
          this.known = { book, version: version + 1 };
          return;
        }
        await this.takeStored(now);
      }
    } catch (cause) {
      this.log.warn(`${this.rules.name} not written`, { jobId, cause: String(cause) });
    } finally {
      this.isWriting = false;
    }
  }

  private async takeStored(now: EpochMs): Promise<void> {
    try {
      this.known = await this.store.read();
    } catch (cause) {
      this.log.warn(`${this.rules.name} not read`, { cause: String(cause) });
    }
    this.book = this.rules.merge(this.known.book, this.book, now);
  }
}
