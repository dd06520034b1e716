import type { AttemptId, JobId, TaskId } from '../../contracts/ids.ts';
import type {
  AttemptOrder,
  AttemptRecord,
  Failure,
  NotedUpload,
  Progress,
  TaskResult,
} from '../../contracts/records.ts';
import type { EpochMs } from '../../contracts/units.ts';
import type {
  AttemptStore,
  ClaimPlace,
  TaskChanges,
  TaskSpace,
  WorkerDeath,
} from '../../ports/attempt-store.ts';

interface JobTasks {
  readonly attempts: Map<AttemptId, AttemptRecord>;
  readonly results: Map<TaskId, TaskResult>;
  /** Every version of every attempt, oldest change first: an incremental read costs what changed. */
  versions: AttemptRecord[];
  /** Results, oldest commit first. */
  readonly commits: TaskResult[];
  /** Results kept beside those of their tasks, oldest commit first. */
  readonly replicas: TaskResult[];
}

/** Outdated versions that may pile up, beyond one for each attempt, before they are swept. */
const SPARE_VERSIONS = 1_000;

const copyOf = (progress: Progress): Progress => ({
  ...progress,
  phaseMs: { ...progress.phaseMs },
  ...(progress.fetched === undefined ? {} : { fetched: { ...progress.fetched } }),
  ...(progress.requests === undefined ? {} : { requests: { ...progress.requests } }),
});

/** Adds to a list in order of time; nearly always at its end. */
function insertByTime<T>(list: T[], item: T, timeOf: (item: T) => number): void {
  let place = list.length;
  while (place > 0) {
    const before = list[place - 1];
    if (before === undefined || timeOf(before) <= timeOf(item)) break;
    place -= 1;
  }
  if (place === list.length) list.push(item);
  else list.splice(place, 0, item);
}

/** The end of a list in order of time that begins at `since`. */
function tailSince<T>(list: readonly T[], since: number, timeOf: (item: T) => number): T[] {
  let from = list.length;
  for (let item = list[from - 1]; item !== undefined && timeOf(item) >= since; item = list[from - 1])
    from -= 1;
  return list.slice(from);
}

/** Attempts and results in memory. */
export class MemoryAttemptStore implements AttemptStore {
  private readonly jobs = new Map<JobId, JobTasks>();

  create(space: TaskSpace, attemptId: AttemptId, now: EpochMs): Promise<'created' | 'exists'> {
    const { attempts } = this.tasksOf(space);
    if (attempts.has(attemptId)) return Promise.resolve('exists');
    this.put(space, { attemptId, state: 'launched', order: 'continue', launchedAt: now, changedAt: now });
    return Promise.resolve('created');
  }

  orderCancel(space: TaskSpace, attemptId: AttemptId, now: EpochMs): Promise<void> {
    const attempt = this.live(space, attemptId);
    if (attempt !== undefined) this.put(space, { ...attempt, order: 'cancel', changedAt: now });
    return Promise.resolve();
  }

  markLost(space: TaskSpace, attemptId: AttemptId, now: EpochMs): Promise<void> {
    const attempt = this.live(space, attemptId);
    if (attempt !== undefined) {
      this.put(space, { ...attempt, state: 'lost', order: 'cancel', endedAt: now, changedAt: now });
    }
    return Promise.resolve();
  }

  recordDeath(
    space: TaskSpace,
    attemptId: AttemptId,
    { invocation, failure }: WorkerDeath,
    now: EpochMs,
  ): Promise<'recorded' | 'refused'> {
    const attempt = this.live(space, attemptId);
    if (attempt === undefined) return Promise.resolve('refused');
    const isAnothers = (attempt.invocation ?? invocation) !== invocation || failure.cause === 'expired';
    if (attempt.state === 'running' && isAnothers) return Promise.resolve('refused');
    const ended = { state: 'lost', order: 'cancel', endedAt: now, changedAt: now } as const;
    this.put(space, { ...attempt, ...ended, failure: { ...failure } });
    return Promise.resolve('recorded');
  }

