import type { Plan } from '../contracts/plan.ts';
import type { Prices } from '../contracts/prices.ts';
import type { StorageTier } from '../contracts/storage-tiers.ts';
import type { DurationMs, EpochMs } from '../contracts/units.ts';
import type { PolicySet } from '../core/policy/policy-set.ts';
import type { Clock } from '../ports/clock.ts';
import type { ForecastStore } from '../ports/forecast-store.ts';
import type { JobAccess } from '../ports/job-access.ts';
import type { JournalStore } from '../ports/journal-store.ts';
import type { DecisionLog, JobStore, LeaseStore } from '../ports/job-store.ts';
import type { Log } from '../ports/log.ts';
import type { RequestMeter } from '../ports/request-meter.ts';
import type { CloneDeps } from './admit-clones.ts';
import type { LossBookKeeper } from './loss-book-keeper.ts';
import type { NodeBookKeeper } from './node-book-keeper.ts';
import type { ZoneBookKeeper } from './zone-book-keeper.ts';
import type { PerformDeps } from './perform-decisions.ts';
import type { SharedLosses } from './shared-losses.ts';
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
  /** Whether there is Fargate; there is not where nothing is said. */
  readonly hasFargate?: boolean;
  /** For how long an attempt may work on Lambda before it stops itself (`mostWorkMs`); where nothing is said, as long as it takes. */
  readonly lambdaMs?: DurationMs;
  /** What the data bucket is kept on; what its name says where nothing is said. */
  readonly storage?: StorageTier;
  /** How often at most the job's record is brought up to date; each second where nothing is said. */
  readonly summaryEveryMs?: DurationMs;
  /** Workers that claimed attempts before are gone, on a host that ends with its workers; where nothing is said, none are. */
  readonly workersSince?: EpochMs;
}

export interface SchedulerDeps extends PerformDeps, CloneDeps {
  /** The rules that treat stragglers of a job; absent: those that its plan names. */
  readonly policyOf?: (plan: Pick<Plan, 'jobId' | 'policy'>) => PolicySet;
  readonly jobs: JobStore;
  readonly leases: LeaseStore;
  readonly decisions: DecisionLog;
  /** Where it is written down what ticks go by, so that they can be gone through again; absent: nowhere. */
  readonly journals?: JournalStore;
  readonly clock: Clock;
  readonly log: Log;
  /** Counts what the scheduler asks for, on hosts where that costs something. */
  readonly requests?: RequestMeter;
  /** What was learned of recurring jobs; absent: nothing is foretold. */
  readonly forecasts?: ForecastStore;
  /** What it costs; the list where nothing is said. */
  readonly prices?: Prices;
  /** Sessions of attempts, on hosts where attempts have rights of their own. */
  readonly access?: JobAccess;
  readonly config: SchedulerConfig;
  /** What is known of slow nodes; absent: what a job meets itself. */
  readonly nodes?: Pick<NodeBookKeeper, 'open' | 'learn' | 'keep'>;
  /** What is known of slow zones; absent: what a job meets itself. */
  readonly zones?: Pick<ZoneBookKeeper, 'told' | 'keep'>;
  /** What is learned of the room for launches by all jobs that this process serves; each for itself where absent. */
  readonly room?: SharedRoom;
  /** What all jobs that this process serves have seen of lost outputs; each for itself where absent. */
  readonly losses?: SharedLosses;
  /** What jobs have seen of lost outputs that ended before; absent: nothing is kept of it. */
  readonly lossBook?: Pick<LossBookKeeper, 'seenByOthers' | 'keep'>;
}
