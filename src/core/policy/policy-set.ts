import type { PolicyConfig } from '../../contracts/policy-config.ts';
import type { DurationMs, EpochMs } from '../../contracts/units.ts';
import type { Facts, RefusalReason } from '../model/decision.ts';
import type { SlowNode } from '../model/node-book.ts';
import type { ZoneBook } from '../model/zone-book.ts';
import type { CloneOutlook, CloneWish } from './dolly/clone-wishes.ts';
import type {
  AttemptView,
  JobState,
  LaunchOrder,
  StageClones,
  StageView,
  TaskView,
} from '../model/job-view.ts';

/** A task without a result and its attempts that run and were not told to stop, in the order of their numbers. */
export interface RunningTask {
  readonly task: TaskView;
  readonly copies: readonly [AttemptView, ...AttemptView[]];
}

/** The running tasks of one open stage, by index: sums over them do not depend on the order of the state. */
export interface StageRuns {
  readonly stage: StageView;
  readonly tasks: readonly RunningTask[];
}

/** What a policy sees. It changes none of it. */
export interface PolicyView {
  readonly state: Readonly<JobState>;
  readonly now: EpochMs;
  readonly config: PolicyConfig;
  /** Open stages in order, those without running tasks too. */
  readonly runs: readonly StageRuns[];
  readonly slots: {
    /** What the ledger has granted to the job, and what all jobs have together. */
    readonly granted: number;
    readonly cluster: number;
    /** Granted slots that nothing occupies. */
    readonly free: number;
    /** Tasks that are owed an attempt and have none. */
    readonly waiting: number;
  };
  /** Stages that are cloned, by place; those that are from this tick on too. Absent: none. */
  readonly cloned?: ReadonlyMap<number, StageClones>;
  /** Nodes that the node book says to avoid, slowest first, by what this job and others met there. Absent: none. */
  readonly slowNodes?: readonly SlowNode[];
  /** Shorter silences than this say nothing of an attempt. */
  readonly reportMs: DurationMs;
  /** Zones among which a launch on Fargate may choose, two at least; absent: none may. */
  readonly zones?: readonly string[] | undefined;
  /** What other jobs have found of them of late, the newest first; absent: nothing. */
  readonly zonesTold?: ZoneBook | undefined;
  /**
   * For how long an attempt may work on Lambda, where one that takes longer may be stopped for Fargate. Absent: none is
   * (`lambdaToLeave`).
   */
  readonly lambdaMs?: DurationMs | undefined;
  /** Whether a stage's first loss may be borne by tasks that wait; see `lossLeftMs`. Absent: no. */
  readonly losesAhead?: boolean;
}

/**
 * What a policy would do. `decline` does nothing: it has the log say why a slow task is left alone. Proposals with
 * a larger `gainMs` come first, whatever unit of merit the policy ranks by (time saved, or time left); ties by task.
 */
export type Proposal =
  | {
      readonly kind: 'backup';
      readonly task: TaskView;
      readonly gainMs: number;
      /** Takes a slot before tasks that wait for one. */
      readonly urgent: boolean;
      /** Slot time that is lost if it brings nothing: bounded for each stage. Absent: the policy bounds it itself. */
      readonly lossMs?: number;
      readonly avoidNodes?: readonly string[];
      /** Where it is to run; absent: anywhere, or where its stage's placement says. */
      readonly zone?: string | undefined;
      readonly facts: Facts;
    }
  | {
      readonly kind: 'restart';
      readonly task: TaskView;
      /** The attempt that is cancelled. */
      readonly attempt: AttemptView;
      /** Slot time that is thrown away with it, as far as a new attempt takes it again. */
      readonly lossMs: number;
      readonly gainMs: number;
      readonly avoidNodes?: readonly string[];
      /** As of a backup. */
      readonly zone?: string | undefined;
      readonly facts: Facts;
    }
  | {
      readonly kind: 'prune';
      readonly task: TaskView;
      readonly attempt: AttemptView;
      readonly gainMs: number;
      readonly facts: Facts;
    }
  | {
      /** An attempt that is stopped so that its task begins anew elsewhere, also where it is the task's only one. */
      readonly kind: 'leave';
      readonly task: TaskView;
      readonly attempt: AttemptView;
      readonly gainMs: number;
      readonly facts: Facts;
    }
  | {
      /** Copies from the start, so that the task has `copies` in all once its original is launched. */
      readonly kind: 'clone';
      readonly task: TaskView;
      readonly copies: number;
      readonly gainMs: number;
      readonly facts: Facts;
    }
  | {
      readonly kind: 'decline';
      readonly task: TaskView;
      readonly reason: RefusalReason;
      /** The zone that it is about, where it is about one. */
      readonly zone?: string | undefined;
      readonly gainMs: number;
      readonly facts: Facts;
    };

/** The zone in which an attempt had best run, and the numbers that say so, where there are any. */
export interface LaunchPlace {
  readonly zone: string;
  readonly facts?: Facts;
}

/** How a job treats its stragglers. */
export interface PolicySet {
  readonly name: string;
  readonly launchOrder: LaunchOrder;
  /** Most backups that the job may have running at once; without it slots alone limit them. */
  copyCap?(view: PolicyView): number;
  /** Whether `copyCap` bounds the backups of all jobs of the cluster together, and not of each. */
  isCapOfCluster?(config: PolicyConfig): boolean;
  /** Nodes that must not run tasks that wait, either; a task waits longer where no other node is free. */
  declinedNodes?(view: PolicyView): readonly string[];
  /** Whether outputs that are dear to make again are copied (Mantri §5.3). */
  readonly protectsOutputs?: boolean;
  /**
   * Whether tasks go to the zones where their transfers end first (Mantri §5.2), and copies to those where they end first
   * (§5.5), on hosts that let zones be chosen.
   */
  readonly placesTasks?: boolean;
  /**
   * Where attempts that are owed to tasks had best run, and the clones of one, `copy` from 1 on; of a task undefined: anywhere, or
   * as it was placed. Absent: so of all.
   */
  placesOwed?(view: PolicyView): (task: TaskView, copy?: number) => LaunchPlace | undefined;
  /** See the view's of that name. */
  readonly losesAhead?: boolean;
  /** Whether `wishes` may name a stage that is about to start: else nobody asks what they take. Absent: any. */
  mayWish?(stage: StageView, config: PolicyConfig): boolean;
  /** Stages to be cloned if the capacity ledger admits it. It is asked before the tick; without it nothing is. */
  wishes?(state: JobState, outlook: CloneOutlook): readonly CloneWish[];
  /** Whether copies of tasks of this stage that have a result work on for others to read; else they are cancelled. */
  keepsLateCopies?(state: JobState, stage: StageView, now: EpochMs): boolean;
  /** Pure: changes nothing, and does not depend on the order of running attempts. */
  propose(view: PolicyView): readonly Proposal[];
}
