import type { JobId } from '../contracts/ids.ts';
import type { ForecastBasis, JobForecast } from '../contracts/records.ts';
import type { RequestTally } from '../contracts/requests.ts';
import type { EpochMs } from '../contracts/units.ts';
import type { JobProfile } from '../core/forecast/job-profile.ts';
import type { Predictor } from '../core/forecast/predictor.ts';
import type { BudgetTerms, FoundLoss, TickConfig } from '../core/model/tick-config.ts';
import type { Rng } from '../lib/rng.ts';
import type { CopyQueue } from './copy-queue.ts';
import type { GrantContext } from './ledger-words.ts';
import type { LaunchQueue } from './launch-queue.ts';
import type { LaunchWatch } from './observe-launches.ts';
import type { Protection } from './protect-outputs.ts';
import type { LaunchDecision, RunningJob } from './perform-decisions.ts';

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

/** What a job is foretold by. */
export interface FoundForecast {
  readonly basis: ForecastBasis;
  /** Finished runs that it rests on. */
  readonly runs: number;
  /** Undefined where nothing is known of the job. */
  readonly predictor: Predictor | undefined;
  /** As many times as much slack is kept as of a forecast by the job's own runs. */
  readonly slackFactor: number;
  /** Tasks of the job itself that it rests on. */
  readonly tasks: number;
  /** Of each stage, the time below which one of four tasks stayed in the job's own runs, in ms; absent: there are none. */
  readonly earlierMs?: readonly (number | undefined)[];
  /** What jobs like it tell, where its own runs tell nothing. */
  readonly others?: JobProfile;
  /** Whether jobs like it were looked for, as is done for a deadline alone; absent: not yet. */
  readonly hasSought?: boolean;
}

/** What a scheduler keeps of the forecast of its job, and of the loop that controls its slots. */
export interface DeadlineControl {
  /** What the job is foretold by; as its tasks end they may tell more. */
  forecast: FoundForecast;
  /** When the loop ran last, and for what deadline. */
  lookedAt: EpochMs | undefined;
  deadlineAt: EpochMs | undefined;
  /** A_t; undefined before this scheduler's first look. */
  smoothed: number | undefined;
  /** Whether the job meets its deadline easily, as it was seen last. */
  hasSlack: boolean;
  /** Whether the ledger may know a bid of the job. */
  mayHaveBid: boolean;
  /** When it was last tried to take the job back under control; undefined: never by this scheduler. */
  triedAt: EpochMs | undefined;
  /** How often the ledger could not be asked. */
  tries: number;
  /** As the job's record tells it. */
  told: JobForecast | undefined;
}

/** One scheduler's hold on a job, from `enterJob` to `leaveJob`. Changed by `runTick` alone. */
export interface Session extends RunningJob {
  readonly jobId: JobId;
  readonly residency: Residency;
  readonly epoch: number;
  readonly enteredAt: EpochMs;
  readonly submittedAt: EpochMs;
  /** Its part of the slots: how many are its own before any are shared, and its weight where they are. */
  share: Pick<GrantContext, 'guaranteed' | 'weight'>;
  /** What it knows for the control of its slots by its deadline; absent before it has looked. */
  deadlineControl?: DeadlineControl;
  /** What the job may cost, and what happens then; absent: what it takes. */
  readonly budget?: Pick<BudgetTerms, 'capDollars' | 'onBudget'>;
  readonly launches: LaunchQueue;
  /** Outputs that were decided to be copied, and were not yet. */
  readonly copies: CopyQueue;
  /** What it knows of losses, and of what it has judged. */
  readonly protection: Protection;
  /** Launches of an earlier scheduler that wait until the lists of what their stages read are written anew. */
  readonly heldLaunches: LaunchDecision[];
  /** What it has learned of the room for its launches. */
  readonly watch: LaunchWatch;
  readonly rng: Rng;
  /** How it ticks: of its plan and its host. */
  readonly tickConfig: TickConfig;
  version: number;
  leaseUntil: EpochMs;
  grant: number;
  /** Copies that the last tick had no slot for, by the place of their stage. */
  shortByStage: ReadonlyMap<number, number>;
  /** Outputs that were found lost and on which the last tick, full as it was, did not decide. */
  undecidedLosses: readonly FoundLoss[];
  /** Tasks that the last tick had no dollars for. */
  overBudget: number;
  /** What the ledger charges for the clones of each stage, as far as this scheduler knows. */
  readonly cloneCharges: Map<number, number>;
  /** ω of delay assignment, once it was worked out. */
  learntWaitMs?: number;
  /** What the coordinator has counted for the job, by its record and since; absent where nobody counts. */
  coordination?: RequestTally;
  /** When the job was taken on, as its record is told where it says that it waits; absent: it never said so. */
  scheduledAt?: EpochMs;
  summarizedAt: EpochMs;
  lastSummary: string;
  /** Keys of records that cannot be read, as far as they were logged. */
  readonly unreadable: Set<string>;
  /** Why proposals for tasks were refused, as far as the log was told: by task, the reasons, of copies apart. */
  readonly toldRefusals: Map<string, Set<string>>;
  /** Nodes of which the log was told why they are avoided. */
  readonly toldNodes: Set<string>;
}
