import type { JobId } from '../contracts/ids.ts';
import { elapsedMs, type EpochMs } from '../contracts/units.ts';
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
import type { NodeBookStore } from '../ports/node-book-store.ts';
import { SharedBook } from './shared-book.ts';

/** Attempts are looked through again after so long, for each thousand of them. */
const lookEveryMs = 1_000;

/** What was looked at of a job. */
interface Looked {
  readonly at: EpochMs;
  readonly attempts: number;
}

/** The node book as one process knows it. Never throws. */
export class NodeBookKeeper {
  private readonly shared: SharedBook<NodeBook>;
  private readonly looked = new Map<JobId, Looked>();

  constructor(store: NodeBookStore, log: Log) {
    this.shared = new SharedBook(store, { name: 'node book', empty: [], merge: mergeBooks, saysMore }, log);
  }

  /** Reads the book, unless that was done a short while ago. */
  async open(now: EpochMs): Promise<void> {
    await this.shared.open(now);
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
    return blockedNodes(this.shared.current, now);
  }

  /** Writes what was learned since, if it is time to; of a job that has ended at once. */
  async keep(jobId: JobId, state: JobState, now: EpochMs, isOver: boolean): Promise<void> {
    if (isOver) {
      this.looked.delete(jobId);
      this.take(jobId, state, now);
    }
    await this.shared.keep(jobId, now, isOver);
  }

  private take(jobId: JobId, state: JobState, now: EpochMs): void {
    const known = new Set(this.shared.current.map(({ node }) => node));
    this.shared.take(nodeSigns(jobId, state, now, known), now);
  }
}

/** Attempts that have ended: what tells anything new. */
const endedOf = ({ attempts, live, riding }: JobState): number => attempts.size - live.size - riding.size;
