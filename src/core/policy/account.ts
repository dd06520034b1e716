import type { AttemptId } from '../../contracts/ids.ts';
import type { Decision, Refusal } from '../model/decision.ts';
import type { JobState, TaskView } from '../model/job-view.ts';
import type { LaunchRoom } from '../model/tick-config.ts';
import type { Spending } from './budget.ts';
import type { LaunchPlace, PolicyView } from './policy-set.ts';

/** What a tick may spend, and on what terms. */
export interface Terms {
  /** Decisions that the tick may still take. */
  readonly room: number;
  /** Backups that may run at once. */
  readonly copyCap: number;
  /** Those of them that the job was admitted, of what all jobs may run together; absent: all. */
  readonly admitted?: number | undefined;
  readonly killFreesSlot: boolean;
  /** Free slots of each node that has any, by its name, where the host knows. */
  readonly freeNodes?: ReadonlyMap<string, number> | undefined;
  /** How long until the next tick at most; absent: 0. */
  readonly tickMs?: number | undefined;
  /** The node of each slot that was freed by this tick already; absent: none was. */
  readonly freedNodes?: readonly string[];
  /** The job's dollars; absent where it may cost what it takes. */
  readonly spending?: Spending | undefined;
  /** Where an attempt had best run of a task for which the policy proposes no other place; absent: anywhere. */
  readonly placeOf?: ((task: TaskView, copy?: number) => LaunchPlace | undefined) | undefined;
  /** Whether a task may be launched again now. */
  readonly isReady: (task: TaskView) => boolean;
  /** Room of stages whose launches may wait for it unseen; absent: slots are all that launches need. */
  readonly launchRoom?: LaunchRoom | undefined;
}

/** The account of one tick: what it has decided, and what is left to spend. */
export interface Account {
  readonly state: JobState;
  readonly terms: Terms;
  readonly copiesPerTask: number;
  readonly backupsPerTask: number;
  readonly decisions: Decision[];
  readonly refusals: Refusal[];
  free: number;
  /** Tasks that wait for a slot: of free ones, copies that go after them leave so many. */
  waiting: number;
  /** Launches that may begin yet in the stages of `terms.launchRoom`. */
  launchRoom: number;
  /** The same where launches are refused; Infinity where none are. */
  refusedRoom: number;
  copies: number;
  /** Copies that wanted for nothing but a slot. */
  slotsShort: number;
  /** The same by the place of their stage. */
  readonly shortByStage: Map<number, number>;
  /** Copies that were not admitted yet, of those that the job's own cap allows. */
  copiesShort: number;
  launches: number;
  /** The node of each slot that this tick has freed. */
  readonly freedNodes: string[];
  /** Slot time that copies and kills of a stage may still lose, by its place, once anybody has asked. */
  readonly lossLeft: Map<number, number>;
  readonly view: PolicyView;
  readonly launched: Map<TaskView, number>;
  readonly live: Map<TaskView, number>;
  readonly cancelled: Set<AttemptId>;
}
