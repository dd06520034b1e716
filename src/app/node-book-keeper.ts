import type { JobId } from '../contracts/ids.ts';
import { durationMs, elapsedMs, type EpochMs } from '../contracts/units.ts';
import type { JobState } from '../core/model/job-view.ts';
import {
  type BlockedNode,
  blockedNodes,
  mergeBooks,
  type NodeBook,
  saysMore,
} from '../core/model/node-book.ts';
import { nodeSigns } from '../core/policy/node-signs.ts';
import type { Log } from '../ports/log.ts';
import type { StoredBook } from '../ports/book-store.ts';
import type { NodeBookStore } from '../ports/node-book-store.ts';

/** The book is read and written this often at most, but for ends of jobs that have learned something. */
const periodMs = durationMs(60_000);
/** Attempts are looked through again after so long, for each thousand of them. */
const lookEveryMs = 1_000;
/** Tries to write beside others who write it, too. */
const mostTries = 3;

/** What was looked at of a job. */
interface Looked {
  readonly at: EpochMs;
  readonly attempts: number;
}

/**
 * The node book as one process knows it: read once a period, whatever jobs it serves, and written where they have learned more. What
 * is learned and not written yet is known here already. Never throws: a book that cannot be read or written is as good
 * as one that tells nothing.
 */
export class NodeBookKeeper {
  private readonly store: NodeBookStore;
  private readonly log: Log;
  private known: StoredBook<NodeBook> = { book: [], version: 0 };
  private book: NodeBook = [];
  private readAt: EpochMs | undefined;
  private writtenAt: EpochMs | undefined;
  private isWriting = false;
  private readonly looked = new Map<JobId, Looked>();

  constructor(store: NodeBookStore, log: Log) {
    this.store = store;
    this.log = log;
  }

  /** Reads the book, unless that was done a short while ago. */
  async open(now: EpochMs): Promise<void> {
    if (this.readAt !== undefined && elapsedMs(this.readAt, now) < periodMs) return;
    this.readAt = now;
    await this.takeStored(now);
  }

  /** Takes what a job's attempts tell into the book, and answers the nodes to be avoided as of now. */
  learn(jobId: JobId, state: JobState, now: EpochMs): readonly BlockedNode[] {
    const before = this.looked.get(jobId);
    const isDue =
      before === undefined ||
      (elapsedMs(before.at, now) >= (lookEveryMs * state.attempts.size) / 1_000 &&
        before.attempts !== endedOf(state));
    if (isDue) {
      this.looked.set(jobId, { at: now, attempts: endedOf(state) });
      this.take(jobId, state, now);
    }
    return blockedNodes(this.book, now);
  }

  /** Writes what was learned since, if it is time to; of a job that has ended at once. */
  async keep(jobId: JobId, state: JobState, now: EpochMs, isOver: boolean): Promise<void> {
    if (isOver) {
      this.looked.delete(jobId);
      this.take(jobId, state, now);
    }
    const isDue = isOver || this.writtenAt === undefined || elapsedMs(this.writtenAt, now) >= periodMs;
    if (!isDue || this.isWriting || !saysMore(this.book, this.known.book)) return;
    this.isWriting = true;
    this.writtenAt = now;
    try {
      for (let tries = 0; tries < mostTries; tries++) {
        const { version } = this.known;
        if ((await this.store.write(this.book, version, now)) === 'written') {
          this.known = { book: this.book, version: version + 1 };
          return;
        }
        await this.takeStored(now);
      }
    } catch (cause) {
      this.log.warn('node book not written', { jobId, cause: String(cause) });
    } finally {
      this.isWriting = false;
    }
  }

  private take(jobId: JobId, state: JobState, now: EpochMs): void {
    const known = new Set(this.book.map(({ node }) => node));
    this.book = mergeBooks(this.book, nodeSigns(jobId, state, now, known), now);
  }

  private async takeStored(now: EpochMs): Promise<void> {
    try {
      this.known = await this.store.read();
    } catch (cause) {
      this.log.warn('node book not read', { cause: String(cause) });
    }
    this.book = mergeBooks(this.known.book, this.book, now);
  }
}

/** Attempts that have ended: what tells anything new. */
const endedOf = ({ attempts, live, riding }: JobState): number => attempts.size - live.size - riding.size;
