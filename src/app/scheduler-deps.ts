import type { JobId } from '../contracts/ids.ts';
import type { DurationMs } from '../contracts/units.ts';
import type { TickConfig } from '../core/model/tick-config.ts';
import type { Clock } from '../ports/clock.ts';
import type { JobAccess } from '../ports/job-access.ts';
import type { DecisionLog, JobStore, LeaseStore } from '../ports/job-store.ts';
import type { Log } from '../ports/log.ts';
import type { RequestMeter } from '../ports/request-meter.ts';
import type { CloneDeps } from './admit-clones.ts';
import type { prepareStage } from './open-stage.ts';
import type { PerformDeps } from './perform-decisions.ts';
import type { SharedRoom } from './shared-room.ts';

/** Times of the resident scheduler. */
export interface SchedulerConfig {
  readonly tickMs: DurationMs;
  readonly heartbeatMs: DurationMs;
  readonly leaseMs: DurationMs;
  /** How long a launch may take to be claimed, on Lambda: as long as its queue keeps an event. */
  readonly claimLeaseMs: DurationMs;
  /** The same on Fargate, whose tasks take longer to start; where nothing is said, the same. */
  readonly fargateClaimLeaseMs?: DurationMs;
  /** Slots of all jobs together. */
  readonly totalSlots: number;
  /** How jobs share slots that are short: `fair` (max-min, where nothing is said), or first come, first served. */
  readonly sharing?: 'fair' | 'first-come';
  /** Whether there is Fargate; there is not where nothing is said. */
  readonly hasFargate?: boolean;
  /** How often at most the job's record is brought up to date; each second where nothing is said. */
  readonly summaryEveryMs?: DurationMs;
}

export interface SchedulerDeps extends PerformDeps, CloneDeps {
  readonly jobs: JobStore;
  readonly leases: LeaseStore;
  readonly decisions: DecisionLog;
  readonly clock: Clock;
  readonly log: Log;
  /** Counts what the scheduler asks for, on hosts where that costs something. */
  readonly requests?: RequestMeter;
  /** Sessions of attempts, on hosts where attempts have rights of their own. */
  readonly access?: JobAccess;
  readonly config: SchedulerConfig;
  /** What is learned of the room for launches by all jobs that this process serves; each for itself where absent. */
  readonly room?: SharedRoom;
  /** Opens a stage in the state; another than `prepareStage` where data has sizes but no bytes. */
  readonly prepareStage?: typeof prepareStage;
  /** Settings of a job's ticks that differ from those of its plan. */
  readonly tuneTick?: (config: TickConfig, jobId: JobId) => TickConfig;
  /** Free slots of each node that has any, by its name, on hosts that know. */
  readonly freeNodes?: (jobId: JobId) => ReadonlyMap<string, number> | undefined;
}
