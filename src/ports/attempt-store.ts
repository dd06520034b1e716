import type { AttemptId, JobId } from '../contracts/ids.ts';
import type {
  AttemptOrder,
  AttemptRecord,
  Failure,
  NotedUpload,
  Progress,
  TaskResult,
  UnreadableRecord,
} from '../contracts/records.ts';
import type { EpochMs } from '../contracts/units.ts';

/** A job's tasks in the store: the job and over how many store partitions its tasks are spread. */
export interface TaskSpace {
  readonly jobId: JobId;
  readonly shards: number;
}

/** Where an attempt runs, and what of the platform runs it: see `AttemptRecord`. */
export interface ClaimPlace {
  readonly node: string;
  readonly zone: string;
  readonly invocation?: string;
}

/** The end of a worker, as the platform tells it. */
export interface WorkerDeath {
  /** As its attempt noted it when it claimed itself, if it came so far. */
  readonly invocation: string;
  readonly failure: Failure;
}

/** Attempts and committed results. Every write is conditional and of one item; `kept` takes two. */
export interface AttemptStore {
  /** By the scheduler before launch: state `launched`. `exists`: written before; launching again is harmless. */
  create(space: TaskSpace, attemptId: AttemptId, now: EpochMs): Promise<'created' | 'exists'>;
  /** By the scheduler: the attempt's next report answers `cancel`; an unclaimed attempt is refused its claim. */
  orderCancel(space: TaskSpace, attemptId: AttemptId, now: EpochMs): Promise<void>;
  /** By the scheduler: `launched` or `running` becomes `lost`, with order `cancel`. No effect on ended ones. */
  markLost(space: TaskSpace, attemptId: AttemptId, now: EpochMs): Promise<void>;
  /**
   * By whoever the platform tells that a worker is gone: as `markLost`, with why. `refused`, and no effect, where the
   * attempt has ended or never was; where it was claimed by another worker than the one that died; and where it was
   * claimed at all, for a launch that has merely `expired`.
   */
  recordDeath(
    space: TaskSpace,
    attemptId: AttemptId,
    death: WorkerDeath,
    now: EpochMs,
  ): Promise<'recorded' | 'refused'>;

  /**
   * By the worker, before any work: `launched` with order `continue` becomes `running`. `refused`: claimed
   * before (a duplicate delivery), cancelled, lost, or never created.
   */
  claim(
    space: TaskSpace,
    attemptId: AttemptId,
    place: ClaimPlace,
    now: EpochMs,
  ): Promise<'claimed' | 'refused'>;
  /** By the worker: records progress of a running attempt; answers its orders (`cancel` if no longer running). */
  report(space: TaskSpace, attemptId: AttemptId, progress: Progress, now: EpochMs): Promise<AttemptOrder>;
  /**
   * By the worker, before it sends bytes of its output part: notes the upload of a running attempt in its record.
   * Answers its orders as `report` does; where it is `cancel` the upload may not be noted, and nobody else knows of it.
   */
  noteUpload(
    space: TaskSpace,
    attemptId: AttemptId,
    upload: NotedUpload,
    now: EpochMs,
  ): Promise<AttemptOrder>;
  /**
   * By the worker: `won` if this result is the first of its task (or this very attempt's). Else `lost`, or where
   * `keep` is said `kept`: it is recorded as a replica, once per attempt however often this is called. An attempt
   * that was told to stop or given up before is never kept: its job may have ended and been cleaned up.
   */
  commit(space: TaskSpace, result: TaskResult, keep?: 'replica'): Promise<'won' | 'kept' | 'lost'>;
  /** By the worker, last: running becomes `done`, `failed` or `cancelled`. No effect if it ended before. */
  end(
    space: TaskSpace,
    attemptId: AttemptId,
    end: { state: 'done' | 'failed' | 'cancelled'; progress: Progress; failure?: Failure },
    now: EpochMs,
  ): Promise<void>;

  /**
   * What has changed at or after `since` (0: all), each once, in no order. Reads every store partition
   * consistently, so that a write that ended before the call is seen if its `changedAt` is not older.
   */
  changes(space: TaskSpace, since: EpochMs): Promise<TaskChanges>;
}

export interface TaskChanges {
  readonly attempts: readonly AttemptRecord[];
  /** The first of each task. */
  readonly results: readonly TaskResult[];
  /** Results of other attempts that were kept. */
  readonly replicas: readonly TaskResult[];
  /** Records that cannot be read, which are in none of the others; absent: none. */
  readonly unreadable?: readonly UnreadableRecord[];
}
