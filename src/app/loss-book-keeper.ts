import type { JobId } from '../contracts/ids.ts';
import type { EpochMs } from '../contracts/units.ts';
import { lossesOfOthers, tellLosses, tellsMore } from '../core/policy/mantri/loss-book.ts';
import type { LossCounts } from '../core/policy/mantri/loss-rate.ts';
import type { Log } from '../ports/log.ts';
import type { LossBookStore } from '../ports/loss-book-store.ts';

/** Tries to write beside others who write it, too. */
const mostTries = 3;

/**
 * What jobs have seen of lost outputs, kept for those that come after: read when a job is entered, and written when one ends that
 * tells something new. Never throws: a book that cannot be read or written is as good as one that tells nothing.
 */
export class LossBookKeeper {
  private readonly store: LossBookStore;
  private readonly log: Log;

  constructor(store: LossBookStore, log: Log) {
    this.store = store;
    this.log = log;
  }

  /** What other jobs have seen of late, by place. */
  async seenByOthers(jobId: JobId, now: EpochMs): Promise<ReadonlyMap<string, LossCounts>> {
    try {
      return lossesOfOthers((await this.store.read()).book, jobId, now);
    } catch (cause) {
      this.log.warn('loss book not read', { jobId, cause: String(cause) });
      return new Map();
    }
  }

  /** Keeps what a job has seen that has ended. Nothing is asked for where it has seen nothing, nor written where nothing was lost of late. */
  async keep(jobId: JobId, counts: ReadonlyMap<string, LossCounts>, now: EpochMs): Promise<void> {
    if (counts.size === 0) return;
    try {
      for (let tries = 0; tries < mostTries; tries++) {
        const { book, version } = await this.store.read();
        const next = tellLosses(book, { of: jobId, counts }, now);
        if (!tellsMore(next, book, jobId)) return;
        if ((await this.store.write(next, version, now)) === 'written') return;
      }
      this.log.warn('loss book not written', { jobId, cause: 'too many write it' });
    } catch (cause) {
      this.log.warn('loss book not written', { jobId, cause: String(cause) });
    }
  }
}
