import { invariant } from '../contracts/errors.ts';
import { type AttemptId, attemptParts, type JobId, type TaskId } from '../contracts/ids.ts';
import type { Progress } from '../contracts/progress.ts';
import type { AttemptOrder, AttemptState, NotedUpload, TaskResult } from '../contracts/records.ts';
import type { DurationMs, EpochMs } from '../contracts/units.ts';
import { attemptLife } from '../core/model/attempt-life.ts';
import type {
  AttemptEnd,
  AttemptStore,
  ClaimPlace,
  Inbox,
  Note,
  ReadWish,
  TaskRecords,
  TaskSpace,
  WorkerDeath,
} from '../ports/attempt-store.ts';

/** What is told of the store's writes. */
export interface StoreWatcher {
  /** The scheduler has told an attempt to stop, or has given it up. */
  onStopOrdered(jobId: JobId, attemptId: AttemptId): Promise<void>;
  onCommitted(jobId: JobId, result: TaskResult): void;
  /** An output is kept beside that of its task. */
  onKept(jobId: JobId, result: TaskResult): void;
}

interface JobLedger {
  readonly states: Map<AttemptId, AttemptState>;
  readonly winners: Map<TaskId, AttemptId>;
  readonly kept: Set<AttemptId>;
  /** Told to stop, or given up: of these nothing more is kept. */
  readonly stopped: Set<AttemptId>;
}

/**
 * A store that keeps its own account of every attempt, and breaks the run where the store behind it does what it
 * must not: two winners of a task, a claim after a claim, a step that is not legal.
 */
export class ObservedStore implements AttemptStore {
  private readonly inner: AttemptStore;
  private readonly watcher: StoreWatcher;
  private readonly jobs = new Map<JobId, JobLedger>();

  constructor(inner: AttemptStore, watcher: StoreWatcher) {
    this.inner = inner;
    this.watcher = watcher;
  }

  async create(space: TaskSpace, attemptId: AttemptId, now: EpochMs): Promise<'created' | 'exists'> {
    const outcome = await this.inner.create(space, attemptId, now);
    const { states } = this.ledgerOf(space.jobId);
    invariant((outcome === 'created') === !states.has(attemptId), 'an attempt was created twice', {
      attemptId,
    });
    if (outcome === 'created') states.set(attemptId, 'launched');
    return outcome;
  }

  async orderCancel(space: TaskSpace, attemptId: AttemptId): Promise<void> {
    await this.inner.orderCancel(space, attemptId);
    this.ledgerOf(space.jobId).stopped.add(attemptId);
    await this.watcher.onStopOrdered(space.jobId, attemptId);
  }

  async markLost(
    space: TaskSpace,
    attemptId: AttemptId,
    now: EpochMs,
    only?: 'unclaimed',
  ): Promise<'lost' | 'begun'> {
    const outcome = await this.inner.markLost(space, attemptId, now, only);
    const { states, stopped } = this.ledgerOf(space.jobId);
    const before = states.get(attemptId);
    const isBegun = before !== undefined && before !== 'launched' && before !== 'lost';
    invariant((outcome === 'begun') === (only === 'unclaimed' && isBegun), 'a launch was given up wrongly', {
      attemptId,
      before,
      outcome,
    });
    if (outcome === 'begun') return outcome;
    stopped.add(attemptId);
    if (before !== undefined && attemptLife[before].isLive) this.step(space.jobId, attemptId, 'lost');
    await this.watcher.onStopOrdered(space.jobId, attemptId);
    return outcome;
  }

  async recordDeath(
    space: TaskSpace,
    attemptId: AttemptId,
    death: WorkerDeath,
    now: EpochMs,
    only?: 'claimed',
  ): Promise<'recorded' | 'refused'> {
    const outcome = await this.inner.recordDeath(space, attemptId, death, now, only);
    if (outcome === 'refused') return outcome;
    this.ledgerOf(space.jobId).stopped.add(attemptId);
    this.step(space.jobId, attemptId, 'lost');
    return outcome;
  }

  async claim(
    space: TaskSpace,
    attemptId: AttemptId,
    place: ClaimPlace,
    now: EpochMs,
    nextMs?: DurationMs,
  ): Promise<'claimed' | 'refused'> {
    const outcome = await this.inner.claim(space, attemptId, place, now, nextMs);
    if (outcome === 'claimed') this.step(space.jobId, attemptId, 'running');
    return outcome;
  }

  report(
    space: TaskSpace,
    attemptId: AttemptId,
    progress: Progress,
    now: EpochMs,
    nextMs?: DurationMs,
  ): Promise<AttemptOrder> {
    invariant(progress.bytesRead <= progress.bytesTotal, 'more was read than there is', { attemptId });
    return this.inner.report(space, attemptId, progress, now, nextMs);
  }

  orders(space: TaskSpace, attemptId: AttemptId): Promise<AttemptOrder> {
    return this.inner.orders(space, attemptId);
  }

