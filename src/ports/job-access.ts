import type { JobId } from '../contracts/ids.ts';
import type { ObjectRef } from '../contracts/keys.ts';
import type { EpochMs } from '../contracts/units.ts';

/** What the attempts of a job need rights for, besides their own records and data. */
export interface JobGrant {
  readonly jobId: JobId;
  /** Prefix under which they upload final parts. */
  readonly output: ObjectRef;
  /** Buckets of the job's sources and of its code, each once. */
  readonly sourceBuckets: readonly string[];
  /** Whether its intermediate data is on the tier `zonal`; absent: it is not. */
  readonly isZonal?: boolean;
}

/** Sessions by which the attempts of a job, and of no other, reach records and objects. */
export interface JobAccess {
  /**
   * Makes sure that the job has a session which outlasts an attempt that is launched at `now`, and answers the word
   * by which workers find it. Cheap while the session is fresh: call it at every tick, since long attempts live on
   * its renewals. Two schedulers of a job get the same word. Throws `StoreUnavailableError` on passing faults,
   * `InvalidInputError` where the job asks for more than one session can name, `JobFailedError` where the right to
   * make sessions is missing.
   */
  keep(grant: JobGrant, now: EpochMs): Promise<string>;
}
