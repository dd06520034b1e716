import type { AttemptId, JobId, TaskId } from '../../contracts/ids.ts';
import type { AttemptOrder, AttemptRecord, Failure, Progress, TaskResult } from '../../contracts/records.ts';
import type { EpochMs } from '../../contracts/units.ts';
import type { AttemptStore, TaskSpace } from '../../ports/attempt-store.ts';

interface JobTasks {
  readonly attempts: Map<AttemptId, AttemptRecord>;
  readonly results: Map<TaskId, TaskResult>;
}

/** Attempts and results in memory. */
export class MemoryAttemptStore implements AttemptStore {
  private readonly jobs = new Map<JobId, JobTasks>();

  create(space: TaskSpace, attemptId: AttemptId, now: EpochMs): Promise<'created' | 'exists'> {
    const { attempts } = this.tasksOf(space);
    if (attempts.has(attemptId)) return Promise.resolve('exists');
    attempts.set(attemptId, { attemptId, state: 'launched', order: 'continue', launchedAt: now, changedAt: now });
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

  claim(
    space: TaskSpace, attemptId: AttemptId, place: { node: string; zone: string }, now: EpochMs,
  ): Promise<'claimed' | 'refused'> {
    const attempt = this.live(space, attemptId);
    if (attempt?.state !== 'launched' || attempt.order !== 'continue') return Promise.resolve('refused');
    const { node, zone } = place;
    this.put(space, { ...attempt, state: 'running', claimedAt: now, node, zone, changedAt: now });
    return Promise.resolve('claimed');
  }

  report(space: TaskSpace, attemptId: AttemptId, progress: Progress, now: EpochMs): Promise<AttemptOrder> {
    const attempt = this.live(space, attemptId);
    if (attempt?.state !== 'running') return Promise.resolve('cancel');
    this.put(space, { ...attempt, progress: structuredClone(progress), changedAt: now });
    return Promise.resolve(attempt.order);
  }

  commit(space: TaskSpace, result: TaskResult): Promise<'won' | 'lost'> {
    const { results } = this.tasksOf(space);
    const first = results.get(result.taskId);
    if (first !== undefined) return Promise.resolve(first.attemptId === result.attemptId ? 'won' : 'lost');
    results.set(result.taskId, structuredClone(result));
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
      this.put(space, { ...attempt, ...structuredClone(end), endedAt: now, changedAt: now });
    }
    return Promise.resolve();
  }

  changes(
    space: TaskSpace, since: EpochMs,
  ): Promise<{ attempts: readonly AttemptRecord[]; results: readonly TaskResult[] }> {
    const { attempts, results } = this.tasksOf(space);
    return Promise.resolve({
      attempts: [...attempts.values()].filter(({ changedAt }) => changedAt >= since),
      results: [...results.values()].filter(({ committedAt }) => committedAt >= since),
    });
  }

  private tasksOf({ jobId }: TaskSpace): JobTasks {
    const tasks: JobTasks = this.jobs.get(jobId) ?? { attempts: new Map(), results: new Map() };
    this.jobs.set(jobId, tasks);
    return tasks;
  }

  /** The attempt if it has not ended. */
  private live(space: TaskSpace, attemptId: AttemptId): AttemptRecord | undefined {
    const attempt = this.tasksOf(space).attempts.get(attemptId);
    return attempt?.state === 'launched' || attempt?.state === 'running' ? attempt : undefined;
  }

  private put(space: TaskSpace, attempt: AttemptRecord): void {
    this.tasksOf(space).attempts.set(attempt.attemptId, attempt);
  }
}
