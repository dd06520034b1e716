import type { AttemptId } from '../contracts/ids.ts';
import type { ObjectRef } from '../contracts/keys.ts';
import type { TaskResult } from '../contracts/records.ts';
import type { AttemptStore, TaskSpace } from '../ports/attempt-store.ts';
import type { Log } from '../ports/log.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { durationMs } from '../contracts/units.ts';

export interface CopyQueueDeps {
  readonly attempts: AttemptStore;
  readonly objects: ObjectStore;
  readonly log: Log;
  readonly clock: Clock;
  /** Whether the job is still this scheduler's: one that slept begins nothing when it wakes. */
  readonly mayBegin: () => boolean;
}

/** An output that is to be copied. */
export interface QueuedCopy {
  /** Whose output. */
  readonly of: AttemptId;
  readonly from: ObjectRef;
  /** Of one that a worker keeps, which alone can copy it: where that looks for orders. `from` says nothing then. */
  readonly order?: ObjectRef;
  readonly to: ObjectRef;
  /** The result of that attempt, under the copy's name. */
  readonly result: TaskResult;
}

/**
 * What became of a copy. `gone`, `short`: there was no output to copy, or less than was written; `failed`: nobody knows
 * whether the copy is there, and nobody reads it.
 */
export interface CopyNews extends QueuedCopy {
  readonly outcome: 'kept' | 'gone' | 'short' | 'failed';
}

/** `paused`: the job is not this scheduler's just now, and what there is of the copy nobody knows of. */
type Made = CopyNews['outcome'] | 'paused';

/** Copies under way at once, and copies that wait at most: more are not decided on before these are made. */
const lanes = 8;
export const mostCopiesWaiting = 64;
/** How often, and how many times, it is looked for a copy that was ordered. */
const lookEvery = durationMs(500);
const mostLooks = 60;
/** How long those that are under way are waited for when their scheduler leaves: a copy of gigabytes, or one that hangs, takes minutes. */
const closingMs = durationMs(5_000);

/**
 * The copies that a scheduler has decided on and not made yet. They are made beside its ticks, a few at once; each tick
 * takes what became of them. First the output is seen to be whole, then that very object is copied, and then the copy is
 * recorded, so that whoever reads the record finds the object; all may happen twice, and come to the same. A copy that fails
 * is left: the output is where it was. One that a lapse of the lease keeps from being begun or recorded waits until the lease is
 * held again, if it is.
 *
 * One scheduler's alone. What it holds is lost with it, and follows from the decision log.
 */
export class CopyQueue {
  private readonly deps: CopyQueueDeps;
  private readonly space: TaskSpace;
  private readonly waiting: QueuedCopy[] = [];
  private readonly known = new Set<AttemptId>();
  private readonly underWay = new Set<Promise<void>>();
  private news: CopyNews[] = [];
  private isClosed = false;
  /** Fires when what is still under way is given up. */
  private readonly left = new AbortController();

  constructor(deps: CopyQueueDeps, space: TaskSpace) {
    this.deps = deps;
    this.space = space;
  }

  /** Copies that are not made yet. */
  get size(): number {
    return this.waiting.length + this.underWay.size;
  }

  /** Adds a copy at the end, once, and begins as many as may be under way. Waits for none. */
  add(copy: QueuedCopy): void {
    if (this.known.has(copy.of)) return;
    this.known.add(copy.of);
    this.waiting.push(copy);
    this.pump();
  }

  /** What became of copies since the last call. Begins those that the lease kept back and does no more. */
  take(): readonly CopyNews[] {
    const news = this.news.splice(0);
    this.pump();
    return news;
  }

  /**
   * Begins no more copies, and resolves once none is under way, or after five seconds: what is not done by then is given up,
   * and whoever takes the job over makes it again.
   */
  async close(): Promise<void> {
    this.isClosed = true;
    this.waiting.length = 0;
    if (this.underWay.size === 0) return;
    const done = new AbortController();
    void Promise.all(this.underWay).then(() => {
      done.abort();
    });
    await this.deps.clock.sleep(closingMs, done.signal);
    this.left.abort();
  }

  /** Whether copies may go on: its scheduler has the job, and has not left. */
  private mayGoOn(): boolean {
    return !this.left.signal.aborted && this.deps.mayBegin();
  }

  private pump(): void {
    while (this.underWay.size < lanes && !this.isClosed && this.deps.mayBegin()) {
      const copy = this.waiting.shift();
      if (copy === undefined) return;
      const done = this.make(copy)
        .catch((cause: unknown): Made => this.spoilt(copy, cause))
        .then((made) => {
          this.underWay.delete(done);
          if (made === 'paused') this.putBack(copy);
          else this.news.push({ ...copy, outcome: made });
          this.pump();
        });
      this.underWay.add(done);
    }
  }

  private putBack(copy: QueuedCopy): void {
    if (!this.isClosed) this.waiting.unshift(copy);
  }

  /** What an error makes of a copy. Of one that slept the connections may be gone when it wakes. */
  private spoilt(copy: QueuedCopy, cause: unknown): Made {
    if (!this.mayGoOn()) return 'paused';
    const { jobId } = this.space;
    this.deps.log.warn('not-copied', { jobId, attemptId: copy.of, cause: String(cause) });
    return 'failed';
  }

  private async make(copy: QueuedCopy): Promise<Made> {
    const { attempts } = this.deps;
    const made = await (copy.order === undefined ? this.copied(copy) : this.ordered(copy, copy.order));
    if (made !== 'kept') return made;
    // One that slept leaves nothing that nobody knows of: its job's data is removed by the job's name.
    if (!this.mayGoOn()) return 'paused';
    return (await attempts.commit(this.space, copy.result, 'replica')) === 'kept' ? 'kept' : 'failed';
  }

  private async copied({ from, to, result }: QueuedCopy): Promise<Made> {
    const { objects } = this.deps;
    const there = await objects.head(from);
    if (there === undefined) return 'gone';
    if (there.sizeBytes < result.bytesOut) return 'short';
    if (!this.mayGoOn()) return 'paused';
    const made = await objects.copy({ ...from, etag: there.etag }, to, this.left.signal);
    if (made === 'gone') return 'gone';
    // Made by whoever was before: it stays, since what it was made of may have been harmed since.
    if (made === 'exists' && (await objects.head(to))?.sizeBytes !== there.sizeBytes) return 'failed';
    return 'kept';
  }

  /** Has the worker that keeps an output copy it, and waits until the copy is there. */
  private async ordered({ to, result }: QueuedCopy, order: ObjectRef): Promise<Made> {
    const { objects, clock, mayBegin } = this.deps;
    await objects.write(order, new TextEncoder().encode(to.key));
    for (let looks = 1; ; looks++) {
      if ((await objects.head(to))?.sizeBytes === result.bytesOut) return 'kept';
      if (!mayBegin()) return 'paused';
      if (looks >= mostLooks || this.isClosed) return 'failed';
      await clock.sleep(lookEvery);
    }
  }
}
