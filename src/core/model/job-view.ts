import type { AttemptId } from '../../contracts/ids.ts';
import type { Worker } from '../../contracts/job-spec.ts';
import type { EdgePattern } from '../../contracts/plan.ts';
import type { Progress } from '../../contracts/progress.ts';
import {
  type AttemptState,
  type Failure,
  type LostOutput,
  neverBegan,
  type TaskResult,
} from '../../contracts/records.ts';
import type { SavedWork } from '../../contracts/saved-work.ts';
import type { DurationMs, EpochMs } from '../../contracts/units.ts';
import type { OutputPlace } from '../../contracts/worker-places.ts';
import type { SortedNumbers } from '../../lib/sorted-numbers.ts';
import type { SlotTime } from '../estimate/slot-time.ts';
import type {
  AllocationReason,
  CancelReason,
  CopyOutput,
  LaunchReason,
  PartitionSplit,
  TaskPlacement,
} from './decision.ts';
import type { ProgressShape } from './progress-shape.ts';
import type { TaskCost } from './task-cost.ts';
import type { ZonesSlowness } from './zone-slowness.ts';

/** A sum and of how many: its mean is taken where it is read. */
export interface Tally {
  sumMs: number;
  count: number;
}

/** What an attempt of a task took, and where; without a zone: nobody tells. */
export interface RunSample {
  readonly task: TaskView;
  readonly ms: number;
  readonly zone?: string | undefined;
}

/** What the finished attempts of a stage tell, kept up to date as they finish, so that a tick need not look at them. */
export interface StageStatistics {
  /** From claim to end of each winning attempt, on its worker's clock. */
  readonly runMs: SortedNumbers;
  /** From launch to end of the same, which includes queueing and cold start. */
  readonly sinceLaunchMs: SortedNumbers;
  /** Run time per input byte of the same; a task reads no less than a share of the stage's mean. */
  msPerByte: SortedNumbers;
  /** The mean input of the stage's tasks, once it is open. */
  meanBytes: number;
  /** What each of the same has read and taken, in the order in which they finished. */
  readonly samples: RunSample[];
  /** What attempts would have taken that were well on their way when another of their task won, in that order. */
  readonly outrun: RunSample[];
  /** What tasks cost by their input, learnt anew each time that so many more have finished. */
  cost: TaskCost;
  /** Run time over cost of each of `samples`. */
  slowness: SortedNumbers;
  /** The same by zone, with that of `outrun`. */
  readonly zones: ZonesSlowness;
  /** How progress follows from time, learnt from `recent`. */
  shape: ProgressShape;
  /** Input bytes of the same. */
  readBytes: number;
  /** Records per byte of the same, where they count records. */
  readonly density: SortedNumbers;
  /** From the decision to launch until the claim. */
  readonly lag: Tally;
  /** From all input read until the end, where a report lay between. */
  readonly wrapUpMs: SortedNumbers;
  /** Winners of late, at most `recentLimit`: their reports show how time spreads over a task. */
  readonly recent: AttemptView[];
  /** Slot time of the same tasks, with that of all their attempts. */
  slotTime: SlotTime;
  /** The least input of a task that ran out of Lambda's time; absent: none has. */
  leastTimedOutBytes?: number;
  /** When the last backup was launched. */
  lastBackupAt?: EpochMs;
}

/** How fast a node did a task. */
export interface NodeSample {
  /** Place of the task's stage. */
  readonly stage: number;
  readonly msPerByte: number;
}

/** An execution environment and what it has done. */
export interface NodeView {
  readonly id: string;
  zone?: string;
  /** How often something was told of it: a winning attempt that ran here once, one that another outran twice. */
  finished: number;
  /** How many winning attempts ran here. */
  won: number;
  /** What was told last, at most `nodeSampleLimit`, the newest last. */
  readonly recent: NodeSample[];
}

/** How far an attempt was, after how much time of its own. */
export interface ProgressReport {
  readonly workedMs: number;
  readonly bytesRead: number;
}

