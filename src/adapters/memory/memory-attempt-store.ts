import { type AttemptId, type JobId, type TaskId, taskOf } from '../../contracts/ids.ts';
import type { Progress } from '../../contracts/progress.ts';
import {
  type AttemptOrder,
  type AttemptRecord,
  endedByResult,
  neverBegan,
  type NotedUpload,
  type TaskResult,
} from '../../contracts/records.ts';
import { isSameWork } from '../../contracts/saved-work.ts';
import type { DurationMs, EpochMs } from '../../contracts/units.ts';
import { isLive } from '../../core/model/attempt-life.ts';
import { copyPlain } from '../../lib/copy-plain.ts';
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
} from '../../ports/attempt-store.ts';

interface JobTasks {
  readonly attempts: Map<AttemptId, AttemptRecord>;
  readonly results: Map<TaskId, TaskResult>;
  /** Results kept beside those of their tasks. */
  readonly replicas: Map<AttemptId, TaskResult>;
  /** How often parts of the output were noted as gone. */
  readonly notes: Map<AttemptId, number>;
  /** Notes that wait, by what they say. */
  readonly inbox: Map<string, Note>;
}

const copyOf = (progress: Progress): Progress => ({
  ...progress,
  phaseMs: { ...progress.phaseMs },
  ...(progress.fetched === undefined ? {} : { fetched: { ...progress.fetched } }),
  ...(progress.requests === undefined ? {} : { requests: { ...progress.requests } }),
});

const textOf = ({ kind, attemptId }: Note): string => `${kind} ${attemptId}`;
const next = (nextMs: DurationMs | undefined): { nextMs?: DurationMs } =>
  nextMs === undefined ? {} : { nextMs };

/** Attempts, results and inboxes in memory. */
export class MemoryAttemptStore implements AttemptStore {
  private readonly jobs = new Map<JobId, JobTasks>();

  create(space: TaskSpace, attemptId: AttemptId, now: EpochMs): Promise<'created' | 'exists'> {
    const { attempts } = this.tasksOf(space);
    if (attempts.has(attemptId)) return Promise.resolve('exists');
    attempts.set(attemptId, { attemptId, state: 'launched', order: 'continue', launchedAt: now, beat: 0 });
    return Promise.resolve('created');
  }

  orderCancel(space: TaskSpace, attemptId: AttemptId): Promise<void> {
    const attempt = this.live(space, attemptId);
    if (attempt !== undefined) this.put(space, { ...attempt, order: 'cancel' });
    return Promise.resolve();
  }

  markLost(
    space: TaskSpace,
    attemptId: AttemptId,
    now: EpochMs,
    only?: 'unclaimed',
  ): Promise<'lost' | 'begun'> {
    const isBegun = this.tasksOf(space).attempts.get(attemptId)?.claimedAt !== undefined;
    if (only === 'unclaimed' && isBegun) return Promise.resolve('begun');
    const attempt = this.live(space, attemptId);
    if (attempt !== undefined) this.put(space, { ...attempt, state: 'lost', order: 'cancel', endedAt: now });
    return Promise.resolve('lost');
  }

  recordDeath(
    space: TaskSpace,
    attemptId: AttemptId,
    { invocation, failure }: WorkerDeath,
    now: EpochMs,
    only?: 'claimed',
  ): Promise<'recorded' | 'refused'> {
    const result = this.tasksOf(space).results.get(taskOf(attemptId));
    if (result?.attemptId === attemptId) return Promise.resolve('refused');
    const attempt = this.live(space, attemptId);
    if (attempt === undefined)
      return Promise.resolve(this.explainLoss(space, attemptId, { invocation, failure }));
    const isAnothers = (attempt.invocation ?? invocation) !== invocation || neverBegan(failure);
    if (attempt.state === 'running' && isAnothers) return Promise.resolve('refused');
    if (only === 'claimed' && attempt.invocation !== invocation) return Promise.resolve('refused');
    const ended = { state: 'lost', order: 'cancel', endedAt: now } as const;
    this.put(space, { ...attempt, ...ended, failure: { ...failure }, invocation });
    return Promise.resolve('recorded');
  }

  /** Says why an attempt is gone that was given up for its silence. */
  private explainLoss(
    space: TaskSpace,
    attemptId: AttemptId,
    { invocation, failure }: WorkerDeath,
  ): 'recorded' | 'refused' {
    const attempt = this.tasksOf(space).attempts.get(attemptId);
    if (attempt?.state !== 'lost' || attempt.invocation !== invocation || attempt.failure !== undefined)
      return 'refused';
    this.put(space, { ...attempt, failure: { ...failure } });
    return 'recorded';
  }

  claim(
    space: TaskSpace,
    attemptId: AttemptId,
    place: ClaimPlace,
    now: EpochMs,
    nextMs?: DurationMs,
  ): Promise<'claimed' | 'refused'> {
    const attempt = this.live(space, attemptId);
    if (attempt?.state !== 'launched' || attempt.order !== 'continue') return Promise.resolve('refused');
    this.beat(space, attempt, { ...place, state: 'running', claimedAt: now, ...next(nextMs) }, now);
    return Promise.resolve('claimed');
  }

  report(
    space: TaskSpace,
    attemptId: AttemptId,
    progress: Progress,
    now: EpochMs,
    nextMs?: DurationMs,
  ): Promise<AttemptOrder> {
    const attempt = this.live(space, attemptId);
    if (attempt?.state !== 'running') return Promise.resolve('cancel');
    this.beat(space, attempt, { progress: copyOf(progress), ...next(nextMs) }, now);
    return Promise.resolve(attempt.order);
  }

