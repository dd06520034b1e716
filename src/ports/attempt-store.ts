import type { AttemptId, JobId } from '../contracts/ids.ts';
import type { Progress } from '../contracts/progress.ts';
import type {
  AttemptOrder,
  AttemptRecord,
  Failure,
  NotedUpload,
  TaskResult,
  UnreadableRecord,
} from '../contracts/records.ts';
import type { SavedWork } from '../contracts/saved-work.ts';
import type { DurationMs, EpochMs } from '../contracts/units.ts';

/** A job's tasks in the store: the job and over how many keys its tasks are spread. */
export interface TaskSpace {
  readonly jobId: JobId;
  readonly shards: number;
}

/**
 * What a worker has its job's scheduler look at: its attempt has ended or its task has a result (`end`), or it does
 * not go on as its last report foretold (`news`).
 */
export const noteKinds = ['end', 'news'] as const;
export interface Note {
  readonly attemptId: AttemptId;
  readonly kind: (typeof noteKinds)[number];
}

/** The inboxes of a job as one look finds them. */
export interface Inbox {
  /** Each once, in no order. */
  readonly notes: readonly Note[];
  /** Inboxes that cannot be read, by where they lie; absent: none. */
  readonly unreadable?: readonly string[];
}

/** What is read of attempts: their records, the results of their tasks as well, or what else they left too. */
export type ReadWish = 'records' | 'results' | 'outputs';

/** Where an attempt runs, and what of the platform runs it: see `AttemptRecord`. */
export interface ClaimPlace {
  readonly node: string;
  readonly zone?: string;
  readonly invocation?: string;
}

/** How an attempt ends by its worker's word, with what it hands on of a task that it could not end. */
export interface AttemptEnd {
  readonly state: 'done' | 'failed' | 'cancelled';
  readonly progress: Progress;
  readonly failure?: Failure;
  readonly saved?: SavedWork;
}

/** The end of a worker, as the platform tells it. */
export interface WorkerDeath {
  /** As its attempt noted it when it claimed itself, if it came so far; else it is noted with the death. */
  readonly invocation: string;
  readonly failure: Failure;
}

/**
 * Attempts and committed results. Every write is conditional and of one item; `kept` takes two. Times are told to
 * people and compared with others of the same writer; which record is seen hangs on none of them.
 */
export interface AttemptStore {
  /** By the scheduler before launch: state `launched`. `exists`: written before; launching again is harmless. */
  create(space: TaskSpace, attemptId: AttemptId, now: EpochMs): Promise<'created' | 'exists'>;
  /** By the scheduler: the attempt's next report answers `cancel`; an unclaimed attempt is refused its claim. */
  orderCancel(space: TaskSpace, attemptId: AttemptId): Promise<void>;
  /**
   * By the scheduler: `launched` or `running` becomes `lost`, with order `cancel`. No effect on ended ones. Where `only`
   * is said, `launched` alone does, so that a late claim is refused: `begun` where a worker has claimed it before.
   */
  markLost(
    space: TaskSpace,
    attemptId: AttemptId,
    now: EpochMs,
    only?: 'unclaimed',
  ): Promise<'lost' | 'begun'>;
  /**
   * By whoever the platform tells that a worker is gone, and by one that declines: as `markLost`, with why and by which
   * worker, also where that had not claimed it. Of one that was given up before for its
   * silence, and that this worker had claimed, it takes down why, once. `refused`, and no effect, where the attempt has
   * ended otherwise, by its task's result too, or never was; where it was claimed by another worker than the one that
   * died; and where it was claimed at all, for a launch that has merely `expired`, or that the worker has `declined` which
   * it was handed to. Where `only` is said, it was claimed by the worker that died.
   */
  recordDeath(
    space: TaskSpace,
    attemptId: AttemptId,
    death: WorkerDeath,
    now: EpochMs,
    only?: 'claimed',
  ): Promise<'recorded' | 'refused'>;

  /**
   * By the worker, before any work: `launched` with order `continue` becomes `running`. `refused`: claimed
   * before (a duplicate delivery), cancelled, lost, or never created. `nextMs`, here and below: the worker writes
   * again within that time, so that nobody need look before.
   */
  claim(
    space: TaskSpace,
    attemptId: AttemptId,
    place: ClaimPlace,
    now: EpochMs,
    nextMs?: DurationMs,
  ): Promise<'claimed' | 'refused'>;
  /** By the worker: records progress of a running attempt; answers its orders (`cancel` if no longer running). */
  report(
    space: TaskSpace,
    attemptId: AttemptId,
    progress: Progress,
    now: EpochMs,
    nextMs?: DurationMs,
  ): Promise<AttemptOrder>;
  /** By the worker: its orders as `report` answers them, for the price of a read; orders of a second ago may be missing, its own claim is not. */
  orders(space: TaskSpace, attemptId: AttemptId): Promise<AttemptOrder>;
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
   * that was told to stop or given up before is never kept: its job may have ended and been cleaned up. With a result
   * that holds its progress a running attempt that won has ended. With `replaces` it also wins where the task's result
   * is that attempt's, whose output is gone, and takes its place.
   */
  commit(
    space: TaskSpace,
    result: TaskResult,
    keep?: 'replica',
    replaces?: AttemptId,
  ): Promise<'won' | 'kept' | 'lost'>;
  /**
   * By whoever publishes: notes on an attempt that its part of the output is gone, and answers how often that was noted. No
   * effect on one that never was: 0.
   */
  noteOutputLost(space: TaskSpace, attemptId: AttemptId, now: EpochMs): Promise<number>;
  /**
   * By the worker, last: running becomes `done`, `failed` or `cancelled`. `refused`, and no effect, where it ended before,
   * perhaps by this very call when it was made first; but `ended` where its record tells of the very work that it hands on.
   */
  end(space: TaskSpace, attemptId: AttemptId, end: AttemptEnd, now: EpochMs): Promise<'ended' | 'refused'>;

  /**
   * By the worker, after what it is about was written: leaves a note in an inbox of the job. Once however often it is
   * done. A note that finds its inbox full is dropped: the attempt is read when its next report is due.
   */
  tell(space: TaskSpace, note: Note, now: EpochMs): Promise<void>;
  /** By the scheduler: what was told and not cleared. Consistent: what was told before is there. */
  told(space: TaskSpace): Promise<Inbox>;
  /** By the scheduler: takes notes out, and empties inboxes that cannot be read. What is told meanwhile stays. */
  clear(space: TaskSpace, inbox: Inbox): Promise<void>;

  /**
   * The records of these attempts, with `results` those of their tasks too, and with `outputs` also what they left as
   * replicas, each once and in no order; what is not there is left out. Consistent, so that a write that ended before
   * is seen; but `records` alone cost half, and may be older than what was read before, by a second or so.
   */
  read(space: TaskSpace, attemptIds: readonly AttemptId[], what: ReadWish): Promise<TaskRecords>;
  /** Everything of a job's tasks, consistently, found by the job's keys alone. */
  all(space: TaskSpace): Promise<TaskRecords>;
}

/** Records of attempts and tasks. Where results are read with them, attempts stand as `endedByResult` has them. */
export interface TaskRecords {
  readonly attempts: readonly AttemptRecord[];
  /** The first of each task. */
  readonly results: readonly TaskResult[];
  /** Results of other attempts that were kept. */
  readonly replicas: readonly TaskResult[];
  /** Records that cannot be read, which are in none of the others; absent: none. */
  readonly unreadable?: readonly UnreadableRecord[];
}