/** How a stage is cloned, decided once, before its first task is launched. */
export interface StageClones {
  /** Copies of each cloned task, the original included: at least 2. */
  readonly copies: number;
  /** How many of its tasks are cloned: the first in the order of launches. All of them under all or nothing. */
  readonly tasks: number;
  /** ω: how long its clones wait for upstream copies of their own, and its late copies go on for others. Absent: 0. */
  readonly waitMs?: number;
  /** Whether its clones were taken away since: each task is to have one copy, and is treated as if never cloned. */
  readonly preempted?: true;
}

/** In which order tasks of a stage are first launched; ties of size by index. */
export type LaunchOrder = 'largest-first' | 'by-index';

/** A stage as policies know it: how many tasks, what they read, which stages come before. */
export interface StageShape {
  readonly name: string;
  readonly tasks: number;
  /** Places in the job's stages, each earlier than this one. */
  readonly upstream: readonly number[];
  /** How each of `upstream` is read; absent: all-to-all. */
  readonly patterns?: readonly EdgePattern[];
  /** Bytes each task reads from sources; what it reads from stages is added when the stage opens. */
  readonly sourceBytes: readonly number[];
  /** What its attempts run on, unless a failure has taught otherwise. Absent: a Lambda worker of medium size. */
  readonly worker?: Worker;
  /** Whether its tasks may go to Fargate where Lambda has no room or time for them. Absent: they may. */
  readonly mayUseFargate?: boolean;
  /**
   * How many tasks may be added to it where partitions that it reads are split, of any of `cutInputs`: each record's output
   * depends on it and on the other inputs' records alone, in no order. Absent: its operator needs whole partitions.
   */
  readonly addableTasks?: number;
  /** Of which of its inputs a partition may be split; absent: of any. */
  readonly cutInputs?: readonly number[];
}

/**
 * An attempt as policies see it. What is absent is there as undefined: were fields added one by one, and deleted, each
 * access of each tick would be a look-up in a table.
 */
export interface AttemptView {
  readonly id: AttemptId;
  readonly stage: number;
  readonly task: number;
  readonly number: number;
  /** This and the next change where its launch was withdrawn, and it is decided on anew under the same id. */
  reason: LaunchReason;
  /** What it runs on, where that is not its stage's own worker. */
  worker?: Worker | undefined;
  /** The head of the pack in which it was launched, where it rides: the attempt that its worker was started for. */
  behind?: AttemptId | undefined;
  /**
   * Of one that rides, once it rides no more: `carrier` where those before it have ended, so that their worker is about
   * to take it up, or has; `own` where it was launched by itself after all.
   */
  place?: 'carrier' | 'own' | undefined;
  /** Of one that rides or did: when its pack was launched, since when a worker may have taken it up. */
  rodeSince?: EpochMs | undefined;
  state: AttemptState;
  cancelOrdered: boolean;
  /** Why it was told to stop, first; absent where it was not, or was given up. */
  cancelReason?: CancelReason | undefined;
  /**
   * Since when it can hear that it is to stop: when that order was written, until then when it was decided, or when another
   * scheduler has taken over since; absent as above.
   */
  cancelledAt?: EpochMs | undefined;
  /**
   * When its launch was made: handed to the service that starts workers. Until then, when it was decided. All times but
   * the worker's own (`claimedAt`, `reportedAt`, `endedAt`) are the scheduler's clock.
   */
  launchedAt: EpochMs;
  /** Whether the scheduler has decided on its launch and not made it yet: nobody can claim it. Absent: it was made. */
  isHeldBack?: true | undefined;
  /** When its record was made; absent where nobody has seen one. */
  recordedAt?: EpochMs | undefined;
  /** When the scheduler last saw a change of it: silence is counted from here, whatever the worker's clock says. */
  seenAt: EpochMs;
  /** When the scheduler last read its record, and when the result of its task beside it; absent: nobody tells. */
  readAt?: EpochMs | undefined;
  outputReadAt?: EpochMs | undefined;
  /** How often its worker had written its record. */
  beat: number;
  /** How long after that write the worker writes again at the latest; absent: it does not say. */
  nextMs?: DurationMs | undefined;
  claimedAt?: EpochMs | undefined;
  /** When the worker last wrote its record. */
  reportedAt?: EpochMs | undefined;
  endedAt?: EpochMs | undefined;
  node?: string | undefined;
  zone?: string | undefined;
  /** Whether its worker keeps its output for others, and stays for them. */
  keeps?: boolean | undefined;
  progress?: Progress | undefined;
  failure?: Failure | undefined;
  /** What it has handed on of its task. */
  saved?: SavedWork | undefined;
  /** Why its record cannot be read; absent where it can. */
  unreadable?: string | undefined;
  /** Its progress over time, oldest first; thinned out where it is long. */
  readonly reports: ProgressReport[];
  /** The same by its worker's looks at itself, which are finer; none where that tells none, or nobody needs them any more. */
  looks: readonly ProgressReport[];
  /** Whether every upstream output that it reads has a copy that no other attempt of its task reads. */
  hasOwnCopies: boolean;
}