  orders(space: TaskSpace, attemptId: AttemptId): Promise<AttemptOrder> {
    const attempt = this.live(space, attemptId);
    return Promise.resolve(attempt?.state === 'running' ? attempt.order : 'cancel');
  }

  noteUpload(
    space: TaskSpace,
    attemptId: AttemptId,
    upload: NotedUpload,
    now: EpochMs,
  ): Promise<AttemptOrder> {
    const attempt = this.live(space, attemptId);
    if (attempt?.state !== 'running') return Promise.resolve('cancel');
    this.beat(space, attempt, { upload: { ...upload } }, now);
    return Promise.resolve(attempt.order);
  }

  commit(
    space: TaskSpace,
    result: TaskResult,
    keep?: 'replica',
    replaces?: AttemptId,
  ): Promise<'won' | 'kept' | 'lost'> {
    const { attempts, results, replicas } = this.tasksOf(space);
    const first = results.get(result.taskId);
    if (first?.attemptId === result.attemptId) return Promise.resolve('won');
    const copy = copyPlain(result);
    if (first !== undefined && first.attemptId !== replaces) {
      if (keep === undefined) return Promise.resolve('lost');
      if (replicas.has(result.attemptId)) return Promise.resolve('kept');
      if (attempts.get(result.attemptId)?.order === 'cancel') return Promise.resolve('lost');
      replicas.set(result.attemptId, copy);
      return Promise.resolve('kept');
    }
    results.set(result.taskId, copy);
    return Promise.resolve('won');
  }

  noteOutputLost(space: TaskSpace, attemptId: AttemptId, now: EpochMs): Promise<number> {
    const { attempts, notes } = this.tasksOf(space);
    const attempt = attempts.get(attemptId);
    if (attempt === undefined) return Promise.resolve(0);
    this.put(space, { ...attempt, outputLostAt: now });
    const count = (notes.get(attemptId) ?? 0) + 1;
    notes.set(attemptId, count);
    return Promise.resolve(count);
  }

  end(space: TaskSpace, attemptId: AttemptId, end: AttemptEnd, now: EpochMs): Promise<'ended' | 'refused'> {
    const attempt = this.live(space, attemptId);
    if (attempt?.state !== 'running') return Promise.resolve(this.hasHandedOn(space, attemptId, end));
    this.beat(space, attempt, { ...end, progress: copyOf(end.progress), endedAt: now }, now);
    return Promise.resolve('ended');
  }

  private hasHandedOn(space: TaskSpace, attemptId: AttemptId, { saved }: AttemptEnd): 'ended' | 'refused' {
    const told = this.tasksOf(space).attempts.get(attemptId)?.saved;
    return saved !== undefined && told !== undefined && isSameWork(told, saved) ? 'ended' : 'refused';
  }

  tell(space: TaskSpace, note: Note): Promise<void> {
    this.tasksOf(space).inbox.set(textOf(note), { ...note });
    return Promise.resolve();
  }

  told(space: TaskSpace): Promise<Inbox> {
    return Promise.resolve({ notes: [...this.tasksOf(space).inbox.values()] });
  }

  clear(space: TaskSpace, { notes }: Inbox): Promise<void> {
    const { inbox } = this.tasksOf(space);
    for (const note of notes) inbox.delete(textOf(note));
    return Promise.resolve();
  }

  read(space: TaskSpace, attemptIds: readonly AttemptId[], what: ReadWish): Promise<TaskRecords> {
    const tasks = this.tasksOf(space);
    const ids = [...new Set(attemptIds)];
    const attempts = ids.flatMap((id) => tasks.attempts.get(id) ?? []);
    if (what === 'records') return Promise.resolve({ attempts, results: [], replicas: [] });
    const results = [...new Set(ids.map(taskOf))].flatMap((id) => tasks.results.get(id) ?? []);
    const replicas = what === 'results' ? [] : ids.flatMap((id) => tasks.replicas.get(id) ?? []);
    return Promise.resolve({ attempts: this.asEnded(space, attempts), results, replicas });
  }

  all(space: TaskSpace): Promise<TaskRecords> {
    const { attempts, results, replicas } = this.tasksOf(space);
    return Promise.resolve({
      attempts: this.asEnded(space, [...attempts.values()]),
      results: [...results.values()],
      replicas: [...replicas.values()],
    });
  }

  /** Drops everything of a job; what is asked of it later is as of a job that never was. */
  forget(jobId: JobId): void {
    this.jobs.delete(jobId);
  }

  private tasksOf({ jobId }: TaskSpace): JobTasks {
    const there = this.jobs.get(jobId);
    if (there !== undefined) return there;
    const tasks: JobTasks = {
      attempts: new Map(),
      results: new Map(),
      replicas: new Map(),
      notes: new Map(),
      inbox: new Map(),
    };
    this.jobs.set(jobId, tasks);
    return tasks;
  }

  private asEnded(space: TaskSpace, attempts: readonly AttemptRecord[]): readonly AttemptRecord[] {
    const { results } = this.tasksOf(space);
    return attempts.map((each) => endedByResult(each, results.get(taskOf(each.attemptId))));
  }

  /** The attempt if it has not ended. */
  private live(space: TaskSpace, attemptId: AttemptId): AttemptRecord | undefined {
    const attempt = this.tasksOf(space).attempts.get(attemptId);
    return attempt !== undefined && isLive(attempt) ? attempt : undefined;
  }

  /** A write of the attempt's worker. */
  private beat(space: TaskSpace, attempt: AttemptRecord, news: Partial<AttemptRecord>, now: EpochMs): void {
    this.put(space, { ...attempt, ...news, beat: attempt.beat + 1, reportedAt: now });
  }

  private put(space: TaskSpace, attempt: AttemptRecord): void {
    this.tasksOf(space).attempts.set(attempt.attemptId, attempt);
  }
}
