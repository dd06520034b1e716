import type { PolicyConfig } from '../../contracts/policy-config.ts';
import type { PolicyName } from '../../contracts/policy-names.ts';
import type { OnBudget } from '../../contracts/job-spec.ts';
import type { LossKind } from '../../contracts/records.ts';
import type { Prices } from '../../contracts/prices.ts';
import type { RequestTally } from '../../contracts/requests.ts';
import type { AttemptId } from '../../contracts/ids.ts';
import type { DurationMs } from '../../contracts/units.ts';
import type { OwnPlaces } from '../policy/own-places.ts';
import type { PolicySet } from '../policy/policy-set.ts';
import type { Allocate, CopyOutput, PartitionSplit, Refusal, TaskPlacement } from './decision.ts';
import type { SlowNode } from './node-book.ts';
import type { ZoneBook } from './zone-book.ts';
import type { CloneAnswer, ClonesTaken } from './stage-clones.ts';
import type { TaskView } from './job-view.ts';

/** Times and limits by which a tick decides. */
export interface TickConfig {
  /** A launched attempt that has not claimed itself for so long after its launch was made is given up. */
  readonly claimLeaseMs: DurationMs;
  /** The same for attempts on Fargate, whose tasks take longer to start. Absent: the same. */
  readonly fargateClaimLeaseMs?: DurationMs;
  /** A job fails of which no worker takes up anything for so long, as `launchedInVainMs` counts it. Absent: none does. */
  readonly nothingBeginsMs?: DurationMs;
  /** Longest time between two ticks. Absent: 0. */
  readonly tickMs?: DurationMs;
  /** A running attempt that has not reported for so long is lost. */
  readonly silenceMs: DurationMs;
  /**
   * How long a running attempt that was told to stop may take to do so: beyond that its task, where nothing else of it works,
   * begins anew. Absent: until it is lost.
   */
  readonly cancelMs?: DurationMs;
  /** Failed and lost attempts of a task before the job fails. */
  readonly attemptsPerTask: number;
  /** Times that the output of a task may be lost before the job fails. Absent: any. */
  readonly lossesPerTask?: number;
  /** First wait before a retry; doubles with each failure, up to the ceiling; full jitter. */
  readonly retryBaseMs: DurationMs;
  readonly retryCeilingMs: DurationMs;
  /** After the last commit, how long at most until every loser was told to stop and the job is finished. */
  readonly drainMs: DurationMs;
  readonly decisionsPerTick: number;
  /** Longest that attempts which one worker takes up one after the other are expected to take. Absent: each has its own. */
  readonly packMs?: DurationMs;
  /** Whether there is Fargate, where tasks go that Lambda has no room or time for. Absent: there is not. */
  readonly hasFargate?: boolean;
  /** For how long an attempt may work on Lambda before it stops itself (`mostWorkMs`). Absent: nobody foretells which tasks would take longer. */
  readonly lambdaMs?: DurationMs;
  /** How stragglers are treated: a policy set, or the name of one; absent: `none`. */
  readonly policy?: PolicyName | PolicySet;
  /** Parameters of the policies, as the job's plan has them. */
  readonly policyConfig: PolicyConfig;
  /** Longest time between two reports of a healthy attempt; shorter silences say nothing. Absent: 0. */
  readonly reportMs?: DurationMs;
  /**
   * Whether a cancelled attempt frees its slot at once, so that a restart needs none. Not on Lambda, where the order
   * reaches the attempt with its next report.
   */
  readonly killFreesSlot: boolean;
}

/** How many launches of some stages, by place, may begin. */
export interface LaunchRoom {
  readonly stages: ReadonlySet<number>;
  readonly launches: number;
  /** Tasks of these stages whose next attempt runs on another kind of worker, and needs none of the room; absent: none. */
  readonly elsewhere?: ReadonlySet<TaskView>;
  /** Where Fargate has refused launches of late; absent: it takes them as they come. */
  readonly refused?: RefusedRoom;
}

/** What may begin on Fargate while it refuses launches: what is beyond would hold slots and be made by nobody. */
export interface RefusedRoom {
  /** Places of the stages that run there, beside which there are the tasks that go `elsewhere`. */
  readonly stages: ReadonlySet<number>;
  readonly launches: number;
  /** Attempts that are owed there beyond those: no slot helps them. */
  readonly beyond: number;
}