export interface TaskView {
  readonly stage: number;
  readonly index: number;
  /** What it reads by its plan. What it costs follows from `inputOf`. */
  inputBytes: number;
  /** What it reads in all by the word of the attempt that has read the most of it, with what that has read; absent: nobody has said. */
  told: { readonly bytes: number; readonly readBytes: number } | undefined;
  readonly attempts: AttemptView[];
  /** Failed and lost attempts: what the limit of attempts counts. */
  failures: number;
  /** Not launched again before this time. */
  notBefore: EpochMs;
  result?: TaskResult;
  /** Of which attempt the store has the result: the one that the next result takes the place of. */
  recorded?: AttemptId;
  /** Attempts whose output is gone, by number, in the order in which that was decided. */
  readonly lostOutputs: number[];
  /** The first attempt since the task's output was lost last: earlier ones have nothing to say any more. 0: never. */
  since: number;
  /** Other attempts that wrote the very same output, by number, in order of arrival. */
  readonly replicas: number[];
  /** The places of those that are not in the data bucket, by number; absent: all are there. */
  replicaPlaces?: ReadonlyMap<number, OutputPlace>;
  /** Whether the winning attempt has been taken into the statistics. */
  measured: boolean;
  /** Whether it is one of its stage's `unstarted`. */
  isFirstOwed: boolean;
}

export interface StageView {
  readonly shape: StageShape;
  readonly index: number;
  /** Those of its plan, and after them, once it is open, those that were added as its partitions were split. */
  tasks: readonly TaskView[];
  /** Its partitions that are read by several tasks each, as was decided when it opened; absent: none are. */
  splits?: readonly PartitionSplit[];
  /** Where its tasks are to run, as was decided when it opened; absent: anywhere. */
  placement?: TaskPlacement;
  /** `waiting` for its inputs, then `open` until every task has a result. */
  state: 'waiting' | 'open' | 'done';
  done: number;
  readonly statistics: StageStatistics;
  /** Indices of tasks in the order in which they are first launched. */
  order: readonly number[];
  /** Every task before this place of `order` has an attempt or a result. */
  nextFirst: number;
  /** How many tasks have neither attempt nor result, once it has opened. */
  unstarted: number;
  /** Launched before, now without a live attempt and without a result. */
  readonly retryable: Set<TaskView>;
  /** How it is cloned; absent where it is not. */
  clones?: StageClones;
  /** How often the lists of what its tasks read were written anew. */
  revision: number;
  /** Tasks of other stages whose output is another, or none, since those lists were written: nothing is launched. */
  readonly outdated: Set<TaskView>;
  /** How many of its tasks have more than k replicas, by k; as long as the most that any task has. */
  readonly replicated: number[];
  openedAt?: EpochMs;
  doneAt?: EpochMs;
}

/** Slots that a job asks to be its own for its deadline, as its log says. */
export interface Allocation {
  readonly slots: number;
  readonly smoothed: number;
  readonly reason: AllocationReason;
  /** When it was decided. */
  readonly at: EpochMs;
}

/** An output that is said to be gone, as it was said first. */
export interface Suspicion extends Omit<LostOutput, 'how'> {
  /** `unpublished`: its part of the job's output cannot be made visible. */
  readonly how: LostOutput['how'] | 'unpublished';
  /** Attempts that have failed for want of it; empty where it was whoever publishes. */
  readonly by: AttemptView[];
}