  noteUpload(
    space: TaskSpace,
    attemptId: AttemptId,
    upload: NotedUpload,
    now: EpochMs,
  ): Promise<AttemptOrder> {
    return this.inner.noteUpload(space, attemptId, upload, now);
  }

  async commit(
    space: TaskSpace,
    result: TaskResult,
    keep?: 'replica',
    replaces?: AttemptId,
  ): Promise<'won' | 'kept' | 'lost'> {
    const outcome = await this.inner.commit(space, result, keep, replaces);
    const { winners, kept, stopped } = this.ledgerOf(space.jobId);
    const winner = winners.get(result.taskId);
    const isFirst = winner === undefined || winner === result.attemptId || winner === replaces;
    const mayKeep = kept.has(result.attemptId) || !stopped.has(result.attemptId);
    const expected = isFirst ? 'won' : keep !== undefined && mayKeep ? 'kept' : 'lost';
    invariant(outcome === expected, 'a task has two results or none', {
      attemptId: result.attemptId,
      winner,
      outcome,
    });
    if (winner === undefined || (winner === replaces && winner !== result.attemptId)) {
      winners.set(result.taskId, result.attemptId);
      if (
        result.progress !== undefined &&
        this.ledgerOf(space.jobId).states.get(result.attemptId) === 'running'
      )
        this.step(space.jobId, result.attemptId, 'done');
      this.watcher.onCommitted(space.jobId, result);
    } else if (outcome === 'kept' && !kept.has(result.attemptId)) {
      kept.add(result.attemptId);
      this.watcher.onKept(space.jobId, result);
    }
    return outcome;
  }

  noteOutputLost(space: TaskSpace, attemptId: AttemptId, now: EpochMs): Promise<number> {
    return this.inner.noteOutputLost(space, attemptId, now);
  }

  async end(
    space: TaskSpace,
    attemptId: AttemptId,
    end: AttemptEnd,
    now: EpochMs,
  ): Promise<'ended' | 'refused'> {
    const outcome = await this.inner.end(space, attemptId, end, now);
    if (this.ledgerOf(space.jobId).states.get(attemptId) === 'running')
      this.step(space.jobId, attemptId, end.state);
    return outcome;
  }

  tell(space: TaskSpace, note: Note, now: EpochMs): Promise<void> {
    return this.inner.tell(space, note, now);
  }

  told(space: TaskSpace): Promise<Inbox> {
    return this.inner.told(space);
  }

  clear(space: TaskSpace, inbox: Inbox): Promise<void> {
    return this.inner.clear(space, inbox);
  }

  read(space: TaskSpace, attemptIds: readonly AttemptId[], what: ReadWish): Promise<TaskRecords> {
    return this.inner.read(space, attemptIds, what);
  }

  all(space: TaskSpace): Promise<TaskRecords> {
    return this.inner.all(space);
  }

  /** Compares the whole store of a job with the account kept here, then forgets the job. */
  async audit(space: TaskSpace): Promise<void> {
    const { states, winners, kept } = this.ledgerOf(space.jobId);
    const { attempts, results, replicas } = await this.inner.all(space);
    invariant(attempts.length === states.size, 'the store has lost attempts', {
      stored: attempts.length,
      seen: states.size,
    });
    for (const { attemptId, state } of attempts) {
      invariant(states.get(attemptId) === state, 'an attempt changed unseen', { attemptId, state });
    }
    invariant(results.length === winners.size, 'the store has lost results', {
      stored: results.length,
      seen: winners.size,
    });
    for (const { taskId, attemptId } of results) {
      invariant(winners.get(taskId) === attemptId, 'a result changed', { taskId, attemptId });
      invariant(attemptParts(attemptId).attempt >= 0 && states.has(attemptId), 'a result of no attempt', {
        attemptId,
      });
    }
    invariant(replicas.length === kept.size, 'the store has lost replicas', {
      stored: replicas.length,
      seen: kept.size,
    });
    for (const { taskId, attemptId } of replicas) {
      const isOther = kept.has(attemptId) && winners.get(taskId) !== attemptId;
      invariant(isOther, 'a replica changed', { taskId, attemptId });
    }
    this.jobs.delete(space.jobId);
  }

  private ledgerOf(jobId: JobId): JobLedger {
    const there = this.jobs.get(jobId);
    if (there !== undefined) return there;
    const ledger: JobLedger = { states: new Map(), winners: new Map(), kept: new Set(), stopped: new Set() };
    this.jobs.set(jobId, ledger);
    return ledger;
  }

  private step(jobId: JobId, attemptId: AttemptId, next: AttemptState): void {
    const { states } = this.ledgerOf(jobId);
    const before = states.get(attemptId);
    const isLegal = before !== undefined && attemptLife[before].next.includes(next);
    invariant(isLegal, 'an illegal step of an attempt', { attemptId, before, next });
    states.set(attemptId, next);
  }
}
