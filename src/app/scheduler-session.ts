import type { JobId } from '../contracts/ids.ts';
import type { RequestTally } from '../contracts/requests.ts';
import type { EpochMs } from '../contracts/units.ts';
import type { TickConfig } from '../core/model/tick-config.ts';
import type { Rng } from '../lib/rng.ts';
import type { LaunchQueue } from './launch-queue.ts';
import type { LaunchWatch } from './observe-launches.ts';
import type { RunningJob } from './perform-decisions.ts';

/** Who runs the scheduler, and until when: an invocation and the end of its time. */
export interface Residency {
  readonly owner: string;
  readonly until: EpochMs;
  /** Whom it follows: one that is known to be gone, whose lease it need not wait for. */
  readonly replaces?: string;
  /**
   * The end of a lease that was watched for as long as a lease lasts and not renewed: it is over, whatever the clock said
   * of whoever has written it.
   */
  readonly outlasted?: EpochMs;
  /** Told to leave before its time is up. */
  readonly signal?: AbortSignal;
}

/** One scheduler's hold on a job, from `enterJob` to `leaveJob`. Changed by `runTick` alone. */
export interface Session extends RunningJob {
  readonly jobId: JobId;
  readonly residency: Residency;
  readonly epoch: number;
  readonly enteredAt: EpochMs;
  readonly submittedAt: EpochMs;
  readonly launches: LaunchQueue;
  /** What it has learned of the room for its launches. */
  readonly watch: LaunchWatch;
  readonly rng: Rng;
  readonly tickConfig: TickConfig;
  version: number;
  leaseUntil: EpochMs;
  grant: number;
  /** Copies that the last tick had no slot for, by the place of their stage. */
  shortByStage: ReadonlyMap<number, number>;
  /** What the ledger charges for the clones of each stage, as far as this scheduler knows. */
  readonly cloneCharges: Map<number, number>;
  /** ω of delay assignment, once it was worked out. */
  learntWaitMs?: number;
  /** What the coordinator has counted for the job, by its record and since; absent where nobody counts. */
  coordination?: RequestTally;
  summarizedAt: EpochMs;
  lastSummary: string;
  /** Keys of records that cannot be read, as far as they were logged. */
  readonly unreadable: Set<string>;
}