/** Attempts that one worker takes up one after the other. */
export interface Pack {
  /** The one that the worker was started for. */
  readonly head: AttemptId;
  /** Those behind it, in their order. */
  readonly riders: AttemptView[];
  /** Whether its worker takes up no more of them, as far as is known. */
  isOver: boolean;
  /** Since when the attempt is awaited or at work whose turn it is, by the scheduler's clock. */
  since: EpochMs;
}

/**
 * The state of a job. Owned and changed only by the functions of `job-state.ts`; policies read it. It is changed in
 * place, since a tick must cost what changed: copying 10,000 tasks for one heartbeat would not.
 */
export interface JobState {
  readonly stages: readonly StageView[];
  /** Attempts that hold a slot: launched or running. Those that ride do not: their worker is another's. */
  readonly live: Set<AttemptView>;
  /** Attempts that wait for the one before them in their pack to end. */
  readonly riding: Set<AttemptView>;
  /** Packs of which any attempt rides, or did when it was looked last, by their heads. */
  readonly packs: Map<AttemptId, Pack>;
  /** Told to stop before they were seen to work, which they may do all the same: to be read once more. */
  readonly unsure: Set<AttemptView>;
  readonly attempts: Map<AttemptId, AttemptView>;
  readonly launchOrder: LaunchOrder;
  /** Where attempts ran, by node. */
  readonly nodes: Map<string, NodeView>;
  /** When the first attempt of the job was decided on. */
  firstLaunchAt?: EpochMs;
  /** When the scheduler had taken the job over, and all that there was of it: what came before it has not seen happen. */
  takenOverAt?: EpochMs;
  /** When a worker was last at work, as far as is known, by that worker's clock; absent: none has ever taken up an attempt. */
  workedAt?: EpochMs;
  /** Tasks that got a result since the last tick: their other attempts are to be cancelled. */
  readonly justDone: TaskView[];
  /** Absent until something was decided for its deadline. */
  allocation?: Allocation;
  /** The first failure that no retry can mend. */
  fatal?: {
    readonly stage: string;
    readonly task: number;
    readonly failure: Failure;
    /** Whether two attempts of the task have failed of it. */
    readonly alike?: true;
  };
  /** When the last task was committed. */
  doneAt?: EpochMs;
  /** Outputs that were decided to be copied, with their bytes and why. */
  readonly copied: Map<AttemptId, Pick<CopyOutput, 'bytes' | 'reason'>>;
  /** Outputs that readers did not find, by the attempt that wrote them, until somebody has looked. */
  readonly suspects: Map<AttemptId, Suspicion>;
}

export { isLive } from './attempt-life.ts';

/** Whether an attempt waits for others of its pack to end, and so holds no slot. */
export const isRiding = ({ state, behind, place }: AttemptView): boolean =>
  state === 'launched' && behind !== undefined && place === undefined;

/**
 * Whether an attempt was launched, and given up, declined or told to stop before any worker took it up: no failure of its
 * task.
 */
export const isUnclaimed = ({ state, claimedAt, failure }: AttemptView): boolean =>
  (state === 'lost' || state === 'cancelled') &&
  claimedAt === undefined &&
  (failure === undefined || neverBegan(failure));

/** Whether an attempt was handed to a node that its launch says to avoid, whose worker did not take it up. */
export const isDeclined = ({ state, failure }: Pick<AttemptView, 'state' | 'failure'>): boolean =>
  state === 'lost' && failure?.cause === 'declined';

/** Whether an attempt was launched and no place was found for its worker, which is told once launches were accepted. */
export const foundNoPlace = ({ state, failure }: Pick<AttemptView, 'state' | 'failure'>): boolean =>
  state === 'lost' && failure?.cause === 'expired';

/** Of these attempts, in their order, those since the last that began which found no place. */
export const unplacedSince = (attempts: readonly Pick<AttemptView, 'state' | 'failure'>[]): number =>
  attempts.length - 1 - attempts.findLastIndex((each) => !foundNoPlace(each));

/** Tasks of all stages of a job. */
export const taskCountOf = ({ stages }: Pick<JobState, 'stages'>): number =>
  stages.reduce((sum, { tasks }) => sum + tasks.length, 0);