  claim(
    space: TaskSpace,
    attemptId: AttemptId,
    place: ClaimPlace,
    now: EpochMs,
  ): Promise<'claimed' | 'refused'> {
    const attempt = this.live(space, attemptId);
    if (attempt?.state !== 'launched' || attempt.order !== 'continue') return Promise.resolve('refused');
    const { node, zone, invocation } = place;
    const where = { node, zone, ...(invocation === undefined ? {} : { invocation }) };
    this.put(space, { ...attempt, ...where, state: 'running', claimedAt: now, changedAt: now });
    return Promise.resolve('claimed');
  }

  report(space: TaskSpace, attemptId: AttemptId, progress: Progress, now: EpochMs): Promise<AttemptOrder> {
    const attempt = this.live(space, attemptId);
    if (attempt?.state !== 'running') return Promise.resolve('cancel');
    this.put(space, { ...attempt, progress: copyOf(progress), changedAt: now });
    return Promise.resolve(attempt.order);
  }

  noteUpload(
    space: TaskSpace,
    attemptId: AttemptId,
    upload: NotedUpload,
    now: EpochMs,
  ): Promise<AttemptOrder> {
    const attempt = this.live(space, attemptId);
    if (attempt?.state !== 'running') return Promise.resolve('cancel');
    this.put(space, { ...attempt, upload: { ...upload }, changedAt: now });
    return Promise.resolve(attempt.order);
  }

  commit(space: TaskSpace, result: TaskResult, keep?: 'replica'): Promise<'won' | 'kept' | 'lost'> {
    const { attempts, results, commits, replicas } = this.tasksOf(space);
    const first = results.get(result.taskId);
    if (first?.attemptId === result.attemptId) return Promise.resolve('won');
    const copy = structuredClone(result);
    if (first !== undefined) {
      if (keep === undefined) return Promise.resolve('lost');
      if (replicas.some(({ attemptId }) => attemptId === result.attemptId)) return Promise.resolve('kept');
      if (attempts.get(result.attemptId)?.order === 'cancel') return Promise.resolve('lost');
      insertByTime(replicas, copy, ({ committedAt }) => committedAt);
      return Promise.resolve('kept');
    }
    results.set(result.taskId, copy);
    insertByTime(commits, copy, ({ committedAt }) => committedAt);
    return Promise.resolve('won');
  }

  end(
    space: TaskSpace,
    attemptId: AttemptId,
    end: { state: 'done' | 'failed' | 'cancelled'; progress: Progress; failure?: Failure },
    now: EpochMs,
  ): Promise<void> {
    const attempt = this.live(space, attemptId);
    if (attempt?.state === 'running') {
      this.put(space, { ...attempt, ...end, progress: copyOf(end.progress), endedAt: now, changedAt: now });
    }
    return Promise.resolve();
  }

  changes(space: TaskSpace, since: EpochMs): Promise<TaskChanges> {
    const { attempts, versions, commits, replicas } = this.tasksOf(space);
    const changed = tailSince(versions, since, ({ changedAt }) => changedAt);
    return Promise.resolve({
      attempts: changed.filter((version) => attempts.get(version.attemptId) === version),
      results: tailSince(commits, since, ({ committedAt }) => committedAt),
      replicas: tailSince(replicas, since, ({ committedAt }) => committedAt),
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
      versions: [],
      commits: [],
      replicas: [],
    };
    this.jobs.set(jobId, tasks);
    return tasks;
  }

  /** The attempt if it has not ended. */
  private live(space: TaskSpace, attemptId: AttemptId): AttemptRecord | undefined {
    const attempt = this.tasksOf(space).attempts.get(attemptId);
    return attempt?.state === 'launched' || attempt?.state === 'running' ? attempt : undefined;
  }

  private put(space: TaskSpace, attempt: AttemptRecord): void {
    const tasks = this.tasksOf(space);
    tasks.attempts.set(attempt.attemptId, attempt);
    insertByTime(tasks.versions, attempt, ({ changedAt }) => changedAt);
    if (tasks.versions.length <= 2 * tasks.attempts.size + SPARE_VERSIONS) return;
    tasks.versions = tasks.versions.filter((version) => tasks.attempts.get(version.attemptId) === version);
  }
}
