import type { JobId } from '../contracts/ids.ts';
import type { EndingJob, JobRecord, JobRecordState, LogEntry } from '../contracts/records.ts';
import type { DurationMs, EpochMs } from '../contracts/units.ts';
import type { OutputClaim } from '../core/model/output-claims.ts';

/** Fields of a job that change after it was created. A deadline that is there and undefined is taken away. */
export type JobPatch = { readonly deadlineAt?: EpochMs | undefined } & Partial<
  Pick<
    JobRecord,
    | 'state'
    | 'startedAt'
    | 'endedAt'
    | 'cancelRequestedAt'
    | 'seenAt'
    | 'missingSince'
    | 'waitingSince'
    | 'scheduledAt'
    | 'clearedAt'
    | 'shards'
    | 'planNonce'
    | 'publishingAt'
    | 'error'
    | 'stages'
    | 'attempts'
    | 'counters'
    | 'workerMs'
    | 'dollars'
    | 'requests'
    | 'costs'
    | 'coordination'
    | 'guaranteedSlots'
    | 'copies'
    | 'forecast'
    | 'parts'
    | 'partTotals'
  >
>;

/** What a client token is claimed for. */
export interface TokenClaim {
  readonly jobId: JobId;
  readonly now: EpochMs;
  /** A job of an earlier claim whose record is gone, so that the token is free again. */
  readonly forgotten?: JobId;
}

/** Jobs of a list, and those of them whose records cannot be read, by name. */
export interface JobPage {
  readonly jobs: readonly JobRecord[];
  readonly cursor?: string;
  /** Absent: none. */
  readonly unreadable?: readonly { readonly jobId: string; readonly message: string }[];
}

/** On which condition a job is updated, beside its state. */
export interface UpdateOptions {
  /** Only where it has no `publishingAt`. */
  readonly unlessPublishing?: boolean;
  /** Of the scheduler of this epoch: only where none of a later one has written so. */
  readonly epoch?: number;
}

/** Job records. Every call is one atomic write or one consistent read. */
export interface JobStore {
  /** Exactly one of several creators of one id gets `created`; the others get the job that is there. */
  create(job: JobRecord): Promise<{ kind: 'created' } | { kind: 'exists'; job: JobRecord }>;
  /**
   * Throws `UnreadableRecordError` where the record cannot be read. One of which only what the job has come to so far
   * cannot be read is given with `unreadable`.
   */
  load(jobId: JobId): Promise<JobRecord | undefined>;
  /** What is needed to end a job, whatever its record holds: what cannot be read of it is as if it were not there. */
  salvage(jobId: JobId): Promise<EndingJob | undefined>;
  /** Ends a job, whatever its record holds, unless it has ended; with `unlessPublishing` as `update`. */
  end(
    jobId: JobId,
    patch: JobPatch,
    options?: Pick<UpdateOptions, 'unlessPublishing'>,
  ): Promise<'updated' | 'stale'>;
  /**
   * The job that a client token stands for: `claim.jobId` where nobody has claimed the token in the time that records
   * are kept, or only for the job `claim.forgotten`; else the job of whoever has. Of racing claims one holds for all.
   */
  claimToken(token: string, claim: TokenClaim): Promise<JobId>;
  /** The job that a client token was claimed for last, which may be gone; undefined where it was for none. */
  jobOfToken(token: string): Promise<JobId | undefined>;
  /** Newest first; at most `limit` (1 to 100). May lag a little. Throws `InvalidInputError` on a strange cursor. */
  list(page: { limit: number; cursor?: string }): Promise<JobPage>;
  /**
   * Writes the fields of `patch` if the job is in one of `states`, and `options` hold; else `stale` and nothing is
   * written.
   */
  update(
    jobId: JobId,
    states: readonly JobRecordState[],
    patch: JobPatch,
    options?: UpdateOptions,
  ): Promise<'updated' | 'stale'>;
  /** Which jobs' outputs lie where in a bucket, in one record. */
  loadClaims(bucket: string): Promise<BucketClaims>;
  /** Replaces them, if they are still those of `version`; else `stale`: somebody came between, perhaps this very call. */
  saveClaims(bucket: string, claims: readonly OutputClaim[], version: number): Promise<'saved' | 'stale'>;
}

/**
 * All claims on outputs in one bucket that can be read, and the version by which they are replaced: 0 before the first,
 * another after each change.
 */
export interface BucketClaims {
  readonly claims: readonly OutputClaim[];
  readonly version: number;
}

/** A lease that was taken. */
export interface AcquiredLease {
  readonly kind: 'acquired';
  readonly epoch: number;
  readonly inOrder?: true;
}

/** The lease of a job's scheduler. The epoch grows with every acquisition: a fencing token. */
export interface LeaseStore {
  /**
   * Takes the lease if it is free, run out, already this owner's, or `replaced`'s, who is known to be gone. `inOrder`:
   * whoever held it last has released it so.
   */
  acquire(
    jobId: JobId,
    owner: string,
    now: EpochMs,
    length: DurationMs,
    replaced?: string,
  ): Promise<AcquiredLease | { kind: 'held'; until: EpochMs }>;
  /** `lost`: somebody else has taken it since. */
  renew(jobId: JobId, owner: string, epoch: number, until: EpochMs): Promise<'renewed' | 'lost'>;
  /**
   * Lets others in at once. No effect if it is not this owner's any more. `inOrder` is for the next holder to know: all
   * that was begun under this lease was brought to its end.
   */
  release(jobId: JobId, owner: string, epoch: number, inOrder?: 'in-order'): Promise<void>;
}

/**
 * The decisions of a job, append-only. Appending version n is the fence: it succeeds only once, so that of two
 * schedulers that both believe to hold the lease one gets `stale` and acts no more.
 */
export interface DecisionLog {
  append(jobId: JobId, entry: LogEntry): Promise<'appended' | 'stale'>;
  /** All entries in order of version. */
  read(jobId: JobId): AsyncIterable<LogEntry>;
}