/** Whether the next attempt of a task needs some of the room. */
export const takesRoom = (room: LaunchRoom | undefined, task: TaskView): boolean =>
  room?.stages.has(task.stage) === true && room.elsewhere?.has(task) !== true;

/** Whether the next attempt of a task goes where launches are refused. */
export const meetsRefusal = (room: LaunchRoom | undefined, task: TaskView): boolean =>
  room?.refused !== undefined && (room.refused.stages.has(task.stage) || room.elsewhere?.has(task) === true);

/** The dollars of a job, as a tick needs them. */
export interface BudgetTerms {
  /** What the job may cost. */
  readonly capDollars: number;
  readonly onBudget: OnBudget;
  /** What the coordinator has asked for; absent: nobody counts. */
  readonly coordination?: RequestTally;
  /** Absent: the list. */
  readonly prices?: Prices;
}

/** An output that is gone, and which attempt told of it, if one did. */
export interface FoundLoss {
  readonly attemptId: AttemptId;
  readonly how: LossKind;
  readonly by?: AttemptId;
}

/** Partitions of a stage that are each to be read by several tasks. */
export interface StageSplits {
  readonly stage: number;
  readonly splits: readonly PartitionSplit[];
}

/** Where the tasks of a stage are to run. */
export interface StagePlacement {
  readonly stage: number;
  readonly placement: TaskPlacement;
}

/** What a tick may use. */
export interface TickBudget {
  /** Slots that the capacity ledger has granted to the job. */
  readonly slots: number;
  readonly cancelRequested: boolean;
  /**
   * Stages whose launches wait for room that nobody sees, and how many more of them may begin now, copies too. Absent:
   * none do, and slots are all that launches need.
   */
  readonly room?: LaunchRoom;
  /** Unclaimed launches to be given up before their lease has run out; absent: none. */
  readonly renewed?: readonly AttemptId[];
  /** Slots of the whole cluster, of which caps on copies are fractions. Absent: the granted slots. */
  readonly clusterSlots?: number;
  /** Backups that the job may run, where its policy bounds those of all jobs together. Absent: its policy's cap. */
  readonly backups?: number;
  /** What the job may cost; absent: what it takes. */
  readonly dollars?: BudgetTerms;
  /** Free slots of each node that has any, by its name; absent on hosts that place attempts themselves. */
  readonly freeNodes?: ReadonlyMap<string, number> | undefined;
  /** Nodes that the node book says to avoid, slowest first; absent: none. */
  readonly slowNodes?: readonly SlowNode[];
  /** What became of the clones that the job's policy has asked for before this tick; absent: it asked for none. */
  readonly clones?: readonly CloneAnswer[];
  /** Stages that have lost their clones to smaller jobs; absent: none. */
  readonly clonesTaken?: readonly ClonesTaken[];
  /** Outputs that were looked at and are gone, which readers need; absent: none. */
  readonly losses?: readonly FoundLoss[];
  /** Outputs that are copied from now on, for which there are tokens, and why others are not; absent: none. */
  readonly copies?: readonly CopyOutput[];
  readonly notCopied?: readonly Refusal[];
  /** Partitions to be read by several tasks each, by the stage that is about to open; absent: none. */
  readonly splits?: readonly StageSplits[];
  /** Zones for the tasks of stages that are about to open; absent: they run anywhere. */
  readonly placements?: readonly StagePlacement[];
  /** Zones among which launches on Fargate may choose, two at least; absent: none may. */
  readonly zones?: readonly string[];
  /** What other jobs have found of them of late; absent: nothing. */
  readonly zonesTold?: ZoneBook;
  /** Slots that the job asks to be its own from now on; absent: as before. */
  readonly allocation?: Allocate;
  /** Why the job is not taken on, so that it fails. */
  readonly refused?: string;
  /** Whether the job launches no copies, for the sake of another that lacks slots. */
  readonly givesWay?: boolean;
  /** Time below which one of four tasks of each stage stayed in earlier runs of the job, in ms; absent: none are known. */
  readonly earlierMs?: readonly (number | undefined)[];
  /** Riders that are to get places of their own now, where the tick has asked for them already. */
  readonly own?: OwnPlaces;
}
