import type {
  allocationReasons,
  cancelReasons,
  copyReasons,
  launchReasons,
  lossReasons,
} from '../../contracts/decision-log.ts';
import type { Facts } from '../../contracts/fact-names.ts';
import type { AttemptId, JobId, TaskId } from '../../contracts/ids.ts';
import type { LossKind } from '../../contracts/records.ts';
import type { Worker } from '../../contracts/job-spec.ts';
import type { CloneRefusal } from '../capacity/clone-admission.ts';
import type { CloneDecline } from './stage-clones.ts';

export type LaunchReason = (typeof launchReasons)[number];
export type CancelReason = (typeof cancelReasons)[number];
export type AllocationReason = (typeof allocationReasons)[number];
export type LossReason = (typeof lossReasons)[number];

export type { Facts };

/**
 * Slots that the job asks to be its own from now on, for its deadline. `smoothed`: what its control loop has come to,
 * of which they are the whole number. Both 0 where it goes by its fair share alone.
 */
export interface Allocate {
  readonly kind: 'allocate';
  readonly slots: number;
  readonly smoothed: number;
  readonly reason: AllocationReason;
  readonly facts: Facts;
}

/**
 * The output of an attempt is gone, as `by` was the first to find; absent: whoever publishes, or a look at what was to be
 * read next. Readers go by the replica of attempt `use`; without one the task is done again.
 */
export interface LoseOutput {
  readonly kind: 'lose-output';
  readonly attemptId: AttemptId;
  readonly how: LossKind;
  readonly by?: AttemptId;
  readonly use?: number;
}

/**
 * A partition, that of task `task`, is read by several tasks: part j of input number `input` is what tasks [cuts[j − 1],
 * cuts[j]) of the producing stage have left for it, from the first one and to the last one at the ends. Cut by tasks and
 * not by bytes, so that parts stay what they are where an output is made again. `facts`: the bytes of the partition, of its
 * largest part and of a usual partition of the stage, and what is expected to be saved.
 */
export interface PartitionSplit {
  readonly task: number;
  readonly input: number;
  readonly cuts: readonly number[];
  readonly facts: Facts;
}

/**
 * In which of `zones` each task of a stage is to run, by place among them. `facts`: the bytes that then go between zones,
 * those that would go if each task were in any zone, and the bytes of the link that carries most.
 */
export interface TaskPlacement {
  readonly zones: readonly string[];
  readonly tasks: readonly number[];
  readonly facts: Facts;
}

/**
 * The output of an attempt is copied, so that its readers have another if it is lost. `facts` hold r (`lossProbability`),
 * t_redo, t_rep and the tokens that were left before it.
 */
export interface CopyOutput {
  readonly kind: 'copy-output';
  readonly attemptId: AttemptId;
  readonly bytes: number;
  readonly reason: (typeof copyReasons)[number];
  readonly facts: Facts;
}

/** What a tick does. Each is idempotent by its ids, so that a takeover may repeat the last tick's. */
export type Decision =
  /**
   * `revision`: the lists of what its tasks read are written anew, for outputs that were made again; absent: the first.
   * `splits`: partitions that are read by several tasks each, by task; absent: none are, or it was decided before.
   * `placement`: where its tasks are to run; absent: anywhere, or it was decided before.
   */
  | {
      readonly kind: 'open-stage';
      readonly stage: number;
      readonly revision?: number;
      readonly splits?: readonly PartitionSplit[];
      readonly placement?: TaskPlacement;
    }
  | LoseOutput
  | CopyOutput
  /** The first `tasks` tasks of a stage are to have `copies` copies each, as the capacity ledger has admitted. */
  | {
      readonly kind: 'clone-stage';
      readonly stage: number;
      readonly copies: number;
      readonly tasks: number;
      readonly waitMs?: number;
      readonly facts: Facts;
    }
  /** A stage is cloned no more, since the capacity ledger has given the slots of its clones to a smaller job. */
  | { readonly kind: 'preempt-clones'; readonly stage: number; readonly by: JobId; readonly facts: Facts }
  | Allocate
  | {
      readonly kind: 'launch';
      readonly attemptId: AttemptId;
      readonly reason: LaunchReason;
      /**
       * The attempt with which it rides: its worker takes this one up later, and it needs no slot. Absent: it gets a
       * worker of its own, also where it rode before.
       */
      readonly behind?: AttemptId;
      /** Nodes that must not run it. Whoever launches honours it as far as it can. */
      readonly avoidNodes?: readonly string[];
      /** Where it had best run, of a copy whose zone was weighed. Absent: as its stage's placement says. */
      readonly zone?: string;
      /** What it runs on, where that is not its stage's own worker. */
      readonly worker?: Worker;
      readonly facts?: Facts;
    }
  | {
      readonly kind: 'cancel';
      readonly attemptId: AttemptId;
      readonly reason: CancelReason;
      readonly facts?: Facts;
    }
  | { readonly kind: 'lose'; readonly attemptId: AttemptId; readonly reason: LossReason };

/**
 * Why something proposed was not done, from a closed union. `copy-limit`: copies of the task; `copy-cap`: copies of
 * the job; `slow-node`: only nodes to be avoided are free; `slow-zone`: another attempt would be worth it, were not
 * all zones where it may run slower than those that its stage has run in; `input-explained`: it has more to read, not a slower
 * place; `recent-copy`: its last copy has not shown yet what it brings; `restart-limit`: it was restarted as often as it
 * may be; `not-worth-it`: another attempt would save too little, or too unlikely; `loss-limit`: copies and kills of its stage have cost as much slot
 * time as they may; `still-starting`: it has not begun to read; `awaiting-copy`: its
 * clones wait for upstream copies of their own; `input-lost`: what
 * it reads is gone and is made again; `budget`: the dollars that
 * the job may cost do not suffice; `gives-way`: the job meets its deadline without copies, and another lacks
 * slots for its own; `replica-not-worth-it`, `too-few-tokens` and `precompute-budget`: outputs of its stage, of which it is
 * the first task, are not copied, since their loss is expected to cost less, the bytes that may be copied do not suffice, or
 * the time that a spell of losses may cost; `clone-budget` and
 * `utilization`: no clones for its stage, of which it is the first task, since they would take too many slots.
 */
export type RefusalReason =
  | 'no-slot'
  | 'tick-full'
  | 'backing-off'
  | 'last-live-copy'
  | 'task-done'
  | 'copy-limit'
  | 'copy-cap'
  | 'loss-limit'
  | 'restart-limit'
  | 'recent-copy'
  | 'slow-node'
  | 'slow-zone'
  | 'input-explained'
  | 'not-worth-it'
  | 'still-starting'
  | 'awaiting-copy'
  | 'input-lost'
  | 'budget'
  | 'gives-way'
  | 'replica-not-worth-it'
  | 'too-few-tokens'
  | 'precompute-budget'
  | CloneDecline
  | CloneRefusal;

/** A refusal, logged beside the decisions so that `explain` can tell why nothing happened. */
export interface Refusal {
  readonly kind: 'refuse';
  readonly taskId: TaskId;
  readonly reason: RefusalReason;
  /** The zone that it is about, where it is about one. */
  readonly zone?: string;
  readonly facts?: Facts;
}

/** How a job stands after a tick. */
export type TickOutcome =
  | { readonly kind: 'continue' }
  | { readonly kind: 'finish' }
  /** `cause`: present where it fails for want of a right, or of dollars. */
  | { readonly kind: 'fail'; readonly message: string; readonly cause?: 'access-denied' | 'budget' };
